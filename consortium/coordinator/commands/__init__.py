"""Commands of the coordinator's command line, a module for each heading of its help."""
