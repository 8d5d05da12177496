"""``site-agent doctor``: whether a site is ready, and what to mend."""
