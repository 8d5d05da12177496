"""Scores of a hospital's own participants: its level, with and without a chart's location."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.kernels.home_scores import home_scores

COUNT, OUTCOMES = 30, 4


def data(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    expected = rng.standard_normal((OUTCOMES, COUNT))
    return expected + rng.standard_normal((OUTCOMES, COUNT)), expected


@given(seed=st.integers(0, 2**32 - 1), shift=st.floats(-1e3, 1e3))
def test_a_shift_of_the_whole_hospital_changes_its_level_and_no_score(
    seed: int, shift: float
) -> None:
    values, expected = data(seed)
    everybody = np.ones(COUNT, dtype=bool)
    plain = home_scores(values, expected, expected, everybody)
    moved = home_scores(values + shift, expected, expected, everybody)
    assert moved.scores == pytest.approx(plain.scores, abs=1e-9)
    assert moved.levels == pytest.approx(plain.levels + shift, abs=1e-9)
    assert plain.scores.mean(axis=1) == pytest.approx(0.0, abs=1e-12)


def test_the_level_is_of_the_chosen_participants_only() -> None:
    values, expected = data(0)
    chosen = np.arange(COUNT) < 10
    values[:, ~chosen] += 5.0
    found = home_scores(values, expected, expected, chosen)
    assert found.levels == pytest.approx((values - expected)[:, chosen].mean(axis=1))
    assert found.errors == pytest.approx(1 / np.sqrt(10))


def test_a_location_counts_as_much_as_hospitals_are_alike() -> None:
    values, expected = data(1)
    everybody = np.ones(COUNT, dtype=bool)
    location = np.full(OUTCOMES, 2.0)
    mean = home_scores(values, expected, expected, everybody).levels
    for between, kept in ((0.0, 0.0), (1e6, 1.0), (0.3, 0.09 / (0.09 + 1 / COUNT))):
        found = home_scores(
            values=values,
            expected=expected,
            whole=expected,
            chosen=everybody,
            location=location,
            between=np.full(OUTCOMES, between),
        )
        assert found.levels == pytest.approx(2.0 + kept * (mean - 2.0), abs=1e-9)
        assert found.errors == pytest.approx(np.sqrt(kept / COUNT), abs=1e-9)


def test_missing_values_have_no_score_and_do_not_count() -> None:
    values, expected = data(2)
    values[0, 3] = np.nan
    values[1] = np.nan
    everybody = np.ones(COUNT, dtype=bool)
    found = home_scores(values, expected, expected, everybody)
    assert np.isnan(found.scores[0, 3])
    assert np.isfinite(np.delete(found.scores[0], 3)).all()
    assert found.errors[0] == pytest.approx(1 / np.sqrt(COUNT - 1))
    assert np.isnan(found.scores[1]).all()
    with_location = home_scores(
        values=values,
        expected=expected,
        whole=expected,
        chosen=everybody,
        location=np.zeros(OUTCOMES),
        between=np.ones(OUTCOMES),
    )
    assert with_location.levels[1] == 0.0
    assert with_location.errors[1] == 1.0
