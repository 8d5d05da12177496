"""What holds for every test."""

from hypothesis import settings

# A machine that does something else at the same time is no counterexample.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")
