"""Simulated data, and all sites in one process.

Simulated participants, networks, scans and BIDS data sets, and a study run on arrays.
"""
