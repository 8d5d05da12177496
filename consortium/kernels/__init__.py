"""Numerics that several analyses, or rooms, share: arrays in, arrays out.

Spatial ICA, varimax, projectors, moments, power iteration, dual regression, smooth bases, least
squares under noise, laws of noise, the posterior of a hospital.
"""
