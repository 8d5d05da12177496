"""Who belongs to a consortium, and what its members have signed."""
