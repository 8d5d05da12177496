"""Numerics that only this analysis uses: arrays in, arrays out."""
