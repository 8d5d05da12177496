"""capePCA: the principal subspace of all sites' data."""
