"""A study's data as its analysis takes them."""
