"""Loading of an approved study's data for its analysis.

Loading in advance, views matched by participant, reported sizes, units of privacy.
"""
