"""Numerical functions that several analyses or packages use: arrays in, arrays out.

They cover second moments and their power iteration, projectors and their worth to a hospital, the
separation of directions into maps, dual regression, smooth bases in the brain and on the cortex,
least squares under known noise, noise distributions, shares of participants with missing entries,
and a hospital's own networks and scores. Numerics of only one analysis are in its own folder.
"""
