"""Logistic regression within a ball: SciPy's minimum, and a precision that holds."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from consortium.algorithms.admm.kernels import logistic_in_ball
from consortium.algorithms.admm.kernels.logistic_in_ball import LogisticCost, minimize_in_ball
from consortium.errors import PrivacyError


def made(seed, features=5, persons=30, curvature=0.1, pull=0.3):
    generator = np.random.default_rng(seed)
    columns = generator.standard_normal((features, persons))
    offsets = generator.standard_normal(persons)
    pulls = pull * generator.standard_normal(features)
    return LogisticCost(columns, offsets, curvature, pulls, len(offsets))


def test_slope_and_hessian_are_the_derivatives():
    cost, point, step = made(0), np.linspace(-1, 1, 5), 1e-6 * np.eye(5)
    slope = [(cost.value(point + h) - cost.value(point - h)) / 2e-6 for h in step]
    hessian = [(cost.slope(point + h) - cost.slope(point - h)) / 2e-6 for h in step]
    assert cost.slope(point) == pytest.approx(slope, abs=1e-8)
    assert cost.hessian(point) == pytest.approx(np.array(hessian), abs=1e-8)


@pytest.mark.parametrize("radius", [0.1, 1.0, 100.0])
def test_the_minimum_is_that_of_scipy(radius):
    cost = made(1)
    inside = {"type": "ineq", "fun": lambda u: radius**2 - u @ u, "jac": lambda u: -2 * u}
    options = {"ftol": 1e-15, "maxiter": 1000}
    start = np.full(5, 1e-3)
    expected = minimize(
        cost.value, start, jac=cost.slope, constraints=[inside], method="SLSQP", options=options
    ).x
    found = minimize_in_ball(cost, radius, start, 1e-10)
    assert found == pytest.approx(expected, abs=1e-5 * radius)
    assert (np.linalg.norm(found) == pytest.approx(radius)) == (radius < 100)


@example(seed=36938287, flat=0.0, pull=0.0625, radius=0.25, size=1.0)  # once went in circles
@given(
    seed=st.integers(0, 2**32 - 1),
    flat=st.floats(-4, 2),
    pull=st.floats(-3, 4),
    radius=st.floats(-2, 3),
    size=st.floats(-2, 2),
)
def test_the_result_is_as_near_to_the_minimizer_as_promised(seed, flat, pull, radius, size):
    # Two searches from afar, for two precisions: the better one stands for the minimizer.
    generator = np.random.default_rng(seed)
    features, persons = int(generator.integers(1, 8)), int(generator.integers(1, 20))
    cost = made(seed, features, persons, 10.0**flat, 10.0**pull)
    cost = LogisticCost(
        10.0**size * cost.columns, *(cost.offsets, cost.curvature, cost.pull, cost.divisor)
    )
    scale = 10.0**pull + 10.0**size + 10.0 ** (flat + radius)
    one, other = (10.0**radius * generator.standard_normal(features) for _ in range(2))
    best = minimize_in_ball(cost, 10.0**radius, one, 1e-11 * scale)
    found = minimize_in_ball(cost, 10.0**radius, other, 1e-6 * scale)
    assert np.linalg.norm(found) <= 10.0**radius * (1 + 1e-12)
    assert np.linalg.norm(found - best) <= 1.1e-6 * scale / cost.curvature


@given(seed=st.integers(0, 2**32 - 1), radius=st.floats(-100, -10))
def test_a_ball_however_small_has_its_minimizer(seed, radius):
    # Rounding hid the sign at the bracket's end: one of two neighbours was refused.
    cost = made(seed, curvature=1e-3, pull=0.0)
    found = minimize_in_ball(cost, 10.0**radius, np.zeros(5), 1e-3)
    assert np.linalg.norm(found) == pytest.approx(10.0**radius)
    downhill = -cost.slope(np.zeros(5))
    assert found @ downhill > 0.999 * np.linalg.norm(found) * np.linalg.norm(downhill)


def test_what_is_not_minimized_is_not_given_away(monkeypatch):
    """What is charged for would not hold."""
    monkeypatch.setattr(logistic_in_ball, "_STEPS", 20)
    with pytest.raises(PrivacyError, match="gradient"):
        minimize_in_ball(made(1), 1.0, np.zeros(5), 0.0)


def test_the_fall_is_the_difference_of_values_and_keeps_its_bound_far_out():
    generator = np.random.default_rng(7)
    columns = generator.standard_normal((3, 50))
    point, pull = generator.standard_normal((2, 3))
    near = LogisticCost(columns, generator.standard_normal(50), 0.3, pull, 50)
    expected = near.value(np.zeros(3)) - near.value(point)
    assert near.fall(point) == pytest.approx(expected, rel=1e-12)
    # Offsets of 10¹² have a last digit of 10⁻⁴, far above what anybody may change here.
    far = LogisticCost(columns, -1e12 * generator.random(50), 1e-9, np.zeros(3), 50)
    short = 3e-6 * point
    most = np.abs(short @ columns).mean()
    assert abs(far.fall(short)) <= most * (1 + 1e-9)
