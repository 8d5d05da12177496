"""Measurements, never tests: each command prints one table, each row beside its peer or limit."""
