"""The coordinator's application: the command `consortium`; nothing imports it."""
