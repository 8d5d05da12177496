"""The subcommands of ``site-agent``."""
