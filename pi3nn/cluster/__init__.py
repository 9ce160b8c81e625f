"""Work that was handed to a cluster: what was handed, and what became of it."""
