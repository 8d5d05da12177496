"""All sites in one process, data as arrays."""
