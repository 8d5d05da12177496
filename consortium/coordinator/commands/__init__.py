"""Commands of the coordinator's command line, by the headings of its help."""
