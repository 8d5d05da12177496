"""Numerics of this analysis alone: arrays in, arrays out."""
