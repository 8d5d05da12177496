"""Tests; see docs/contributing.md for where which stands."""
