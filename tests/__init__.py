"""Tests; see docs/guides/developer.md for where which stands."""
