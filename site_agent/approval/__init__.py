"""Approval of studies by a site's staff.

The inspection of a study against the site, approvals with their records, permission at every round,
and the site's folder as one value.
"""
