"""Engines on which a site computes: threads, processes, Dask, Ray."""
