"""Numerical functions that several analyses use: arrays in, arrays out.

They cover spatial ICA, varimax, projectors, moments, power iteration, dual regression, clipped sums
of one participant, smooth bases, least squares and contrasts under noise with errors and tests,
noise distributions, and the posterior of a hospital.
"""
