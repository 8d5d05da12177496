"""capeDJICA: independent components of all sites' data."""
