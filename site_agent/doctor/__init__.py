"""``site-agent doctor``: check whether a site is ready, and list necessary corrections."""
