"""The mega-analysis: least squares without noise, and honest errors with it."""

import re
from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from benchmarks.glm_data import make_people
from benchmarks.glm_runs import found_by, least_squares, make_trial, noise_of, run_trial
from benchmarks.glm_variants import wrong_groups
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Shape
from consortium.algorithms.glm import design
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.clipping import MEAN_CLIP_FACTORS
from consortium.algorithms.glm.kernels.contrast_regression import TOTAL_DEVIATION
from consortium.algorithms.glm.kernels.covariate_adjustment import (
    CovariateSums,
    adjust,
    left_of_noise,
)
from consortium.errors import StudyError
from consortium.simulation.array_data import ArrayData
from consortium.simulation.simulation import Simulation
from consortium.study.plan import make_plan
from consortium.study.spec import Study
from tests.support.cases import sites_of

GLM = REGISTRY["glm"]
SITES = ("north", "east", "south", "west")


COUNTED = {"shares": 0.5, "groups": {}}


class NoNoise:
    """In the place of a generator: what is planned with noise is released without."""

    def standard_normal(self, size):
        return np.zeros(size)


def calm_people(seed=0, persons=200, entries=5):
    """Persons whom nobody clips: no heavy tails, no scanner effects beyond the limits."""
    people = make_people(persons, entries, 4, np.random.default_rng(seed))
    return replace(
        people,
        outcomes=np.clip(people.outcomes, -3, 3) / 3,
        covariates=np.clip(people.covariates, -1, 1),
        deviation=np.full(entries, 1.0),
        location=np.zeros(entries),
    )


def test_without_noise_it_is_least_squares_with_a_constant_for_every_site():
    people = calm_people()
    # Groups that are expected far apart have room for all weights.
    result = run_trial(make_trial(people, gap=2), 0.0, np.random.default_rng(0))
    effects, errors, _ = least_squares(people.design(), people.outcomes)
    assert result.arrays["effect"] == pytest.approx(effects, abs=1e-10)
    assert result.numbers["clipped"] == pytest.approx(0.0, abs=1e-10)
    # Pairs know the variance of the outcomes within sites, of which covariates explain a part.
    assert result.arrays["error"] == pytest.approx(errors, rel=0.35)


