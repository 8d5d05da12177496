"""ADMM: a linear classifier agreed on among neighbouring sites."""
