"""What a site computes on: threads, processes, Dask, Ray."""
