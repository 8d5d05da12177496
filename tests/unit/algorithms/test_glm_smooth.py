"""Images in a smooth basis: what is released, what maps are made of, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
import yaml

from benchmarks.glm_data import make_people
from benchmarks.glm_runs import least_squares, make_trial, noise_of, run_trial
from benchmarks.glm_smooth import SMOOTHNESS, measured, people_of_images, trial_of_images
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Places
from consortium.algorithms.glm import smooth
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.kernels.outcome_correlation import SmoothCorrelation
from consortium.algorithms.glm.power import forecast_power, why_hopeless
from consortium.algorithms.glm.smooth import cutoffs_of, smoothly_alike
from consortium.errors import StudyError
from consortium.kernels.smooth_basis import SmoothBasis
from consortium.simulation.array_data import ArrayData
from consortium.simulation.simulation import Simulation
from consortium.space.grid import template_grid
from consortium.study.reader import parse_study
from consortium.study.spec import Study

GLM = REGISTRY["glm"]
SMOOTH = {"basis": "smooth", "smoothness": SMOOTHNESS}
SITES = ("north", "east", "south", "west")
GRID = Places(10.0 * np.argwhere(np.ones((5, 5, 5))), 1000.0)
FEW = {"basis": "smooth", "smoothness": 24.0, "cutoff": 30.0}


def few_people(seed=0, persons=120):
    people = make_people(persons, 125, 4, np.random.default_rng(seed))
    return replace(
        people,
        outcomes=np.clip(people.outcomes, -3, 3) / 3,
        covariates=np.clip(people.covariates, -1, 1),
        deviation=np.ones(125),
        location=np.zeros(125),
    )


def few_trial(people, **analysis):
    trial = make_trial(people, **FEW, **analysis)
    for site in trial.sites:
        site.extent = replace(site.extent, image_places=GRID)
    return replace(trial, shape=replace(trial.shape, image_places=GRID))


def test_without_noise_maps_are_those_of_least_squares_without_their_short_waves():
    people = few_people()
    result = run_trial(few_trial(people, gap=2), 0.0, np.random.default_rng(0))
    effects, _, _ = least_squares(people.design(), people.outcomes)
    smooth = SmoothCorrelation(GRID.coordinates, 24.0, 30.0)
    expected = smooth.project(effects[:, None])[:, 0]
    assert result.arrays["effect"] == pytest.approx(expected, abs=1e-9)
    assert result.numbers["smooth_maps"] == smooth.released < 125
    assert result.numbers["finest_detail_mm"] == 15.0
    assert "details finer than about 15 mm are smoothed away" in result.captions.meaning


def test_only_the_coefficients_of_the_basis_are_released():
    trial = few_trial(few_people())
    plan = Glm(trial.parameters, replace(trial.shape, noise=0.2))
    (effects,) = (b for b in plan.releases[-1].bound.blocks if b.name == "effects")
    assert effects.entries == SmoothCorrelation(GRID.coordinates, 24.0, 30.0).released
    assert (plan.outcome_correlation.smoothness, plan.computed["cutoff"]) == (24.0, 30.0)


def test_intervals_of_maps_cover_and_errors_are_a_fraction_of_those_of_voxels():
    waves, pool = measured(6, {**SMOOTH, "cutoff": 1.5 * SMOOTHNESS})
    voxels, _ = measured(3, {})
    for epsilon, tally in waves.items():
        assert 0.92 < tally.mean("covered") < 0.985
        assert tally.mean("size") < 0.08
        assert 0.9 < tally.root("stated") / tally.root("square") < 1.2
        assert 0.85 < tally.root("forecast") / tally.root("stated") < 1.25
        assert tally.root("square") < 0.6 * voxels[epsilon].root("square")
    assert waves[8.0].root("square") < 1.6 * pool.root("square")


def test_the_more_noise_there_is_the_longer_are_the_waves_that_are_kept():
    people = people_of_images(np.random.default_rng(0))
    trial = trial_of_images(people, **SMOOTH)
    cutoffs = [
        Glm(trial.parameters, replace(trial.shape, noise=noise_of(epsilon, 8))).cutoff
        for epsilon in (0.5, 2.0, 8.0)
    ]
    assert cutoffs == sorted(cutoffs, reverse=True)
    assert cutoffs[0] > cutoffs[-1]
    table = GLM(trial.parameters, replace(trial.shape, noise=noise_of(8.0, 8))).foretell()
    errors = {row[0]: row[1] for row in table.rows}
    assert errors["with a cutoff half as long again"] < errors["as it is"]


def test_of_a_brain_those_waves_are_tried_that_are_few_enough():
    grid = template_grid(8.0)
    places = Places(grid.coordinates, 512.0)
    parameters = few_trial(few_people()).parameters
    asked = parameters.model_copy(update={"smoothness": 16.0, "cutoff": None})
    assert cutoffs_of(asked, places) == (24.0, 28.0, 32.0, 40.0)
    rough = parameters.model_copy(update={"smoothness": 8.0, "cutoff": None})
    assert cutoffs_of(rough, places) == (20.0,)
    with pytest.raises(StudyError, match=r"at most 1,000 .* about 23 mm"):
        smoothly_alike(places, 8.0, 20.0)


def study(**analysis):
    values = {
        "outcomes": "faces",
        "formula": "diagnosis",
        "contrasts": {"patients": "diagnosis"},
        "groups": {site: [15, 15] for site in SITES},
        "norms": {"deviation": 0.5},
        "anyway": True,
        **FEW,
        **analysis,
    }
    return Study.model_validate(
        {
            "study": "faces",
            "sites": list(SITES),
            "features": [
                {"name": "faces", "source": "fmri", "measure": "image", "image": "faces"},
                {
                    "name": "who",
                    "source": "table",
                    "columns": {"diagnosis": {"levels": ["control", "patient"]}},
                },
            ],
            "privacy": {"epsilon": 8, "delta": 1e-5, "colluding_sites": 1},
            "algorithm": "glm",
            "analysis": values,
        }
    )


def sites_of_images(places):
    generator, found = np.random.default_rng(4), []
    smooth = SmoothCorrelation(GRID.coordinates, 24.0, 30.0)
    where = np.exp(-0.5 * np.square(GRID.coordinates - 20).sum(axis=1) / 15**2)
    for _ in SITES:
        group = generator.permutation(np.repeat([-1.0, 1.0], 15))
        images = 0.3 * smooth.decode(generator.standard_normal((smooth.released, 30)))
        table = np.vstack([images + np.outer(where, group > 0), group])
        people = [person[:, None] for person in table.T]
        views = (("faces", 125), ("who", 1))
        found.append(ArrayData(people, views=views, image_places=places))
    return found, where


def test_maps_come_out_of_a_private_exchange():
    sites, where = sites_of_images(GRID)
    result = Simulation(study(), sites, 3).run()
    effect = result.images["faces_contrast-patients_stat-effect"].values[:, 0]
    assert np.corrcoef(effect, where)[0, 1] > 0.7
    assert len(result.arrays["effect"]) == 125
    told = result.captions.headline
    assert (
        f"of 125 voxels, in maps computed from {result.numbers['smooth_maps']} numbers, differ"
        in told
    )
    variance = result.images["faces_contrast-patients_stat-variance"].values[:, 0]
    assert np.all(variance > 0)
    assert effect / np.sqrt(variance) == pytest.approx(result.arrays["t"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"smoothness": None}, "smoothness: is required"),
        ({"basis": "entries"}, "smoothness: requires 'basis: smooth'"),
        ({"contrasts": "all"}, "one contrast of one view"),
        (
            {"contrasts": {"a": "diagnosis", "b": "diagnosis"}},
            "contrasts: must be one name with its column",
        ),
        ({"covariates": {"aeg": {"mean": 1, "deviation": 1}}}, "aeg is not a column"),
        ({"averages": {"some": ["1"]}}, "one contrast of one view"),
        ({"smoothness": 0.0}, "greater than or equal to 1"),
        ({"smoothness": 1e9}, "less than or equal to 100"),
        ({"cutoff": 1e9}, "less than or equal to 1000"),
    ],
)
def test_a_basis_that_does_not_hang_together_is_not_read(changes, message):
    with pytest.raises(ValueError, match=message):
        study(**changes)


FAR = Places(np.vstack([GRID.coordinates[:-1], [1e9, 1e9, 1e9]]), 1000.0)
"""Of a mask with one voxel far away from all others."""
MANY = Places(np.zeros((10_001, 3)), 1000.0)


@pytest.mark.parametrize(
    ("places", "changes", "message"),
    [
        (None, {}, "smooth requires one view of images that has a number for every voxel"),
        (MANY, {}, "one view of images"),
        (GRID, {"cutoff": 20.0}, "must be 25 mm or longer for voxels of this size, got 20"),
        (FAR, {}, "too short for the extent of the mask's voxels"),
    ],
)
def test_a_basis_that_the_voxels_do_not_allow_is_not_planned(places, changes, message):
    sites, _ = sites_of_images(places)
    with pytest.raises(StudyError, match=message):
        Simulation(study(**changes), sites, 0).run()


def test_a_cutoff_that_makes_too_many_maps_is_refused_with_one_that_does_not():
    fine = Places(5.0 * np.argwhere(np.ones((16, 16, 16))), 125.0)
    with pytest.raises(StudyError, match=r"at most 1,000 .* about 15"):
        smoothly_alike(fine, 5.0, 12.5)
    assert SmoothBasis(fine.coordinates, 15.0).size <= 1000


def test_a_plan_passes_over_cutoffs_that_make_too_many_maps(monkeypatch):
    trial = few_trial(few_people())
    parameters = trial.parameters.model_copy(update={"cutoff": None})
    cutoffs = cutoffs_of(parameters, GRID)
    sizes = [SmoothBasis(GRID.coordinates, cutoff).size for cutoff in cutoffs]
    assert sizes[0] > sizes[1]
    smoothly_alike.cache_clear()
    monkeypatch.setattr(smooth, "_MOST_MAPS", sizes[1])
    assert Glm(parameters, trial.shape).cutoff >= cutoffs[1]
    monkeypatch.setattr(smooth, "_MOST_MAPS", 0.5)
    smoothly_alike.cache_clear()
    with pytest.raises(StudyError, match="Set a cutoff of about"):
        Glm(parameters, trial.shape)


def test_a_cutoff_that_smooths_the_asked_effect_away_is_not_worth_it():
    trial = few_trial(few_people())
    shape = replace(trial.shape, noise=0.01)
    verdicts = {}
    for cutoff in (30.0, 300.0):
        parameters = trial.parameters.model_copy(update={"cutoff": cutoff, "detect": 0.8})
        plan = Glm(parameters, shape)
        verdicts[cutoff] = why_hopeless(plan, forecast_power(plan))
    assert verdicts[30.0] == ""
    assert "of which such a cutoff keeps" in verdicts[300.0]


def test_tables_have_no_smooth_basis():
    sites, _ = sites_of_images(GRID)
    asked = study()
    values = asked.model_dump(mode="json", exclude_none=True)
    columns = {"image[1-125]": {"low": -1, "high": 1}}
    values["features"][0] = {"name": "faces", "source": "table", "columns": columns}
    with pytest.raises(StudyError, match="one view of images"):
        Simulation(Study.model_validate(values), sites, 0).run()


@pytest.mark.parametrize("deviation", [0.0, [0.5, 0.0]])
def test_a_wrong_norm_is_told_by_the_name_of_its_field(deviation):
    values = study().model_dump(mode="json", exclude_none=True)
    values["analysis"]["norms"]["deviation"] = deviation
    with pytest.raises(StudyError, match=r"analysis\.norms\.deviation(\.1)? must be a number"):
        parse_study(yaml.safe_dump(values))
