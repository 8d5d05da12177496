"""Group ICA: the brain networks that all sites' persons have in common, from one release."""
