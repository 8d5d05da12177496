"""Numerical functions of `glm` only: arrays in, arrays out."""
