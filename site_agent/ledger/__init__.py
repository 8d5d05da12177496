"""The ledger: privacy losses of a site's data, across all studies.

Entries, limits, exact sums per participant, totals, export and summary.
"""
