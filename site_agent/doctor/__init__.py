"""Whether a site is ready, and what to mend."""
