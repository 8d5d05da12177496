"""Which sites' persons are alike, from private mean embeddings."""
