"""Measurements, not tests: each command prints a table of our numbers and a peer's or a limit."""
