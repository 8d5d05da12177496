"""Numerical functions of `describe` only: arrays in, arrays out."""
