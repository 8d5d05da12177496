"""``policy.yaml``: a site's limits for every study, its hours, and its refusals."""
