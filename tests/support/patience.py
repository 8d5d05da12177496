"""How long a test waits before it reports something as missing."""

PATIENCE = 600
"""Seconds: a machine may have other things to do."""
