"""The Bayesian level of a coordinate: enumerated exactly on small priors and mechanisms."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from consortium.errors import PrivacyError
from consortium.privacy.bayesian import alone_level, bayesian_level
from consortium.privacy.gdp import mu_of

LEVELS = st.floats(0.01, 5.0)


@given(LEVELS, LEVELS, st.floats(0, 0.99))
def test_both_ways_are_inverse(one, other, q):
    alone, whole = sorted((one, other))
    level = bayesian_level(alone, whole, q)
    assert alone - 1e-12 <= level <= whole + 1e-12
    assert alone_level(level, whole, q) == pytest.approx(alone, abs=1e-6)


@given(LEVELS, LEVELS, st.floats(0, 1))
def test_it_is_never_above_the_published_bound(one, other, q):
    alone, whole = sorted((one, other))
    published = alone + math.log(1 - q + q * math.exp(whole))
    assert bayesian_level(alone, whole, q) <= min(published, whole) + 1e-12


def test_the_ends():
    assert bayesian_level(0.3, 2.0, 0.0) == pytest.approx(0.3)
    assert bayesian_level(0.3, 2.0, 1.0) == pytest.approx(2.0)
    assert bayesian_level(2.0, 2.0, 0.5) == pytest.approx(2.0)
    assert alone_level(3.0, 2.0, 0.5) == 2.0
    assert bayesian_level(1.0, 900.0, 0.5) == pytest.approx(900 + math.log(0.5))  # no overflow


def cube(size):
    return np.array(list(itertools.product([-1.0, 1.0], repeat=size)))


def conditionals(prior, points):
    """Laws of the persons given that the first coordinate is -1, or 1."""
    for sign in (-1.0, 1.0):
        here = prior * (points[:, 0] == sign)
        yield here / here.sum()


def dependence_of(prior, points):
    """Total variation between the laws of the other coordinates."""
    half = len(points) // 2
    one, other = conditionals(prior, points)
    return float(np.abs(one[:half] - other[half:]).sum() / 2)


def divergence(one, other, means, level):
    """sup_R P(R) - e^L P'(R) for mixtures of unit Gaussians, on a fine line."""
    line = np.linspace(means.min() - 9, means.max() + 9, 20_001)
    densities = norm.pdf(line[:, None] - means)
    excess = np.maximum(densities @ one - math.exp(level) * (densities @ other), 0.0)
    return float(np.trapezoid(excess, line))


@given(seed=st.integers(0, 2**32 - 1), mixing=st.floats(0.0, 1.0))
def test_gaussian_noise_on_dependent_coordinates_keeps_the_level(seed, mixing):
    generator, delta = np.random.default_rng(seed), 1e-3
    points = cube(3)
    free = generator.dirichlet(np.ones(4))
    copies = np.where(np.abs(points.sum(axis=1)) == 3, 0.5, 0.0)
    prior = mixing * copies + (1 - mixing) * np.concatenate([free, free]) / 2
    weights = generator.uniform(0.05, 0.6, 3)
    means = points @ weights
    # Levels of the first coordinate alone (2 w_0 apart) and of everybody, at δ.
    alone, whole = (level_at(2 * mu, delta) for mu in (weights[0], weights.sum()))
    level = bayesian_level(alone, whole, min(1.0, dependence_of(prior, points)))
    one, other = conditionals(prior, points)
    assert divergence(one, other, means, level) <= delta * (1 + 1e-3)
    assert divergence(other, one, means, level) <= delta * (1 + 1e-3)


def level_at(mu, delta):
    from consortium.privacy.gdp import epsilon_of

    return epsilon_of(mu, delta)


def test_the_level_of_the_coordinate_alone_would_not_hold():
    # The falsifier: forget the dependence, and the odds change by more.
    points, delta = cube(3), 1e-3
    prior = 0.9 * np.where(np.abs(points.sum(axis=1)) == 3, 0.5, 0.0) + 0.1 / 8
    weights = np.array([mu_of(0.2, delta), mu_of(2.0, delta), mu_of(2.0, delta)]) / 2
    one, other = conditionals(prior, points)
    assert divergence(one, other, points @ weights, 0.2) > 10 * delta


def test_for_randomized_responses_without_delta():
    # Pure ε: one coordinate told with e^c, all others with e^b; outputs are enumerated.
    c, b, points = 0.3, 0.8, cube(3)
    prior = 0.4 * np.where(np.abs(points.sum(axis=1)) == 3, 0.5, 0.0) + 0.6 / 8
    losses = np.array([c, b, b])
    same = (points[:, None] == points[None]).astype(float)
    kernel = np.prod(np.exp(losses * same) / (1 + np.exp(losses)), axis=2)
    one, other = conditionals(prior, points)
    ratio = np.max(np.abs(np.log((one @ kernel) / (other @ kernel))))
    level = bayesian_level(c, c + 2 * b, dependence_of(prior, points))
    assert c < ratio <= level


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bayesian_level(3.0, 2.0, 0.1), "must be between 0 and the participant's"),
        (lambda: bayesian_level(1.0, 2.0, 1.1), "between 0 and 1, got"),
        (lambda: bayesian_level(1.0, math.inf, 0.1), "participant's ε must be"),
        (lambda: alone_level(0.2, 2.0, 0.5), "Lower the participant's"),
        (lambda: alone_level(0.2, 2.0, 1.0), "Lower the participant's"),
    ],
)
def test_what_can_t_be_is_refused(call, message):
    with pytest.raises(PrivacyError, match=message):
        call()
