"""Outcomes some rows at a time: the same sums and bounds as of all at once."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.glm_data import make_people
from benchmarks.glm_runs import make_trial, noise_of, run_trial
from benchmarks.glm_surface import trial_on_surfaces
from benchmarks.glm_units import CELLS, Rows, make_rows, units_trial
from consortium.algorithms.base import SurfacePlaces
from consortium.algorithms.glm import in_parts
from consortium.algorithms.glm.in_parts import Outcomes
from consortium.algorithms.glm.kernels.outcome_correlation import EqualCorrelation
from consortium.kernels.surface_modes import SurfaceModes
from tests.unit.algorithms import test_glm_smooth, test_glm_surface


def some_people():
    """Long tails, and values that are missing."""
    people = make_people(120, 23, 4, np.random.default_rng(3))
    missing = np.random.default_rng(4).random(people.outcomes.shape) < 0.05
    return replace(people, outcomes=np.where(missing, np.nan, people.outcomes**3))


@pytest.mark.parametrize(
    "asked", [{}, {"contrasts": "all", "averages": {"some": ["brain1", "brain2*"]}}]
)
def test_a_study_finds_the_same_whatever_the_parts(monkeypatch, asked):
    trial = make_trial(some_people(), **asked)
    found = []
    for numbers in (1 << 16, 150, 1):
        monkeypatch.setattr(in_parts, "NUMBERS", numbers)
        found.append(run_trial(trial, noise_of(8.0, 4), np.random.default_rng(1)))
    for other in found[1:]:
        for name, values in found[0].arrays.items():
            np.testing.assert_allclose(other.arrays[name], values, rtol=1e-9, atol=1e-12)
        assert other.tables.keys() == found[0].tables.keys()


def test_units_of_several_rows_are_the_same_whatever_the_parts(monkeypatch):
    rows = make_rows(CELLS["families, ICC .3"], 4, 80, np.random.default_rng(2))
    trial, found = units_trial(rows), []
    for numbers in (1 << 16, 1):
        monkeypatch.setattr(in_parts, "NUMBERS", numbers)
        found.append(run_trial(trial, noise_of(8.0, 4), np.random.default_rng(1)))
    for name, values in found[0].arrays.items():
        np.testing.assert_allclose(found[1].arrays[name], values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("basis", ["voxels", "vertices"])
def test_a_smooth_basis_finds_the_same_whatever_the_parts(monkeypatch, basis):
    """A person's maps are made part by part of the sums of all parts."""
    if basis == "voxels":
        trial = test_glm_smooth.few_trial(test_glm_smooth.few_people())
    else:
        trial = test_glm_surface.few_trial(test_glm_surface.few_people())
    found = []
    for numbers in (1 << 16, 1200, 1):
        monkeypatch.setattr(in_parts, "NUMBERS", numbers)
        found.append(run_trial(trial, noise_of(8.0, 4), np.random.default_rng(1)))
    for other in found[1:]:
        for name, values in found[0].arrays.items():
            np.testing.assert_allclose(other.arrays[name], values, rtol=1e-9, atol=1e-12)


def outcomes_of_three(numbers, monkeypatch):
    monkeypatch.setattr(in_parts, "NUMBERS", numbers)
    table = np.random.default_rng(0).standard_normal((9, 3))
    everything = np.arange(9), np.zeros(9), np.ones(9), 8.0
    return Outcomes(table, *everything, EqualCorrelation(9, 0.1))


@pytest.mark.parametrize("numbers", [6, 1 << 16])
def test_who_is_beyond_numbers_adds_nothing_and_everybody_else_at_most_the_norm(
    monkeypatch, numbers
):
    outcomes = outcomes_of_three(numbers, monkeypatch)
    factors = np.array([1.0, np.inf, 1e200])
    with np.errstate(all="ignore"):
        alone = [
            outcomes.sum_clipped(
                lambda part, person=person: {
                    "x": np.where(np.arange(3) == person, part.left * factors, 0.0)
                },
                {"x": 0.5},
            )["x"]
            for person in range(3)
        ]
    sizes = [np.linalg.norm(each) for each in alone]
    assert sizes[0] == pytest.approx(0.5)
    assert sizes[1] == 0
    assert sizes[2] == pytest.approx(0.5)


def wide_modes(many):
    """Of a hemisphere of so many vertices, of which no mesh was made."""
    generator = np.random.default_rng(2)
    vectors, values = generator.standard_normal((many, 20)), np.linspace(0.0, 0.02, 20)
    return SurfaceModes(values, vectors / np.sqrt(many), np.arange(0, 40, 2), float(many))


@pytest.mark.parametrize("kind", ["persons", "units", "vertices"])
def test_beside_the_table_a_site_needs_little_memory(kind):
    persons, many = 24, 100_000
    people = make_people(4 * persons, 2, 4, np.random.default_rng(0))
    wide = np.random.default_rng(1).standard_normal((4 * persons, many)).T
    people = replace(
        people,
        outcomes=wide,
        location=np.zeros(many),
        deviation=np.ones(many),
        truth=np.zeros(many),
    )
    if kind == "units":
        unit = np.arange(4 * persons) // 2
        columns = people.group.astype(float), np.clip(people.covariates, -1, 1), unit, people.site
        trial = units_trial(Rows(wide, *columns), 2, norms={"location": 0.0, "deviation": 1.0})
    elif kind == "vertices":
        sides = tuple(wide_modes(many // 2) for _ in range(2))
        places = SurfacePlaces(np.zeros((many, 3)), lambda: sides)
        trial = trial_on_surfaces(people, places, smoothness=40.0, cutoff=50.0)
    else:
        trial = make_trial(people)
    # Persons stand one behind the other, as a site reads them.
    for site in trial.sites:
        site._whole = site.table().T.copy().T
    tracemalloc.start()
    try:
        run_trial(trial, noise_of(8.0, 4), np.random.default_rng(1))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < sum(site.table().nbytes for site in trial.sites)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.99])
def test_norms_of_encoded_outcomes_follow_from_their_sums(correlation):
    outcome_correlation = EqualCorrelation(500, correlation)
    outcomes = np.random.default_rng(0).standard_normal((500, 4)) * [1.0, 1e6, 0.0, 1.0]
    outcomes[:, 3] = 2.0  # alike in all outcomes, where the sum of squares cancels
    found = outcome_correlation.encoded_norms(
        np.square(outcomes).sum(axis=0), outcomes.mean(axis=0)
    )
    np.testing.assert_allclose(
        found, np.linalg.norm(outcome_correlation.encode(outcomes), axis=0), rtol=1e-12
    )


def test_nobody_is_worked_out_twice_who_is_within_the_norm(monkeypatch):
    outcomes, seen = outcomes_of_three(6, monkeypatch), []

    def blocks(part):
        seen.append(part.rows)
        return {"x": part.left}

    whole = outcomes.sum_clipped(blocks, {"x": 1e9})["x"]
    assert len(seen) == 5
    np.testing.assert_allclose(whole, outcomes.table.sum(axis=1))
    outcomes.sum_clipped(blocks, {"x": 1e-9})
    assert len(seen) == 15