def test_outcomes_that_are_centred_exactly_where_they_start_have_effects_without_noise():
    people = calm_people(entries=40)
    half = np.rint(64 * people.outcomes[:, : people.outcomes.shape[1] // 2]) / 64
    mirrored = np.hstack([half, -half])
    group = np.arange(mirrored.shape[1]) % 2 == 0
    site = np.arange(mirrored.shape[1]) * 4 // mirrored.shape[1]
    people = replace(people, outcomes=mirrored, group=group, site=site)
    trial = make_trial(people, formula="dx1", covariates={})
    found = run_trial(trial, 0.0, np.random.default_rng(0))
    assert found.numbers["learned_shift"] < 1e-12
    assert np.isfinite(found.arrays["p"]).all()
    design = np.delete(people.design(), [1, 2, 3], axis=0)
    assert found.arrays["effect"] == pytest.approx(least_squares(design, mirrored)[0], abs=1e-10)


@pytest.mark.parametrize("slope", [False, True])
def test_without_noise_no_column_is_cut_however_small_its_stated_deviation(slope):
    people = calm_people(1, persons=400)
    norms = {"mean": 0, "deviation": 0.01}
    asked = {"contrasts": {"age": "age1"}, "groups": {}} if slope else {}
    trial = make_trial(people, covariates={"age1": norms, "icv1": norms}, **asked)
    found = run_trial(trial, 0.0, np.random.default_rng(0))
    columns = people.design()
    order = [1, 0, *range(2, len(columns))] if slope else [*range(len(columns))]
    effects = least_squares(columns[order], people.outcomes)[0]
    unit = 8.0 * 0.01 if slope else 1.0
    assert found.arrays["effect"] == pytest.approx(unit * effects, abs=1e-9)


def test_without_covariates_counts_a_look_and_one_release_compare_the_groups_within_sites():
    people = calm_people()
    trial = make_trial(people, formula="dx1", covariates={})
    planned = GLM(trial.parameters, trial.shape).planned()
    assert [release.stage for release in planned] == ["counts", "norms", "contrast"]
    result = run_trial(trial, 0.0, np.random.default_rng(0))
    design = np.delete(people.design(), [1, 2, 3], axis=0)
    assert result.arrays["effect"] == pytest.approx(
        least_squares(design, people.outcomes)[0], abs=1e-10
    )


@pytest.mark.parametrize(
    ("epsilon", "persons", "entries", "sites"), [(2, 400, 20, 4), (8, 700, 30, 9)]
)
def test_intervals_cover_and_false_positives_are_as_rare_as_promised(
    epsilon, persons, entries, sites
):
    covered, false, squared, errors, forecast = [], [], [], [], []
    for seed in range(60):
        generator = np.random.default_rng((seed, sites))
        people = make_people(persons, entries, sites, generator)
        result = run_trial(make_trial(people), noise_of(epsilon, sites), generator)
        truth, found = people.truth / people.deviation, result.arrays
        covered.append(np.mean((found["low"] <= truth) & (truth <= found["high"])))
        false.append(np.mean(found["p"][truth == 0] < 0.05))
        squared.append(np.mean(np.square(found["effect"] - truth)))
        errors.append(np.mean(np.square(found["error"])))
        forecast.append(result.numbers["forecast_error"])
    assert 0.935 < np.mean(covered) < 0.99
    assert 0.02 < np.mean(false) < 0.065
    assert 0.95 < np.sqrt(np.mean(errors) / np.mean(squared)) < 1.22
    assert 0.9 < np.mean(forecast) / np.sqrt(np.mean(errors)) < 1.12


def test_with_no_effect_anywhere_hardly_anything_is_discovered():
    discovered = []
    for seed in range(40):
        generator = np.random.default_rng((seed, 1))
        people = make_people(500, 20, 4, generator, effect=0.0)
        result = run_trial(make_trial(people), noise_of(4, 4), generator)
        discovered.append(found_by(result.arrays["p"]).any())
    assert np.mean(discovered) <= 0.15


def test_the_same_seed_leads_to_the_same_result_to_the_last_digit():
    trial = make_trial(calm_people())
    one, other = (run_trial(trial, 0.3, np.random.default_rng(5)) for _ in range(2))
    assert all(np.array_equal(one.arrays[name], other.arrays[name]) for name in one.arrays)


def test_a_site_that_misses_a_round_leaves_the_others_estimate():
    people = calm_people()
    trial = make_trial(people, formula="dx1", covariates={})
    gone = frozenset({1})
    result = run_trial(trial, 0.0, np.random.default_rng(0), (gone, gone, gone))
    there = np.isin(people.site, (0, 2, 3))
    design = np.delete(people.design(there), [1, 2, 3], axis=0)
    expected = least_squares(design, people.outcomes[:, there])[0]
    assert result.arrays["effect"] == pytest.approx(expected, abs=1e-10)


# -- the plan ------------------------------------------------------------------------------


def plan_for(persons, entries, epsilon, sites=8, **analysis):
    """A plan for balanced groups in equal sites."""
    each = persons // sites // 2
    values = {
        "outcomes": "brain",
        "formula": "dx1 + age1 + icv1 + sex1",
        "contrasts": {"patients": "dx1"},
        "groups": {f"s{n}": [each, each] for n in range(sites)},
        "norms": {"deviation": 1.0},
        **analysis,
    }
    views = (("brain", entries), ("dx", 1), ("age", 1), ("icv", 1), ("sex", 1))
    sizes = (2 * each,) * sites
    noise = noise_of(epsilon, sites)
    shape = Shape(entries + 4, sizes, sizes, "subject", 0, views, tuple(values["groups"]), noise)
    return GLM.Parameters.model_validate(values), shape


def test_the_shares_of_a_study_of_regions_are_those_that_were_worked_out():
    # The four have shares of 0.80, 0.08, 0.01, 0.02 and 0.69, 0.16, 0.02, 0.05 of what the counts
    # of groups leave, which is 0.87 and 0.78.
    published = ((152, 0.95, (0.70, 0.07, 0.01, 0.02)), (20, 1.05, (0.54, 0.12, 0.02, 0.04)))
    for entries, height, expected in published:
        shares = Glm(*plan_for(1000, entries, 4)).design.at_height(height).shares
        found = [shares[name] for name in ("effects", "contrast", "moment", "means")]
        assert found == pytest.approx(expected, abs=0.02)


def test_noise_asks_for_a_lower_clip_and_chance_for_a_higher_one():
    assert Glm(*plan_for(400, 400, 1)).clipping.height == 0.65
    assert Glm(*plan_for(8000, 20, 8)).clipping.height >= 1.5


def test_a_hard_clip_is_for_outcomes_of_which_no_part_is_shared_by_all():
    for correlation in (0.0, 0.25, 0.6):
        clipping = Glm(
            *plan_for(1000, 5, 0.5, norms={"deviation": 1.0, "correlation": correlation})
        ).clipping
        assert clipping.lost <= 0.13
    assert clipping.height == 1.3  # most of five outcomes that are alike is shared
    alike, apart = (
        Glm(*plan_for(1000, 20, 2, norms={"deviation": 1.0, "correlation": r})).clipping.height
        for r in (0.6, 0.0)
    )
    assert apart < alike


@pytest.mark.parametrize(("entries", "height"), [(20, 0.65), (68, 0.65), (20, 1.05)])
def test_an_effect_that_all_outcomes_share_loses_no_more_than_is_said(entries, height, monkeypatch):
    monkeypatch.setattr(design, "MEAN_CLIP_FACTORS", {height: MEAN_CLIP_FACTORS[height]})
    told, lost = [], []
    for seed in range(4):
        people = make_people(1000, entries, 8, np.random.default_rng(seed), effect=0.0)
        found = []
        for shift in (0.0, 0.5):
            moved = replace(people, outcomes=people.outcomes + shift * people.group)
            result = run_trial(make_trial(moved), noise_of(4, 8), NoNoise())
            found.append(np.mean(result.arrays["effect"] * people.deviation))
        lost.append(1 - (found[1] - found[0]) / 0.5)
        trial = make_trial(people)
        shape = replace(trial.shape, noise=noise_of(4, 8))
        told.append(Glm(trial.parameters, shape).clipping.lost)
    assert np.mean(lost) == pytest.approx(np.mean(told), abs=0.045)


@pytest.mark.parametrize(
    ("entries", "epsilon", "enough"), [(20, 4, 470), (152, 4, 860), (400, 8, 750)]
)
def test_a_study_is_refused_below_about_the_persons_that_power_needs(entries, epsilon, enough):
    GLM(*plan_for(int(1.15 * enough), entries, epsilon)).planned()
    with pytest.raises(StudyError, match=r"smallest detectable effect.*analysis\.detect.*0\.5"):
        GLM(*plan_for(int(0.7 * enough), entries, epsilon)).planned()


def test_a_refusal_says_what_would_be_enough_and_that_is():
    parameters, shape = plan_for(600, 152, 4)
    with pytest.raises(
        StudyError, match=r"participants in sites as these.*outcomes instead of 152"
    ):
        GLM(parameters, shape).planned()
    assert GLM(parameters.model_copy(update={"anyway": True}), shape).planned()
    GLM(*plan_for(1000, 152, 4)).planned()


def test_a_large_site_that_would_do_better_alone_is_told_so():
    groups = {"big": [200, 200], **{f"s{n}": [10, 10] for n in range(5)}}
    parameters, shape = plan_for(600, 152, 2, sites=6, groups=groups, detect=5)
    sizes = tuple(sum(counts) for counts in groups.values())
    shape = replace(shape, subjects=sizes, samples=sizes, sites=tuple(groups))
    with pytest.raises(StudyError, match="largest site by itself"):
        GLM(parameters, shape).planned()


def test_few_outcomes_are_no_ten_groups():
    parameters, shape = plan_for(1000, 5, 4)
    offered = [row[0] for row in GLM(parameters, shape).foretell().rows]
    assert "a quarter of the outcomes" in offered
    assert "means of ten groups of outcomes" not in offered


def test_the_plan_tells_what_half_the_epsilon_and_fewer_outcomes_would_see():
    parameters, shape = plan_for(1000, 152, 4)
    table = GLM(parameters, shape).foretell()
    errors = {row[0]: row[1] for row in table.rows}
    assert (
        errors["twice the noise (near half the ε)"]
        > errors["as it is"]
        > errors["half the noise (near twice the ε)"]
    )
    assert errors["as it is"] > errors["a quarter of the outcomes"]
    assert errors["as it is"] > errors["means of ten groups of outcomes"]
    # By hand: noise 5 √V_e / (n μ_c), chance 2 / √n.
    by_hand = np.hypot(5 * np.sqrt(124) / 1000 * noise_of(4, 8), 2 / np.sqrt(1000))
    by_hand *= TOTAL_DEVIATION
    assert errors["as it is"] == pytest.approx(by_hand, rel=0.15)
    assert "992 in balanced sites" in table.caption
    assert {row[0]: row[-1] for row in table.rows}["twice the noise (near half the ε)"] == "no"


def test_slopes_that_are_noise_are_halved_and_real_ones_are_kept():
    noise = {"contrast": 10.0, "moment": 1.0, "means": 1.0}
    persons, moment, hidden = np.full(4, 250.0), 1000 * np.eye(3), np.ones(3, dtype=bool)
    for products, kept in ((np.zeros(3), 0.5), (np.full(3, 12.0), 0.5), (np.full(3, 100.0), 0.99)):
        found = adjust(
            CovariateSums(products, moment, np.zeros((4, 3)), hidden, noise),
            *(persons, np.ones(4), 250.0),
        )
        assert found.kept == pytest.approx(kept, abs=1e-3)
        assert found.slopes == pytest.approx(found.kept * found.inverse @ products)
    quiet = adjust(
        CovariateSums(products, moment, np.zeros((4, 3)), hidden, dict.fromkeys(noise, 0.0)),
        *(persons, np.ones(4), 250.0),
    )
    assert quiet.kept == 1.0


def test_what_is_said_to_be_left_of_the_slopes_noise_is_left():
    for columns in (3, 6):
        for size in (0.5, 2.0, 5.0):
            truth = np.zeros(columns)
            truth[0] = size * np.sqrt(columns)
            found = truth + np.random.default_rng(0).standard_normal((4000, columns))
            kept = np.clip(1 - columns / np.sum(found**2, axis=1), 0.5, 1.0)
            wrong = np.mean(np.sum((kept[:, None] * found - truth) ** 2, axis=1)) / columns
            assert wrong < 1.1 * np.mean([left_of_noise(k, columns) for k in kept])


def test_a_site_is_told_at_home_where_its_groups_are_not_the_stated_ones():
    people = calm_people()
    trial = make_trial(people)
    compare = GLM(trial.parameters, trial.shape).compare
    for number, site in enumerate(trial.sites):
        assert compare(number, site) == ()
    changed = trial.sites[1].table().copy()
    changed[5, : changed.shape[1] // 2] = np.abs(changed[5, : changed.shape[1] // 2])
    changed[5, changed.shape[1] // 2 :] = changed[5, 0]
    (note,) = compare(1, ArrayData(list(changed.T[:, :, None])))
    assert "'dx1'" in note
    assert "no information on the difference" in note
    changed[5, 0] *= -1
    (note,) = compare(1, ArrayData(list(changed.T[:, :, None])))
    assert "the study expects" in note


def study_of_images(image, scheme="none", **analysis):
    values = study_of(scheme).model_dump(mode="json", exclude_none=True)
    values["features"] = [values["features"][0], {"name": "faces", "source": "fmri", **image}]
    values["analysis"] |= {"outcomes": "faces", "norms": {"deviation": 0.3}, **analysis}
    return Study.model_validate(values)


def run_on_images(**image):
    values = study_of_images(image).model_dump(mode="json")
    study = Study.model_validate(values)
    table = wards_and_regions()
    table[6] += 0.3 * (table[4] > 0)
    data = sites_of(table, (("who", 5), ("faces", 3)), (50,) * 4)
    return Simulation(study, data, 0).run()


def test_strengths_of_components_are_not_painted_as_voxels():
    result = run_on_images(measure="components", components="maps.nii.gz")
    assert not result.images
    assert result.tables["contrast-patients"].voxels_of == ()


def test_outcomes_that_are_images_become_maps_with_discoveries_coloured():
    result = run_on_images(measure="image", image="faces")
    assert {name.rpartition("-")[2] for name in result.images} == {
        *("effect", "variance", "t", "z", "p", "q", "faces_coverage")
    }
    shown = result.images["faces_contrast-patients_stat-t"]
    assert shown.entities == {"contrast": "patients", "stat": "t"}
    assert shown.view == "faces"
    assert result.tables["contrast-patients"].voxels_of == ("faces",)
    assert np.array_equal(shown.coloured()[:, 0] != 0, result.arrays["q"] <= 0.05)
    assert shown.coloured()[1, 0] == result.arrays["t"][1] > 0


def test_groups_that_the_covariates_explain_end_the_study_with_its_budget_unspent():
    generator = np.random.default_rng(0)
    people = make_people(1200, 20, 7, generator)
    apart = people.covariates.copy()
    apart[0] = 2.0 * people.group - 1 + 0.15 * generator.standard_normal(1200)
    trial = make_trial(replace(people, covariates=apart), anyway=False, detect=0.5)
    result = run_trial(trial, noise_of(8, 7), generator)
    assert result.numbers["explained_by_covariates"] > 0.8
    assert "smallest detectable effect" in result.numbers["stopped"]
    assert "the covariates explain about" in result.captions.headline
    assert result.captions.headline.startswith("Stopped")
    assert not result.captions.found
    assert not result.loadings


def test_a_site_is_told_that_its_groups_are_counted_with_noise():
    (counted,) = GLM(*plan_for(400, 20, 8)).remarks()
    assert re.search(
        r"released with noise of about [\d.]+ participants; the privacy guarantee covers it",
        counted,
    )
    assert GLM(*plan_for(400, 20, 8, contrasts={"age": "age1"}, groups={})).remarks() == ()


def test_groups_are_counted_in_a_round_of_their_own():
    for more in ({}, COUNTED):
        plan = Glm(*plan_for(4000, 68, 4, **more))
        assert [release.stage for release in plan.releases] == ["counts", "norms", "contrast"]
        assert sum(release.share for release in plan.releases) == pytest.approx(1.0)


def test_intervals_hold_the_truth_where_groups_are_counted_and_parts_expected_wrongly():
    covered, stated, squared = [], [], []
    for seed in range(25):
        generator = np.random.default_rng((seed, 9))
        people = make_people(500, 20, 8, generator)
        trial = make_trial(people, **COUNTED)
        found = run_trial(trial, noise_of(4, 8), generator).arrays
        truth = people.truth / people.deviation
        covered.append(np.mean((found["low"] <= truth) & (truth <= found["high"])))
        squared.append(np.mean((found["effect"] - truth) ** 2))
        stated.append(np.mean(found["error"] ** 2))
    assert 0.935 < np.mean(covered) < 0.99
    assert 0.95 < np.sqrt(np.mean(stated) / np.mean(squared)) < 1.2


def test_errors_of_means_vary_by_about_a_fifth_as_their_table_says():
    people = make_people(400, 20, 8, np.random.default_rng(0))
    trial = make_trial(people, averages={"some": ["brain[1-5]"], "all": ["*"]})
    results = [run_trial(trial, noise_of(4, 8), np.random.default_rng((k, 5))) for k in range(40)]
    means, single = (
        np.array([result.arrays[name] for result in results]) for name in ("average_error", "error")
    )
    spread = np.mean(means.std(axis=0) / means.mean(axis=0))
    assert 0.14 < spread < 0.28
    assert np.mean(single.std(axis=0) / single.mean(axis=0)) < 1.1 * spread
    assert "varies by about a fifth" in results[0].tables["averages-patients"].caption


def test_intervals_hold_where_groups_are_stated_wrongly():
    right, wrong = [], []
    for seed in range(15):
        generator = np.random.default_rng((seed, 77))
        people = make_people(4000, 20, 8, generator)
        stated = make_trial(people).parameters.groups
        for tally, groups in ((right, stated), (wrong, wrong_groups(stated, 0.1))):
            result = run_trial(make_trial(people, groups=groups), noise_of(4, 8), generator)
            found, truth = result.arrays, people.truth / people.deviation
            tally.append(np.mean((found["low"] <= truth) & (truth <= found["high"])))
    assert np.mean(right) > 0.93
    assert np.mean(wrong) > 0.93


def test_counts_that_contradict_what_was_expected_are_in_the_headline():
    people = make_people(1000, 20, 4, np.random.default_rng(3))
    parts = {f"s{n}": float(people.group[people.site == n].mean()) for n in range(4)}
    shares = {**dict.fromkeys(parts, 0.5), **parts}
    trial = make_trial(people, **{**COUNTED, "shares": shares})
    named = replace(trial, shape=replace(trial.shape, sites=tuple(parts)))
    told = run_trial(named, noise_of(8, 4), np.random.default_rng(0))
    assert "released counts" not in told.captions.headline
    assert told.numbers["counted_share"] == pytest.approx(people.group.mean(), abs=0.05)
    far = "s1"
    trial = make_trial(people, **{**COUNTED, "shares": {**shares, far: 0.95}})
    named = replace(trial, shape=replace(trial.shape, sites=tuple(parts)))
    headline = run_trial(named, noise_of(8, 4), np.random.default_rng(0)).captions.headline
    found = re.search(r"expects at (s\d) \((\d+) % instead of 95 %\)", headline)
    assert found
    assert found[1] == far
    assert int(found[2]) / 100 == pytest.approx(parts[far], abs=0.06)
    assert "the plan and its forecast are for other groups" in headline


def test_a_study_whose_counts_show_one_group_only_ends_with_its_budget_unspent():
    people = replace(calm_people(), group=np.zeros(len(calm_people().group), dtype=bool))
    trial = make_trial(people, **COUNTED, anyway=False, detect=5)
    result = run_trial(trial, 0.01, np.random.default_rng(0))
    assert "smallest detectable effect" in result.numbers["stopped"]
    assert "The released counts of 'dx1' differ" in result.captions.headline


# -- the study file -------------------------------------------------------------------------


def study_of(scheme="none", **analysis):
    """A study with columns by name, in their own units."""
    values = {
        "outcomes": "brain",
        "formula": "diagnosis + age + ward",
        "contrasts": {"patients": "diagnosis"},
        "groups": {site: [20, 30] for site in SITES},
        "norms": {"location": 2.5, "deviation": 0.6},
        "covariates": {"age": {"mean": 50, "deviation": 10}},
        "gap": 2,
        **analysis,
    }
    return Study.model_validate(
        {
            "study": "regions",
            "sites": list(SITES),
            "features": [
                {
                    "name": "who",
                    "source": "table",
                    "columns": {
                        "age": {"low": 20, "high": 80},
                        "ward": {"levels": ["a", "b", "c"]},
                        "diagnosis": {"levels": ["control", "patient"]},
                    },
                },
                {
                    "name": "brain",
                    "source": "table",
                    "columns": {"region[1-3]": {"low": 1, "high": 4}},
                },
            ],
            "privacy": {
                "epsilon": 8,
                "delta": 1e-5,
                "colluding_sites": 1,
                "scheme": scheme,
                "boost": "exact",
            },
            "algorithm": "glm",
            "analysis": values,
        }
    )


def wards_and_regions(seed=0):
    """Persons in the order of their sites, as a site's tables hold them."""
    generator = np.random.default_rng(seed)
    group = np.tile(np.where(np.arange(50) < 20, -1.0, 1.0), 4)
    age = generator.uniform(-0.6, 0.6, 200)
    ward = generator.integers(3, size=200)
    wards = (ward[None] == np.arange(3)[:, None]).astype(float)
    brain = generator.normal(0, 0.15, (3, 200)) + 0.1 * age + 0.05 * ward
    brain[1] += 0.1 * (group > 0)
    return np.vstack([age, wards, group, brain])


def test_columns_are_found_by_name_and_norms_are_in_their_units():
    study, table = study_of(), wards_and_regions()
    views = (("who", 5), ("brain", 3))
    result = Simulation(study, sites_of(table, views, (50,) * 4), 0).run()
    sites = (np.repeat(np.arange(4), 50)[None] == np.arange(4)[:, None]).astype(float)
    design = np.vstack([table[4] > 0, table[0], table[2:4], sites])
    effects = least_squares(design, table[5:])[0]
    # A unit of the view is 1.5 of the column's, whose public standard deviation is 0.6.
    assert result.arrays["effect"] == pytest.approx(1.5 * effects / 0.6, abs=1e-4)
    assert result.arrays["loadings"][5:, 0] == pytest.approx(result.arrays["effect"])
    assert not result.arrays["loadings"][:5].any()
    table_of = result.tables["contrast-patients"]
    assert [row[:2] for row in table_of.rows] == [("brain", f"region{n}") for n in (1, 2, 3)]


def test_a_private_study_gives_the_same_within_its_own_error():
    table = wards_and_regions()
    study = study_of("cape", anyway=True)
    result = Simulation(study, sites_of(table, (("who", 5), ("brain", 3)), (50,) * 4), 3).run()
    plain = study_of(anyway=True)
    exact = Simulation(plain, sites_of(table, (("who", 5), ("brain", 3)), (50,) * 4), 3).run()
    away = np.abs(result.arrays["effect"] - exact.arrays["effect"]) / result.arrays["error"]
    assert away.max() < 4
    assert result.arrays["error"].min() > exact.arrays["error"].max()


def test_the_loss_of_both_rounds_is_the_promised_one():
    shape = Shape(8, (50,) * 4, (50,) * 4, "subject", 0, (("who", 5), ("brain", 3)))
    plan = make_plan(study_of("cape", anyway=True), shape)
    assert plan.rounds == 3
    assert plan.epsilon == pytest.approx(8.0, rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"formula": "diagnosis - age"}, "products of two and squares"),
        ({"formula": "diagnosis + age + age"}, "named twice"),
        ({"formula": "age"}, "must be in the formula"),
        ({"groups": {"north": [20, 30]}}, "every site of the study"),
        ({"groups": {site: [0, 0] for site in SITES}}, "at least one participant"),
        ({"contrasts": {}}, "contrasts: must be one name with its column"),
        ({"formula": ""}, "at least 1 character"),
        ({"counts": "released"}, "counts: numbers .* are always released"),
        ({"shares": 0.5}, "shares: 'groups' already"),
        ({**COUNTED, "shares": {"north": 0.5}}, "analysis.shares.*fraction of participants"),
    ],
)
def test_a_study_that_does_not_hang_together_is_not_read(changes, message):
    with pytest.raises((ValidationError, StudyError), match=message):
        study_of(**changes)


def test_only_outcomes_may_have_gaps():
    values = study_of().model_dump(mode="json", exclude_none=True)
    values["features"][1]["gaps"] = 0.1
    assert Study.model_validate(values).analysis.gaps == 0.1
    values["features"][0]["gaps"] = 0.1
    with pytest.raises(ValidationError, match="view 'who' has gaps, and only outcomes of glm may"):
        Study.model_validate(values)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"formula": "diagnosis + hight"}, "'hight' is not a column.*age, ward, diagnosis"),
        ({"outcomes": "brian"}, "field 'analysis.outcomes'.*'brian'"),
        ({"contrasts": {"x": "age"}}, "analysis.groups.*'age' has limits and no levels"),
        ({"groups": {}}, "'diagnosis', which has 2 levels. Give 'groups'"),
        ({"contrasts": {"x": "ward"}}, "first level"),
        ({"groups": {site: [50, 0] for site in SITES}}, "must have participants of the level"),
        ({"averages": {"lobe": ["frontal*"]}}, "no outcome matches 'frontal\\*'"),
        ({**COUNTED, "contrasts": {"x": "age"}}, "analysis.shares.*'age' has limits and no levels"),
        ({"contrasts": {"x": "ward=b"}}, "each of the 3 levels of column 'ward', got 2"),
        (
            {"groups": {site: [50 * (n % 2), 50 * (1 - n % 2)] for n, site in enumerate(SITES)}},
            "must have participants of both groups",
        ),
        ({"norms": {"deviation": [1.0, 2.0]}}, "analysis.norms.deviation.*3 outcomes, got 2"),
    ],
)
def test_a_study_that_does_not_fit_its_views_is_not_planned(changes, message):
    shape = Shape(8, (50,) * 4, (50,) * 4, "subject", 0, (("who", 5), ("brain", 3)))
    with pytest.raises(StudyError, match=message):
        make_plan(study_of(**changes), shape)


