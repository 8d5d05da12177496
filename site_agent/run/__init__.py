"""A site in one run.

Admission, set-up, charges, the site's statistic, rounds, neighbours, stored messages, checks of
releases, refusals, and the log.
"""
