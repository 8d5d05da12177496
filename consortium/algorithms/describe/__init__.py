"""Counts, means, deviations, quantiles and missing values of columns, by group."""
