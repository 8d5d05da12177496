"""Means and least squares with a level of privacy for every view."""
