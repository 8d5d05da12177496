"""A study: its file, its model, and its plan."""
