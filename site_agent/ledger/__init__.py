"""The ledger: what a site's data have cost, across all studies.

Entries, limits, exact sums per participant, totals, export and summary.
"""
