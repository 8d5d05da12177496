"""Parts of a vector: how far one can move a release, and the weights with the least noise."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from consortium.kernels.moments import pack_symmetric
from consortium.privacy.view_bounds import Part, PartsBound, choose_weights

SEEDS = st.integers(0, 2**32 - 1)


def ball(generator, size, radius):
    vector = generator.standard_normal(size)
    return radius * generator.random() ** 0.2 * vector / np.linalg.norm(vector)


@pytest.mark.parametrize("cone", [False, True])
@given(seed=SEEDS, lead=st.floats(0.05, 0.99))
def test_no_change_of_one_part_moves_further_than_its_spread(cone, seed, lead):
    generator = np.random.default_rng(seed)
    rest = math.sqrt(1 - lead**2)
    bound = PartsBound(1.0, cone, parts=(Part(2, lead, 1.0), Part(3, rest, 1.0)))
    p, q, r = (ball(generator, n, s) for n, s in ((2, lead), (2, lead), (3, rest)))
    one, other = np.append(p, r), np.append(q, r)
    if cone:
        one, other = (pack_symmetric(np.outer(z, z)) for z in (one, other))
    assert np.linalg.norm(one - other) <= bound.part_spread(0) * (1 + 1e-9)


@pytest.mark.parametrize("lead", [0.1, 0.5, 0.7, 0.8, 0.95])
def test_two_persons_reach_the_spread_of_products(lead):
    rest = 1 - lead**2
    cosine = max(-1.0, -rest / lead**2)
    p = lead * np.array([1.0, 0.0])
    q = lead * np.array([cosine, math.sqrt(1 - cosine**2)])
    one, other = (np.append(v, math.sqrt(rest)) for v in (p, q))
    bound = PartsBound(1.0, cone=True, parts=(Part(2, lead, 1.0),))
    distance = np.linalg.norm(np.outer(one, one) - np.outer(other, other))
    assert distance == pytest.approx(bound.part_spread(0))


def test_influence_and_single_entries_scale_the_spread():
    parts = (Part(4, 0.3, 2.0),)
    assert PartsBound(0.6, parts=parts).part_spread(0) == pytest.approx(1.2)
    assert PartsBound(0.6, parts=parts).part_spread(0, single=True) == pytest.approx(0.6)
    assert PartsBound(0.6, influence=12.0, parts=parts).part_spread(0) == pytest.approx(12.0)


def objective(weights, costs):
    return float(np.sum(np.asarray(costs) / np.square(weights)))


@given(seed=SEEDS, count=st.integers(1, 5))
def test_weights_are_feasible_and_no_others_nearby_are_better(seed, count):
    generator = np.random.default_rng(seed)
    costs, radii = generator.uniform(1, 50, (2, count))
    limits = generator.choice([0.01, 0.1, math.inf], count)
    weights = np.array(choose_weights(costs, radii, limits))
    used = np.sum((radii * weights) ** 2)
    assert (weights <= limits * (1 + 1e-12)).all()
    assert used <= 1 + 1e-9
    assert used > 1 - 1e-9 or np.allclose(weights, limits)
    for _ in range(20):
        tried = np.minimum(weights * np.exp(0.1 * generator.standard_normal(count)), limits)
        tried = tried * min(1.0, 1 / math.sqrt(np.sum((radii * tried) ** 2)))
        assert objective(tried, costs) >= objective(weights, costs) * (1 - 1e-9)


def test_weights_as_a_general_optimizer_finds_them():
    costs, radii, limits = [2.0, 8.0, 5.0], [1.4, 2.8, 1.0], [0.05, math.inf, math.inf]
    result = minimize(  # over logarithms, in which the objective is smooth everywhere
        lambda u: math.log(objective(np.exp(u), costs)),
        np.log([0.04, 0.2, 0.2]),
        bounds=[(-9, math.log(0.05)), (-9, 0), (-9, 0)],
        constraints={"type": "ineq", "fun": lambda u: 1 - np.square(radii) @ np.exp(2 * u)},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    weights = choose_weights(costs, radii, limits)
    assert list(weights) == pytest.approx(np.exp(result.x).tolist(), rel=1e-3)
    assert objective(weights, costs) <= math.exp(result.fun) * (1 + 1e-9)
