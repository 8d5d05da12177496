"""How long a test waits for what it needs before it calls it missing."""

PATIENCE = 600
"""Seconds: a machine may have other things to do."""
