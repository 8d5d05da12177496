"""The coordinator's application: the command `consortium`; of packages only `python` imports it."""
