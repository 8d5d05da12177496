"""GARCH courses: moments of the model, the recursion, and what must be refused."""

import math

import numpy as np
import pytest

from consortium.simulation.signals import (
    BURN_IN,
    PERSISTENCE,
    SHOCK,
    garch_courses,
    garch_filter,
    garch_innovations,
)


def garch_kurtosis(shock: float = SHOCK, persistence: float = PERSISTENCE) -> float:
    """Kurtosis of the model, 3 (1 − (α+β)²) / (1 − (α+β)² − 2α²); infinite where that is negative.

    Source: T. Bollerslev, Journal of Econometrics 31 (1986), 307–327.
    """
    free = 1.0 - (shock + persistence) ** 2
    rest = free - 2.0 * shock**2
    return 3.0 * free / rest if rest > 0 else math.inf


def test_moments_of_the_model():
    courses = garch_courses(np.random.default_rng(0), 200, 5000)
    assert courses.shape == (200, 5000)
    assert courses.mean() == pytest.approx(0.0, abs=0.005)
    assert courses.var() == pytest.approx(1.0, abs=0.02)
    assert (courses**4).mean() == pytest.approx(garch_kurtosis(), rel=0.1)
    assert garch_kurtosis() > 4.0


def test_white_but_bursting():
    courses = garch_courses(np.random.default_rng(1), 100, 4000).astype(np.float64)

    def lagged(values):
        values = values - values.mean()
        return (values[:, 1:] * values[:, :-1]).mean() / values.var()

    assert lagged(courses) == pytest.approx(0.0, abs=0.01)
    assert lagged(courses**2) > 0.2


def test_recursion_matches_a_plain_loop():
    noise = garch_innovations(np.random.default_rng(2), 1, 30)
    variance, expected = 1.0, []
    for z in noise[:, 0].astype(np.float64):
        expected.append(np.sqrt(variance) * z)
        variance = 0.3 + 0.3 * expected[-1] ** 2 + 0.4 * variance
    filtered = garch_filter(noise, shock=0.3, persistence=0.4)
    np.testing.assert_allclose(filtered[:, 0], expected[BURN_IN:], rtol=1e-5)


def test_without_memory_it_is_the_noise_itself():
    noise = garch_innovations(np.random.default_rng(3), 4, 50)
    np.testing.assert_array_equal(garch_filter(noise, shock=0, persistence=0), noise[BURN_IN:])
    assert garch_kurtosis(0.0, 0.0) == 3.0
    assert garch_kurtosis(0.9, 0.0) == np.inf


@pytest.mark.parametrize(("shock", "persistence"), [(0.5, 0.5), (-0.1, 0.2), (0.1, -0.2)])
def test_no_finite_variance_is_refused(shock, persistence):
    with pytest.raises(ValueError, match="sum below 1"):
        garch_courses(np.random.default_rng(0), 1, 10, shock=shock, persistence=persistence)
