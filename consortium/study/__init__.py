"""A study: its file, its model, and its plan.

The study file's reader and sections, rules of who and what is chosen, how many neighbours and
holders sites have, the plan and its digest, and what a plan promises and forecasts.
"""
