"""Experiments of the papers, run again with this project's code."""
