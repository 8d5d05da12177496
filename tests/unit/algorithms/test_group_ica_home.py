"""Group ICA at a hospital whose study has an open cohort."""

from dataclasses import replace

import numpy as np
import pytest

from consortium.algorithms.base import Release
from consortium.algorithms.group_ica.at_home import WEIGHTS, results_at_home
from consortium.algorithms.open_cohort import OpenDirections
from consortium.algorithms.subspace import directions_of
from consortium.kernels.home_posterior import (
    ReleaseShare,
    combine_projectors,
    mean_of_projectors,
)
from consortium.kernels.moments import pack_symmetric, unpack_symmetric
from consortium.kernels.noise_law import SymmetricNoise
from consortium.study.plan import make_plan
from tests.support.cases import shape_of
from tests.unit.algorithms.test_group_ica import FINE, make_brains, true_maps
from tests.unit.algorithms.test_group_ica_open import KEPT, open_cohort, states, study

PERSONS = 30


def at_home(cohort, *, epsilon=1.0, amplitude=1.0, own_patients=False):
    """Results of the first of four hospitals."""
    brains = make_brains(PERSONS, amplitude=amplitude)
    shape = replace(shape_of(brains), open_cohort=cohort)
    asked = {} if cohort else {"open": None, "cutoff": 30.0}
    plan = make_plan(study(epsilon, **asked), shape).analysis
    people = [list(directions_of(d.blocks(), plan.for_series, "keep", KEPT)) for d in brains]
    size = plan.size
    matrix = mean_of_projectors([each for site in people for each in site], size)
    matrix = matrix + SymmetricNoise(size, plan.deviation).draw(np.random.default_rng(5))
    taken = ReleaseShare(PERSONS, PERSONS * len(brains), len(brains), plan.deviation)
    posterior = combine_projectors(people[0], matrix, taken, at_home=own_patients)
    release = Release(pack_symmetric(matrix), plan.deviation, (0, 1, 2, 3))
    assert unpack_symmetric(release.values) == pytest.approx(matrix)
    return posterior, results_at_home(posterior, release, plan, own_patients=own_patients)


def agreed(result):
    maps = result.arrays["maps"]
    true = true_maps(FINE)
    table = np.corrcoef(maps.T, true.T)[: maps.shape[1], maps.shape[1] :]
    return float(np.abs(table).max(axis=0).mean())


@pytest.fixture(scope="module")
def cohort():
    return open_cohort()


def weights_of(result):
    return [result.numbers[name] for name in WEIGHTS]


def test_all_three_sources_have_weights_and_make_better_maps(cohort):
    _, alone = at_home(None)
    _, results = at_home(cohort)
    weights = weights_of(results["posterior"])
    assert min(weights) > 0.0
    assert sum(weights) == pytest.approx(1.0)
    assert results["posterior"].numbers["found"] >= 4
    assert agreed(results["posterior"]) > agreed(alone["posterior"]) - 0.01
    assert not set(WEIGHTS) & set(alone["posterior"].numbers)
    assert results["own"].arrays["maps"] == pytest.approx(alone["own"].arrays["maps"])


def test_a_network_that_only_the_open_cohort_has_is_not_found(cohort):
    for epsilon in (1.0, 50.0):
        _, results = at_home(cohort, epsilon=epsilon, amplitude=0.0)
        assert results["posterior"].numbers["found"] == 0


def test_an_open_cohort_that_differs_too_much_changes_nothing(cohort):
    posterior, alone = at_home(None, epsilon=50.0)
    turned = np.random.default_rng(3).permutation(cohort.values.shape[1])
    other = OpenDirections(cohort.values[:, turned], cohort.sites, cohort.cutoff, "keep", "")
    _, results = at_home(other, epsilon=50.0)
    made = results["posterior"]
    assert weights_of(made) == [posterior.share, 1.0 - posterior.share, 0.0]
    assert np.array_equal(made.arrays["maps"], alone["posterior"].arrays["maps"])


def test_the_release_is_that_which_the_study_publishes(cohort):
    _, results = at_home(cohort)
    assert "release_weight" in results["release"].numbers
    assert states(results["posterior"])


def test_own_patients_weigh_own_data_more(cohort):
    everybody, own = (at_home(cohort, own_patients=each)[1] for each in (False, True))
    assert weights_of(own["posterior"])[0] > weights_of(everybody["posterior"])[0]
