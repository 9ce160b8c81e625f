"""Work that was handed to a cluster: what was handed, and what the cluster says of it."""
