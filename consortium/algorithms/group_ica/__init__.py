"""Group ICA: the brain networks that all sites' participants share, from one release."""
