"""What holds for every test."""

import os

from hypothesis import settings

# A machine that does something else at the same time is no counterexample.
# Fifty examples a property keep the whole suite within minutes; HYPOTHESIS_PROFILE=thorough has ten
# times as many.
settings.register_profile("any-machine", deadline=None, max_examples=50)
settings.register_profile("thorough", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "any-machine"))
