"""The ledger: privacy losses of a site's data, across all studies.

Entries, limits, exact sums per participant, totals, export and summary, the signed heads on the
exchange, and the check that the disk is local.
"""
