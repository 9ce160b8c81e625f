"""A user's own table: how its file is read, and how its columns become inputs."""
