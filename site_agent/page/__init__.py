"""The site's own page: one HTML file for its people, without a server.

The ledger over time, what the agent does now, what is approved, who is left out.
"""
