"""Similarity of sites' participants, from private mean embeddings."""
