"""A site in one run."""