def test_more_coefficients_than_persons_are_refused():
    people = calm_people(persons=24)
    trial = make_trial(people)
    shape = replace(trial.shape, subjects=(2, 1, 2, 2), noise=0.1)
    with pytest.raises(StudyError, match=r"have 8 coefficients.*7 participants"):
        GLM(trial.parameters, shape).planned()


def test_a_site_of_one_group_is_named_in_the_plan():
    groups = {f"s{n}": [50, 50 * (n > 0)] for n in range(4)}
    parameters, shape = plan_for(400, 20, 8, sites=4, groups=groups)
    assert (
        "one group only, which add nothing and may be removed: s0."
        in GLM(parameters, shape).foretell().caption
    )


@pytest.mark.parametrize(
    ("row", "value", "message"),
    [
        (0, 0.5, "the same value of 'age'"),
        (6, 0.3, "the same value of 'region2'"),
    ],
)
def test_a_site_is_told_at_home_of_columns_that_can_not_be_meant(row, value, message):
    study, table = study_of(), wards_and_regions()
    table[row, :50] = value
    site = sites_of(table, (("who", 5), ("brain", 3)), (50,) * 4)[0]
    shape = Shape(8, (50,) * 4, (50,) * 4, "subject", 0, (("who", 5), ("brain", 3)), SITES)
    assert any(re.search(message, note) for note in GLM(study.analysis, shape).compare(0, site))
    calm = sites_of(wards_and_regions(), (("who", 5), ("brain", 3)), (50,) * 4)[0]
    assert GLM(study.analysis, shape).compare(0, calm) == ()


