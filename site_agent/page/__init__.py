"""The site's own page: one HTML file for its staff, without a server.

It shows the ledger over time, the agent's activity, the approved studies and the number of excluded
participants.
"""
