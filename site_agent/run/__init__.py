"""A site in one run.

Admission, set-up, charges, the site's statistic, rounds, neighbours, stored messages, checks of
what was released, refusals, and the log.
"""
