"""Four hospitals on one machine: real processes, real files, separate folders and keys."""
