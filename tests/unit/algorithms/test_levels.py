"""Columns of three and of five levels, in every analysis of persons' features."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Extent
from consortium.errors import StudyError
from consortium.simulation.simulation import Simulation
from consortium.study.plan import make_plan
from tests.support.cases import SITES, drive_noisy, shape_of, sites_of
from tests.support.levels import People

MANY = pytest.mark.parametrize("many", [3, 5])
PERSONS = 1200


def merged(people, **names):
    """Views of several columns each."""
    views = people.views()
    return [
        {
            "name": view,
            "source": "table",
            "columns": {column: views[column]["columns"][column] for column in columns},
        }
        for view, columns in names.items()
    ]


def simulated(tmp_path, people, algorithm, views, analysis, *, seed=0, **privacy):
    study = people.study(algorithm, views, analysis, **privacy)
    return Simulation(study, people.sites(tmp_path, study), seed).run()


def plain(people):
    """Least squares with a constant for every site: a coefficient a level against their mean."""
    design = np.column_stack([people.dummies[:, 1:], people.age, people.constants])
    found = np.linalg.lstsq(design, people.score, rcond=None)[0]
    many = len(people.levels)
    against_first = np.concatenate([[0.0], found[: many - 1]])
    return np.append(against_first - against_first.mean(), found[many - 1])


SQUARES = {
    "regression": {"target": "score", "bound": 1.5},
    "coordinate": {"target": "score", "levels": {"age": 2.0}},
}


def told(result):
    return [row[-1] for row in result.tables["coefficients"].rows]


@MANY
@pytest.mark.parametrize("name", SQUARES)
def test_coefficients_of_levels_are_those_of_least_squares(tmp_path, name, many):
    people = People(many, PERSONS, many)
    names = ("level", "age", "score")
    views = [people.views()[each] for each in names]
    result = simulated(tmp_path, people, name, views, SQUARES[name], scheme="none")
    assert [each.value for each in told(result)] == pytest.approx(plain(people), abs=1e-9)
    assert sum(each.value for each in told(result)[:many]) == pytest.approx(0, abs=1e-9)
    states = [each.state for each in told(result)]
    assert states[0] == states[many - 1] == states[many] == "found"
    assert all(0 < each.high - each.low < 0.1 for each in told(result))
    assert "against their own mean" in result.tables["coefficients"].caption
    predictor = result.arrays["predictor"][: many + 1, 0]
    assert predictor == pytest.approx(plain(people), abs=1e-9)


@MANY
@pytest.mark.parametrize("noise", [0.0, 0.004])
def test_intervals_of_levels_hold_as_often_as_they_say_and_few_are_found_falsely(many, noise):
    # Fresh persons and fresh noise through the analysis's own halves, on plain arrays.
    regression, generator = REGISTRY["regression"], np.random.default_rng(many)
    inside, false = [], 0
    for seed in range(80):
        people = People(many, 400, 1000 + seed, effects=0.0 if seed % 2 else 0.2)
        result = regressed(regression, people, noise, generator)
        truth = np.append(people.effects - people.effects.mean(), 0.15)
        inside += [each.low <= w <= each.high for w, each in zip(truth, told(result), strict=True)]
        false += bool(seed % 2) and any(each.state == "found" for each in told(result)[:many])
    assert 0.92 <= np.mean(inside) <= 0.985
    assert false <= 6  # of 40, at 5 % over all coefficients


def regressed(regression, people, noise, generator):
    """A regression of the score on levels and age, with Gaussian noise of a deviation."""
    many, order = len(people.levels), np.argsort(people.site, kind="stable")
    table = np.vstack([people.dummies.T, people.age, people.score])[:, order]
    views = (("level", many), ("age", 1), ("score", 1))
    sums = ((range(many), 1.0),)
    return fitted(regression, table, views, np.bincount(people.site), sums, noise, generator)


def fitted(regression, table, views, counts, sums, noise=0.0, generator=None):
    sites = sites_of(table, views, counts)
    parameters = regression.Parameters(target="score", bound=1.5)
    shape = replace(shape_of(sites), known_sums=sums)
    return drive_noisy(
        *(regression, parameters, sites, shape),
        lambda stage: noise if stage.stage == "regression" else 10 * noise,
        generator=generator,
    )


def test_a_centred_view_has_the_coefficients_of_least_norm():
    generator, counts = np.random.default_rng(22), (100, 150, 80, 120)
    x = generator.uniform(-0.3, 0.3, (6, sum(counts)))
    x -= x.mean(axis=0)
    score = 0.5 * x[0] - 0.3 * x[3] + 0.05 * generator.standard_normal(sum(counts))
    views = (("image", 6), ("score", 1))
    result = fitted(
        REGISTRY["regression"], np.vstack([x, score]), views, counts, ((range(6), 0.0),)
    )
    constants = np.repeat(np.eye(4), counts, axis=0)
    expected = np.linalg.lstsq(np.column_stack([x.T, constants]), score, rcond=None)[0][:6]
    assert [each.value for each in told(result)] == pytest.approx(expected, abs=1e-9)
    assert all(each.high - each.low < 0.2 for each in told(result))
    assert told(result)[0].state == told(result)[3].state == "found"


@MANY
@pytest.mark.parametrize("name", SQUARES)
def test_a_level_that_nobody_has_leaves_its_column_untold_and_nothing_else(tmp_path, name, many):
    people = People(many, PERSONS, 20)
    people.level = np.minimum(people.level, many - 2)
    views = [people.views()[each] for each in ("level", "age", "score")]
    result = simulated(tmp_path, people, name, views, SQUARES[name], scheme="none")
    *levels, age = told(result)
    assert all(each.state == "withheld" for each in levels)
    design = np.column_stack([people.dummies[:, 1:-1], people.age, people.constants])
    expected = np.linalg.lstsq(design, people.score, rcond=None)[0][many - 2]
    assert age.value == pytest.approx(expected, abs=1e-9)
    assert age.low < age.value < age.high
    assert age.state == "found"


def test_fewer_persons_than_coefficients_tell_nothing(tmp_path):
    people = People(5, 8, 21)
    views = [people.views()[each] for each in ("level", "age", "other", "score")]
    analysis = {"target": "score", "bound": 2.0}
    result = simulated(tmp_path, people, "regression", views, analysis, scheme="none")
    assert not any(each.reported for each in told(result))
    assert "participants leave every coefficient open" in result.captions.headline


def test_a_model_in_which_nobody_differs_is_refused():
    people = People(3, 8, 0)
    views = people.views()
    image = {"name": "net", "source": "fmri", "measure": "components", "components": "c.nii.gz"}
    study = people.study("regression", [views["score"], image], {"target": "score", "bound": 1.0})
    sizes = (2,) * 4
    extent = Extent(2, 0, (("score", 1), ("net", 1)), known_sums=((range(1, 2), 0.0),))
    with pytest.raises(StudyError, match="field 'features'"):
        make_plan(study, extent.shape(sizes, sizes, "subject"))


@MANY
def test_views_tell_which_of_their_entries_add_up_to_the_same(tmp_path, many):
    people = People(many, 40, 1)
    study = people.study("average", merged(people, one=["age", "level"], two=["score"]), {})
    (site, *_) = people.sites(tmp_path, study)
    assert site.extent.known_sums == ((range(1, 1 + many), 1.0),)
    assert np.ptp(site.table()[1 : 1 + many].sum(axis=0)) == 0


@MANY
def test_canonical_pairs_with_levels_are_those_of_full_rank(tmp_path, many):
    people = People(many, PERSONS, 7)
    views = merged(people, one=["level", "age"], two=["score", "other"])
    analysis = {"pairs": 2, "bounds": {"one": 1.5, "two": 1.5}, "headroom": 3.0}
    result = simulated(tmp_path, people, "cca", views, analysis, scheme="none")
    first = np.column_stack([people.dummies[:, 1:], people.age])
    bases = []
    for view in (first, np.column_stack([people.score, people.other])):
        means = people.constants.T @ view / people.constants.sum(axis=0)[:, None]
        bases.append(np.linalg.qr(view - people.constants @ means)[0])
    expected = np.linalg.svd(bases[0].T @ bases[1])[1]
    assert result.arrays["correlations"] == pytest.approx(expected, abs=1e-6)
    assert result.arrays["found"].all()
    noisy = simulated(tmp_path, people, "cca", views, analysis)
    assert noisy.arrays["correlations"] == pytest.approx(expected, abs=0.15)


@MANY
@pytest.mark.parametrize("scheme", ["none", "cape"])
def test_means_of_levels_are_their_shares(tmp_path, many, scheme):
    people = People(many, PERSONS, 8)
    views = [people.views()[each] for each in ("level", "age")]
    for name in ("average", "coordinate"):
        analysis = {"bound": 1.5} if name == "average" else {}
        result = simulated(tmp_path, people, name, views, analysis, scheme=scheme, boost="exact")
        shares = people.dummies.mean(axis=0)
        error = 1e-9 if scheme == "none" else 0.05
        assert result.arrays["mean"][:many, 0] == pytest.approx(shares, abs=error)


@MANY
def test_components_with_levels_are_those_of_the_second_moment(tmp_path, many):
    people = People(many, PERSONS, 9)
    views = merged(people, one=["level", "age", "score"])
    analysis = {"components": 3, "bound": 10.0}
    result = simulated(tmp_path, people, "pca", views, analysis, scheme="none")
    table = np.column_stack([people.dummies, people.age, people.score])
    expected = np.linalg.eigvalsh(table.T @ table / PERSONS)[::-1][:3]
    assert result.arrays["eigenvalues"] == pytest.approx(expected, abs=1e-9)


@MANY
def test_descriptions_of_levels_have_their_numbers_and_shares(tmp_path, many):
    people = People(many, PERSONS, 10)
    views = [people.views()["level"]]
    result = simulated(tmp_path, people, "describe", views, {}, scheme="none")
    rows = result.tables["table1"].rows
    counts = [row[3].value for row in rows if row[2].startswith("participants")]
    shares = [row[3].value for row in rows if row[2].startswith("share")]
    assert counts[-1] == pytest.approx(people.dummies.sum(axis=0)[-1])
    assert sum(counts) == pytest.approx(PERSONS)
    assert sum(shares) == pytest.approx(1.0)


@MANY
def test_kinds_of_persons_that_are_levels_have_their_shares(tmp_path, many):
    people = People(many, PERSONS, 14)
    views = [people.views()["level"]]
    analysis = {"components": many, "bound": 1.0, "site_constants": False}
    result = simulated(tmp_path, people, "tensor", views, analysis, scheme="none")
    shares = np.sort(people.dummies.mean(axis=0))
    assert np.sort(result.arrays["weights"]) == pytest.approx(shares, abs=1e-6)


@MANY
def test_contrasts_of_levels_are_against_the_first(tmp_path, many):
    people = People(many, PERSONS, 15)
    views = merged(people, out=["score", "other"], person=["level", "age"])
    counts = {
        name: np.bincount(people.level[people.site == s], minlength=many).tolist()
        for s, name in enumerate(SITES)
    }
    analysis = {
        "outcomes": "out",
        "formula": "level + age",
        "contrasts": "all",
        "groups": counts,
        "norms": {"location": 0.0, "deviation": 0.25, "correlation": 0.3},
        "covariates": {"age": {"mean": 0.0, "deviation": 0.55}},
    }
    result = simulated(tmp_path, people, "glm", views, analysis, scheme="none")
    design = np.column_stack([people.dummies[:, 1:], people.age, people.constants])
    expected = np.linalg.lstsq(design, people.score, rcond=None)[0][: many - 1] / 0.25
    row = result.tables["coefficients"].rows[0]
    assert row[3 : 2 + many] == pytest.approx(expected, abs=1e-3)


def test_every_analysis_of_features_has_its_case():
    asked = {name for name, one in REGISTRY.items() if one.takes != "series"}
    source = Path(__file__).read_text()
    assert {name for name in asked if f'"{name}"' not in source} == set()


@MANY
def test_sites_with_other_shares_of_levels_are_told_apart(tmp_path, many):
    people = People(many, PERSONS, 11)
    people.level = np.where(people.site == 3, 0, people.level)
    views = [people.views()["level"], people.views()["age"]]
    result = simulated(tmp_path, people, "summarize", views, {"target": "north"})
    states = [row[2].state for row in result.tables["sites"].rows]
    assert states == ["withheld", "withheld", "found"]


@MANY
def test_a_network_tells_levels_and_learns_from_them(tmp_path, many):
    people = People(many, PERSONS, 12, effects=0.6)
    views = [people.views()[each] for each in ("level", "age", "score")]
    analysis = {"target": "level", "hidden": [8], "rounds": 60}
    result = simulated(tmp_path, people, "network", views, analysis, scheme="none")
    assert result.tables["accuracy"].rows[1][1].low > 0.05


@MANY
def test_a_classifier_among_neighbours_weighs_levels(tmp_path, many):
    linear_model = pytest.importorskip("sklearn.linear_model")
    people = People(many, PERSONS, 13, effects=0.6)
    people.score = np.where(people.score > 0.1, 1.0, -1.0)
    views = [people.views()[each] for each in ("level", "age", "score")]
    more = {"bound": 1.5, "rounds": 200, "site_constants": False, "regularization": 0.001}
    analysis = {"target": "score", **more}
    result = simulated(tmp_path, people, "admm", views, analysis, scheme="none")
    table = np.column_stack([people.dummies, people.age])
    other = linear_model.LogisticRegression(C=1 / (0.001 * PERSONS)).fit(table, people.score)
    levels = result.arrays["coefficients"][:many, 0]
    assert levels - levels.mean() == pytest.approx(
        other.coef_[0, :many] - other.coef_[0, :many].mean(), rel=0.1, abs=0.05
    )
    assert result.arrays["found"][[0, many - 1], 0].any()
