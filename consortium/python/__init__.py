"""The library in Python: studies, their results, and estimators for one data set.

What people import stands in `consortium` itself, as ``import consortium as cc``.
"""
