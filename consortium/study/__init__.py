"""A study: its file, its model, and its plan.

The study file's reader and sections, rules for choosing participants and recordings, numbers of
neighbours and holders, the plan and its digest, and the plan's guarantees and forecasts.
"""
