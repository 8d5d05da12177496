"""The command ``consortium``; of packages only `python` imports it.

All subcommands, tables in the terminal, new studies, design, contrasts, impact assessment, runs,
schedules, status, evidence of results, and the demo with a comparison to its true maps.
"""
