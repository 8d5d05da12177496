"""Whether analyses say truly how sure they are: each one's intervals and findings beside the truth.

A file of this package is an analysis: its `repetition` makes up participants whose truth is known,
lets the analysis's own code answer, and compares.
"""
