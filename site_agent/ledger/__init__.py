"""The ledger: what a site's data have cost, across all studies.

Entries, limits, exact sums per participant, sets of participants behind numbers that were reported
and newcomers to them, totals, export and summary.
"""
