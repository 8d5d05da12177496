"""An open cohort of group ICA: it draws maps, and only the release decides which are found."""

from dataclasses import replace

import numpy as np
import pytest

from consortium.algorithms.group_ica.with_open import HERE, NEW, OPEN_ONLY, UNCONFIRMED
from consortium.algorithms.open_cohort import OpenDirections, OpenTable
from consortium.algorithms.subspace import directions_of, smooth_basis
from consortium.errors import StudyError
from consortium.simulation.array_data import ArrayData
from consortium.simulation.simulation import Simulation
from consortium.study.plan import make_plan
from consortium.study.spec import Study
from tests.support.cases import make_study, shape_of
from tests.unit.algorithms.test_group_ica import PLACES, VOXELS, make_brains, true_maps

CUTOFF, KEPT = 30.0, 5
SITES = np.repeat(list("abcd"), 15)


def open_cohort(amplitude=1.0, blocks=None):
    """Directions of 60 open participants with the networks of `make_brains`, or others."""
    basis = smooth_basis(PLACES, CUTOFF).matrix
    if blocks is None:
        made = make_brains(15, amplitude=amplitude, seed=9)
        blocks = [block for site in made for block in site.blocks()]
    values = np.array(list(directions_of(blocks, basis, "keep", KEPT)))
    return OpenDirections(values, SITES, CUTOFF, "keep", "")


@pytest.fixture(scope="module")
def cohort():
    return open_cohort()


def study(epsilon, **analysis):
    asked = {"directions": KEPT, "replays": 10, "anyway": True, "open": "cohort.npz", **analysis}
    return make_study("group_ica", asked, epsilon=epsilon)


def data_of(cohort, amplitude=1.0, persons=40):
    made = make_brains(persons, amplitude=amplitude)
    return [ArrayData(list(d.blocks()), places=PLACES, open_cohort=cohort) for d in made]


def run(epsilon, cohort, amplitude=1.0):
    return Simulation(study(epsilon), data_of(cohort, amplitude), 3).run()


def states(result):
    table = result.tables["components"]
    return [row[table.columns.index("network")] for row in table.rows]


def test_it_shows_networks_that_the_noise_hides_and_the_release_confirms(cohort):
    asked = study(0.5, open=None, cutoff=CUTOFF)
    assert Simulation(asked, data_of(None), 3).run().numbers["found"] < 3
    both = run(0.5, cohort)
    assert both.numbers["found"] >= 4
    assert states(both).count(HERE) == both.numbers["found"]


@pytest.mark.parametrize("nominal", [20, 80])
def test_nominal_numbers_may_be_half_or_twice_the_true_ones(cohort, nominal):
    asked = study(0.5).model_dump(exclude_unset=True)
    asked["participants"] = dict.fromkeys(asked["sites"], nominal)
    both = Simulation(Study.model_validate(asked), data_of(cohort, persons=40), 3).run()
    maps, truth = both.arrays["maps"], true_maps(PLACES.fine)
    agreed = np.abs(np.corrcoef(truth.T, maps.T)[: truth.shape[1], truth.shape[1] :]).max(axis=0)
    assert both.numbers["found"] == KEPT
    stated = both.images["components"].accuracy
    assert all(each.low <= r for each, r in zip(stated, agreed, strict=True))


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0, 50.0])
def test_networks_that_only_the_open_cohort_has_are_never_found(cohort, epsilon):
    result = run(epsilon, cohort, amplitude=0.0)
    assert result.numbers["found"] == 0
    shown = result.images["components"].found if "components" in result.images else ()
    assert not any(shown)


def test_networks_that_only_the_hospitals_have_are_found_and_named_new():
    result = run(50.0, open_cohort(0.0))
    assert result.numbers["found"] >= 4
    if "network" in result.tables["components"].columns:
        assert set(states(result)) <= {NEW, HERE, OPEN_ONLY, UNCONFIRMED}
        assert states(result).count(NEW) >= 4


def test_a_network_that_the_open_cohort_lacks_is_new_and_the_others_are_not():
    generator = np.random.default_rng(12)
    maps = true_maps(VOXELS)[:, : KEPT - 1]
    blocks = [
        (
            maps @ generator.standard_normal((KEPT - 1, 40))
            + 0.5 * generator.standard_normal((len(VOXELS), 40))
        ).astype(np.float32)
        for _ in SITES
    ]
    result = run(50.0, open_cohort(blocks=blocks))
    words = states(result)
    assert words.count(NEW) == 1
    assert words.count(HERE) == KEPT - 1


def test_no_number_of_a_map_that_is_not_confirmed_is_published(cohort):
    result = run(2.0, cohort, amplitude=0.0)
    for row in result.tables["components"].rows if result.tables else ():
        if row[-1] != "found":
            assert not row[1].reported
            assert not row[2].reported


def test_the_cutoff_is_that_of_the_file(cohort):
    shape = replace(shape_of(data_of(cohort), "subject"), open_cohort=cohort)
    plan = make_plan(study(8.0), shape).analysis
    assert plan.cutoff == CUTOFF
    assert plan.by_itself.cutoff == CUTOFF
    assert plan.by_itself.open_mean is None


@pytest.mark.parametrize(
    "other",
    [
        lambda c: replace(c, values=c.values[:, :-1]),
        lambda c: replace(c, values=c.values[:, :, : KEPT - 1]),
        lambda c: replace(c, global_signal="remove"),
        lambda _: OpenTable(("a",), (("1",),), ""),
    ],
    ids=["size", "directions", "global signal", "table"],
)
def test_a_cohort_of_another_basis_is_refused(cohort, other):
    shape = replace(shape_of(data_of(cohort), "subject"), open_cohort=other(cohort))
    with pytest.raises(StudyError, match=r"analysis\.open"):
        make_plan(study(8.0), shape)


def test_a_stated_cutoff_must_be_the_files(cohort):
    shape = replace(shape_of(data_of(cohort), "subject"), open_cohort=cohort)
    with pytest.raises(StudyError, match=r"analysis\.open"):
        make_plan(study(8.0, cutoff=CUTOFF + 5.0), shape)


def test_a_study_that_confirms_nothing_is_refused_unless_it_runs_anyway(cohort):
    shape = replace(shape_of(data_of(cohort, persons=40), "subject"), open_cohort=cohort)
    with pytest.raises(StudyError, match="add nothing"):
        make_plan(study(0.02, anyway=False), shape)
    assert make_plan(study(2.0, anyway=False), shape).analysis.planned()


def test_the_forecast_names_what_the_open_cohort_shows_by_itself(cohort):
    shape = replace(shape_of(data_of(cohort), "subject"), open_cohort=cohort)
    plan = make_plan(study(2.0), shape).analysis
    expected = {each.name: each.value for each in plan.expect()}
    assert expected["components found"] >= 4
    assert expected["mean correlation of the open cohort's own maps with the truth"] > 0.8
