"""Vectors of the checks of a round and of attestations, for whoever writes them a second time."""
