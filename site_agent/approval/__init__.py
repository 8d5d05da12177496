"""What a site's people approve.

A study inspected against the site, approvals with their records, permission at every round, and the
site's folder as one value.
"""
