"""The subcommands of ``site-agent``.

Their options and the values of these, their terminal, and their clock.
"""
