"""The commands of ``site-agent``, by what they are for."""