def test_a_covariate_that_is_there_twice_changes_no_effect():
    people = calm_people()
    once = run_trial(make_trial(people), 0.0, np.random.default_rng(0))
    twice = replace(people, covariates=people.covariates[[0, 0, 2]])
    both = run_trial(make_trial(twice), 0.0, np.random.default_rng(0))
    single = np.delete(people.design(), 2, axis=0)
    expected = least_squares(single, people.outcomes)[0]
    assert both.arrays["effect"] == pytest.approx(expected, abs=1e-8)
    assert once.arrays["effect"] != pytest.approx(expected, abs=1e-8)


def test_a_level_of_several_is_held_against_the_first():
    groups = {site: [20, 20, 10] for site in SITES}
    study = study_of(contrasts={"b": "ward=b"}, groups=groups)
    table = wards_and_regions()
    sizes = np.repeat([0, 1, 2], [20, 20, 10])
    ward = np.hstack([np.random.default_rng(n).permutation(sizes) for n in range(4)])
    table[1:4] = ward[None] == np.arange(3)[:, None]
    result = Simulation(study, sites_of(table, (("who", 5), ("brain", 3)), (50,) * 4), 0).run()
    sites = (np.repeat(np.arange(4), 50)[None] == np.arange(4)[:, None]).astype(float)
    design = np.vstack([table[2], table[0], table[3], table[4], sites])
    effects = least_squares(design, table[5:])[0]
    assert result.arrays["effect"] == pytest.approx(1.5 * effects / 0.6, abs=1e-4)


