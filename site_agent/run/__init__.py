"""A site in one run.

Admission, set-up, charges, the site's statistic, rounds, neighbours' manifests and answers, stored
messages, checks of releases, refusals, and the log.
"""
