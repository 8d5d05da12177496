"""The command ``consortium``; of packages only `python` imports it.

All subcommands, tables in the terminal, new studies, design, contrasts, impact assessment, runs,
schedules, status, evidence beside results, and the demo with how well it found what is known.
"""