def test_two_levels_of_several_differ_by_as_much_whichever_is_the_first():
    views, effects = (("who", 5), ("brain", 3)), []
    table = wards_and_regions()
    ward = np.hstack(
        [np.random.default_rng(n).permutation(np.repeat([0, 1, 2], [20, 20, 10])) for n in range(4)]
    )
    for order, asked in (((0, 1, 2), "b"), ((1, 0, 2), "a")):
        names = ["abc"[number] for number in order]
        values = study_of().model_dump(mode="json", exclude_none=True)
        values["features"][0]["columns"]["ward"]["levels"] = names
        numbers = [20 if name in "ab" else 10 for name in names]
        values["analysis"] |= {
            "contrasts": {"x": f"ward={asked}"},
            "groups": dict.fromkeys(SITES, numbers),
        }
        table[1:4] = ward[None] == np.array(order)[:, None]
        found = Simulation(Study.model_validate(values), sites_of(table, views, (50,) * 4), 0).run()
        effects.append((found.arrays["effect"], found.arrays["error"]))
    assert effects[1][0] == pytest.approx(-effects[0][0], abs=1e-6)
    assert effects[1][1] == pytest.approx(effects[0][1], rel=1e-4)  # sums come on a grid


@pytest.mark.parametrize(
    "changes",
    [
        {"contrasts": {"age": "age"}, "groups": {}},
        {"contrasts": {"age": "age"}, "groups": {}, "formula": "age"},
        {"contrasts": "all", "averages": {"both": ["region[12]"]}},
    ],
)
def test_slopes_and_all_coefficients_pass_a_private_exchange(changes):
    sites = sites_of(wards_and_regions(), (("who", 5), ("brain", 3)), (50,) * 4)
    private = Simulation(study_of("cape", anyway=True, **changes), sites, 4).run()
    exact = Simulation(study_of("none", **changes), sites, 3).run()
    away = np.abs(private.arrays["effect"] - exact.arrays["effect"]) / private.arrays["error"]
    assert away.max() < 4
    assert private.arrays["error"].mean() > exact.arrays["error"].mean()
    if "averages" in changes:
        mean = private.arrays["effect"][:2].mean()
        assert private.arrays["average_effect"][0] == pytest.approx(mean)
        assert private.tables["averages-diagnosis"].rows[0][:2] == ("both", 2)
