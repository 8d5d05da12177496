"""Numerics that several analyses, or rooms, share: arrays in, arrays out.

Spatial ICA, varimax, projectors, moments, power iteration, dual regression, clipped sums of one
participant, smooth bases, least squares and contrasts under noise with errors and tests, laws of
noise, the posterior of a hospital.
"""
