"""Maps on the cortex in a smooth basis: what is released, and what maps are made of."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.glm_data import make_people
from benchmarks.glm_runs import least_squares, make_trial, run_trial
from benchmarks.glm_surface import measured
from benchmarks.glm_surface_stress import CELLS, by_f, by_t
from consortium.algorithms.base import SurfacePlaces
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.kernels.surface_correlation import SurfaceCorrelation
from consortium.algorithms.glm.smooth import cutoffs_of, smoothly_alike
from consortium.errors import StudyError
from consortium.kernels.surface_modes import surface_modes
from consortium.simulation.array_data import ArrayData
from tests.support.surfaces import TINY, sphere
from tests.unit.algorithms import test_glm_sensitivity as search

FEW = {"basis": "smooth", "smoothness": 40.0, "cutoff": 90.0}


def places(vertices=150):
    points, triangles = sphere(vertices)
    own = points[:, 2] < 50
    sides = [surface_modes(points, triangles, wall, most=40) for wall in (own, ~own | own)]
    return SurfacePlaces(np.concatenate([points[own], points]), lambda: tuple(sides))


PLACES = places()
VERTICES = len(PLACES.coordinates)


def few_trial(people, **analysis):
    trial = make_trial(people, **{**FEW, **analysis})
    for site in trial.sites:
        site.extent = replace(site.extent, surface_places={"brain": PLACES})
    return replace(trial, shape=replace(trial.shape, surface_places={"brain": PLACES}))


def few_people(persons=120):
    people = make_people(persons, VERTICES, 4, np.random.default_rng(0))
    return replace(
        people,
        outcomes=np.clip(people.outcomes, -3, 3) / 3,
        covariates=np.clip(people.covariates, -1, 1),
        deviation=np.ones(VERTICES),
        location=np.zeros(VERTICES),
    )


def test_without_noise_maps_are_those_of_least_squares_in_the_long_modes():
    people = few_people()
    result = run_trial(few_trial(people, gap=2), 0.0, np.random.default_rng(0))
    effects, _, _ = least_squares(people.design(), people.outcomes)
    smooth = SurfaceCorrelation(PLACES.modes, 40.0, 90.0)
    expected = smooth.project(effects[:, None])[:, 0]
    assert result.arrays["effect"] == pytest.approx(expected, abs=1e-8)
    assert result.numbers["smooth_maps"] == smooth.released < VERTICES / 2
    assert result.numbers["finest_detail_mm"] == 45.0
    assert "details finer than about 45 mm are smoothed away" in result.captions.meaning
    assert "lowest modes of the cortex's Laplace-Beltrami operator" in result.captions.methods


def test_only_the_coefficients_of_the_modes_are_released():
    trial = few_trial(few_people())
    plan = Glm(trial.parameters, replace(trial.shape, noise=0.2))
    (effects,) = (b for b in plan.releases[-1].bound.blocks if b.name == "effects")
    assert effects.entries == sum(side.below(90.0) for side in PLACES.modes)


def test_a_site_takes_the_modes_of_the_view_that_is_asked_for():
    """And not those of another of the same size."""
    people, other = few_people(), places()
    wrong = SurfacePlaces(other.coordinates, lambda: tuple(reversed(other.modes)))
    trial = few_trial(people)
    for site in trial.sites:
        site.extent = replace(site.extent, surface_places={"brain": PLACES, "dx": wrong})
    first = run_trial(few_trial(people), 0.0, np.random.default_rng(0))
    again = run_trial(trial, 0.0, np.random.default_rng(0))
    np.testing.assert_array_equal(first.arrays["effect"], again.arrays["effect"])


def test_waves_that_a_mesh_has_not_are_refused():
    finest = max(side.finest for side in PLACES.modes)
    parameters = few_trial(few_people()).parameters
    asked = parameters.model_copy(update={"smoothness": 20.0, "cutoff": None})
    assert finest <= cutoffs_of(asked, PLACES)[0] <= finest + 0.01
    assert smoothly_alike(PLACES, 20.0, cutoffs_of(asked, PLACES)[0]).released > 0
    with pytest.raises(StudyError, match="or longer for the mesh's 1,000 maps"):
        smoothly_alike(PLACES, 20.0, 0.9 * finest)
    with pytest.raises(StudyError, match=r"field 'analysis\.cutoff'"):
        smoothly_alike(PLACES, 20.0, 1000.0)


def test_no_replacement_moves_a_block_further_than_planned(monkeypatch):
    def site_of(table, hashes=None):
        people = [person[:, None] for person in table.T]
        places = {"brain": TINY}
        return ArrayData(
            people, views=search.SHAPE.views, surface_places=places, person_hashes=hashes
        )

    monkeypatch.setattr(search, "site_of", site_of)
    shape = replace(search.SHAPE, image_places=None, surface_places={"brain": TINY})
    given = {"basis": "smooth", "smoothness": 30.0, "cutoff": 60.0}
    plan, largest = Glm(make_trial(search.PEOPLE, **given).parameters, shape), 0.0
    for seed in range(400):
        generator = np.random.default_rng(seed)
        release = plan.releases[seed % len(plan.releases)]
        query = search.honest(release.statistic, int(generator.integers(3)), plan)
        if seed % 3:
            query = search.hostile(query, generator)
        table = np.stack([search.person(generator) for _ in range(search.PERSONS)], axis=1)
        other, hashes = search.neighbour(table, generator)
        largest = max(largest, *search.ratios(query, table, other, plan, hashes).values())
    assert 0.3 < largest <= 1 + 1e-9


@pytest.mark.parametrize("name", ["no difference", "all of them"])
def test_unkind_maps_are_told_few_differences_that_are_not_there(name):
    t, f = ([test(CELLS[name], 6, run) for run in range(n)] for test, n in ((by_t, 4), (by_f, 30)))
    assert np.mean([run["t"] for run in t]) <= 0.06
    assert np.mean([run["F"] for run in f]) <= 0.06
    assert 0.93 <= np.mean([run["covered"] for run in t]) <= 0.985
    if name != "no difference":
        assert np.mean([run["power"] for run in f]) > 0.7


def test_maps_are_as_far_off_as_was_forecast():
    for tally in measured(3, 1460, 20.0)[0].values():
        assert 0.9 <= tally.root("forecast") / tally.root("square") <= 1.1
