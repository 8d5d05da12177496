"""`average`: intervals where entries vary differently, and squares that cost nothing."""

import math

import numpy as np
import pytest

from benchmarks.uneven import averaged
from consortium.algorithms import REGISTRY
from tests.support.cases import drive, shape_of, sites_of

AVERAGE = REGISTRY["average"]
VIEWS = (("x", 3),)


def test_intervals_of_a_column_of_two_levels_hold():
    inside, widths, errors = [], [], []
    for seed in range(60):
        found, truth = averaged(400, 6, 0.85, 8.0, seed)
        inside += [each.low <= true <= each.high for each, true in zip(found, truth, strict=True)]
        widths.append((found[0].high - found[0].low) / 3.92)
        errors.append(found[0].value - truth[0])
    assert 0.92 <= np.mean(inside) <= 0.99
    assert 0.8 < np.mean(widths) / np.std(errors) < 1.25  # as if all varied alike: 0.5 to 0.7


def test_without_noise_errors_are_those_of_the_entries():
    table = np.random.default_rng(0).uniform(-1, 1, (3, 60)) * np.array([[1.0], [0.3], [0.05]])
    sites = sites_of(table, VIEWS, (40, 20))
    result = drive(AVERAGE, AVERAGE.Parameters(bound=3**0.5), sites)[2]
    found = [row[-1] for row in result.tables["means"].rows]
    half = [(each.high - each.low) / 2 for each in found]
    assert half == pytest.approx(1.959964 * table.std(axis=1) / 60**0.5, rel=1e-6)
    assert result.arrays["mean"][:, 0] == pytest.approx(table.mean(axis=1), abs=1e-12)


@pytest.mark.parametrize("reach", [0.7, 1e-200, 1e200])
def test_squares_cost_nothing_beside_the_mean(reach):
    # The worst pair is opposite, and reaches the bound; no other pair is beyond it.
    rng, local = np.random.default_rng(1), AVERAGE.statistics["mean_squares"]
    parameters = AVERAGE.Parameters(bound=reach)
    site = sites_of(np.zeros((3, 1)), VIEWS, (1,))
    (release,) = AVERAGE(parameters, shape_of(site)).planned()
    assert release.bound.sensitivity(1) == 2 * reach

    def apart(one, other):
        sites = sites_of(np.column_stack([one, other]), VIEWS, (1, 1))
        both = [local(None, each, None, release.bound) for each in sites]
        assert all(np.linalg.norm(v / reach) <= math.sqrt(1.5) * (1 + 1e-9) for v in both)
        return np.linalg.norm((both[0] - both[1]) / reach) / 2

    corner = np.array([reach, 0.0, 0.0])
    assert apart(corner, -corner) == pytest.approx(1.0)
    for _ in range(300):
        one, other = reach * rng.standard_normal((2, 3)) * rng.choice([0.3, 1.0, 5.0], (2, 3))
        near = -one * (1 + 0.2 * rng.standard_normal(3))
        assert max(apart(one, other), apart(one, near)) <= 1 + 1e-12
