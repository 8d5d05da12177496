"""Helpers without a subject of their own, on which every room stands.

Atomic files, locks, strict YAML, frozen models, tables of an output folder, numbers in words,
results of a check-up, what both command lines share, one thread of linear algebra, the end of a
program.
"""
