"""Numerics that algorithms share: arrays in, arrays out."""
