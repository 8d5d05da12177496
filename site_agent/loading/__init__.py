"""From an approved study to the data that its analysis takes.

Loading ahead, views matched by participant, sizes that are reported, units of privacy.
"""
