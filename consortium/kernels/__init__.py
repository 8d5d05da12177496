"""Numerics that analyses share: arrays in, arrays out."""
