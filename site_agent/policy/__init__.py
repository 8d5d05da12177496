"""``policy.yaml``: what a site lets any study ask, when, and what it refuses."""
