"""Whether analyses state their uncertainty correctly: intervals and findings against the truth.

Each file of this package is about one analysis. Its `repetition` simulates participants with a
known truth, runs the analysis's own code, and compares.
"""
