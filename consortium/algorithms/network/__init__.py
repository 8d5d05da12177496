"""A classifier network that all sites train together."""
