"""What a hospital reads of its networks at home."""

import numpy as np

from consortium.algorithms.base import Result
from consortium.kernels.home_posterior import Posterior, PriorVariances, ReleaseShare
from site_agent.posterior import posterior_summary

_NONE = np.zeros((2, 2))
_SETS = ("own", "release", "posterior")


def told(colluding: int, *, own_patients: bool = False, **weights: float) -> str:
    spreads, taken = PriorVariances(0.02, 0.0, 0.002, 0.01), ReleaseShare(12, 100, 4, 0.05)
    posterior = Posterior(_NONE, _NONE, 0.25, 60.0, 0.05, 0.0, spreads, taken)
    results = {name: Result({}, {"found": k, **weights}) for k, name in enumerate(_SETS)}
    return " ".join(posterior_summary(posterior, results, colluding, own_patients))


def test_worth_and_weights_are_told() -> None:
    said = told(1)
    assert "0 of this hospital's 12 participants alone, 1 of the release, 2 of both" in said
    assert "as much information as 10 more participants of its own would" in said
    assert "own data by 25 %, and the others' by 75 %" in said
    assert "all hospitals' participants" in said
    assert "this hospital's own patients" in told(1, own_patients=True)


def test_the_weight_of_an_open_cohort_is_told() -> None:
    said = told(1, own_weight=0.3, others_weight=0.1, open_weight=0.6)
    assert "own data by 30 %, the others' by 10 %, and the study's open cohort by 60 %" in said
    assert "2 of all three sources together" in said
    said = told(1, own_weight=0.25, others_weight=0.75, open_weight=0.0)
    assert "own data by 25 %, and the others' by 75 %. Nothing was taken" in said
    assert "2 of both together" in said


def test_a_study_that_counts_on_no_colluder_is_warned_of() -> None:
    assert "Warning" not in told(1)
    assert "colluding_sites: 0" in told(0)
