"""The library for notebooks.

Studies and their results as values, drawings, costs, and estimators of one data set with the
interface of scikit-learn; imported as ``import consortium as cc``.
"""
