"""A consortium in memory: the whole path of a number, against plain NumPy."""

import numpy as np
import pytest

from consortium.algorithms import REGISTRY
from consortium.simulation.simulation import Simulation
from tests.support.cases import CASES, drive, make_sites, make_study, sites_for, study_of

STEADY = ("average", "cca", "coordinate", "ica", "network", "pca", "regression")
"""Analyses whose results don't hang on rounding; the contract's tests look at every release."""
KINDS = [("cape", "exact"), ("cape", 1e4), ("local", "exact"), ("none", "exact")]
"""Schemes, each with a boost."""


@pytest.mark.parametrize(("name", "case"), [each for each in CASES if each.values[0] in STEADY])
def test_without_privacy_the_engine_changes_nothing(name, case):
    sites, study = sites_for(case), study_of(name, case, scheme="none")
    result = Simulation(study, sites, seed=0).run()
    _, _, expected = drive(REGISTRY[name], study.analysis, sites)
    for key, array in expected.arrays.items():  # an eigenvector's sign is anybody's
        size = np.abs(array)
        assert np.abs(result.arrays[key]) == pytest.approx(size, abs=1e-4 * size.max(initial=0.0))


@pytest.mark.parametrize(("scheme", "boost"), KINDS)
def test_released_noise_is_what_the_result_says(scheme, boost):
    sites = make_sites(subjects=(5, 5, 5, 5), features=400)
    study = make_study(scheme=scheme, boost=boost, epsilon=1.0)
    exact = Simulation(make_study(scheme="none"), sites, seed=0).run().arrays["mean"]
    noisy = Simulation(study, sites, seed=3).run()
    deviation = noisy.numbers["noise_deviation"]
    assert (noisy.arrays["mean"] - exact).std() == pytest.approx(deviation, rel=0.15, abs=1e-6)
    assert deviation == 0.0 if scheme == "none" else deviation > 0.1


def test_local_noise_is_louder_and_that_of_both_boosts_alike():
    sites = make_sites(subjects=(5, 5, 5, 5), features=10)
    deviation = {
        kind: stage.mechanism.noise.aggregate()
        for kind in KINDS
        for stage in Simulation(
            make_study(scheme=kind[0], boost=kind[1], colluding_sites=0), sites, seed=0
        ).plan.stages
    }
    exact = deviation["cape", "exact"]
    assert deviation["cape", 1e4] == pytest.approx(exact, rel=1e-3)
    assert deviation["local", "exact"] == pytest.approx(2 * exact, rel=1e-3)


@pytest.mark.parametrize(("scheme", "boost"), KINDS)
def test_the_seed_decides_everything(scheme, boost):
    study = make_study("ica", {"components": 2, "rounds": 2}, scheme=scheme, boost=boost)
    one, same, other = (
        Simulation(study, make_sites(), seed=seed).run().arrays["mixing"] for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert np.array_equal(one, other) == (scheme == "none")


def test_every_round_is_watched_in_order():
    simulation = Simulation(make_study("ica", {"components": 2, "rounds": 3}), make_sites(), seed=0)
    seen = []
    result = simulation.run(seen.append)
    assert [(r.number, r.stage) for r in seen] == [(1, "pca"), (2, "ica"), (3, "ica"), (4, "ica")]
    assert all(r.survivors == (0, 1, 2, 3) for r in seen)
    assert result is simulation.session.result


def test_one_site_alone():
    study = make_study(sites=["only"], colluding_sites=0, scheme="local")
    result = Simulation(study, make_sites(subjects=(6,)), seed=0).run()
    assert result.arrays["mean"].shape == (6, 1)
