"""Regression of every region, voxel or edge, adjusted for covariates and for site."""
