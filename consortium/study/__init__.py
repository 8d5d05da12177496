"""A study: its file, its model, and its plan.

The study file's reader and sections, which participants and recordings are chosen, who masks with
whom, the plan, and what a plan promises and forecasts.
"""
