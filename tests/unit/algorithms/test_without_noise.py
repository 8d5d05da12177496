"""With scheme none a study is a plain computation: without rounding or a verdict of its own."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from benchmarks.glm_runs import least_squares
from consortium.algorithms import REGISTRY
from consortium.algorithms.summarize.kernels.mean_embedding import fourier_features
from consortium.simulation.simulation import Simulation
from consortium.study.spec import Study
from tests.support.cases import CASES, every_case, make_study, sites_for, sites_of, study_of

COUNTS = (300, 250, 350, 300)
PERSONS = sum(COUNTS)
SITE = np.repeat(np.arange(4), COUNTS)
CONSTANTS = np.eye(4)[SITE]


def run(name, table, views, analysis, **more):
    study = make_study(name, analysis, views=views, scheme="none", **more)
    return Simulation(study, sites_of(table, views, COUNTS), 0).run()


def states(result, table):
    last = [row[-1] for row in result.tables[table].rows]
    return [getattr(cell, "state", cell if isinstance(cell, str) else "") for cell in last]


def weighted_mean(plan, sites, query, bound):
    """What is released, in plain float64."""
    local = plan.statistics[query.statistic]
    units = np.array([site.units for site in sites], dtype=np.float64)
    each = [
        np.ravel(local(plan, site, replace(query, site=number), bound))
        for number, site in enumerate(sites)
    ]
    return np.average(each, axis=0, weights=units)


@every_case
def test_no_release_is_rounded(name, case):
    study, sites = study_of(name, case, scheme="none"), sites_for(case)
    simulation, told = Simulation(study, sites, 0), 0
    while simulation.session.pending is not None:
        query, stage = simulation.session.pending, simulation.session.stage
        done = simulation.step()
        if stage.release.neighbours or stage.release.released != "sum":
            continue
        expected = weighted_mean(simulation.plan.analysis, sites, query, stage.mechanism.bound)
        reach = max(float(np.abs(expected).max()), 1e-3 * stage.mechanism.bound.norm)
        released = np.ravel(done.values)[: stage.release.entries]
        assert np.abs(released - expected).max() <= 1e-12 * reach
        told += 1
    assert told or any(s.release.released != "sum" for s in simulation.plan.stages)


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_a_wide_bound_hides_nothing(scale):
    generator = np.random.default_rng(1)
    table = generator.standard_normal((8, PERSONS)) * np.linspace(0.1, 0.02, 8)[:, None]
    result = run("pca", table, (("x", 8),), {"components": 8, "bound": 100 * scale})
    expected = np.linalg.eigvalsh(table @ table.T / PERSONS)[::-1]
    assert result.arrays["eigenvalues"] == pytest.approx(expected, rel=1e-9)


WIDE = [
    case
    for case in CASES
    if "bound" in case.values[1].analysis
    and case.values[0] != "admm"
    and case.id not in ("tensor-1", "regression-6")
]
"""ADMM's models are bounded in its unit; the persons of the first mixture are of no kinds.
Intervals from six training participants amplify rounding (`regression-6`)."""


@pytest.mark.parametrize(("name", "case"), WIDE)
def test_nobody_notices_how_wide_a_bound_is(name, case):
    def found(factor):
        analysis = dict(case.analysis) | {"bound": factor * case.analysis["bound"]}
        study = make_study(name, analysis, case.unit, views=case.views, scheme="none")
        return Simulation(study, sites_for(case), 0).run()

    results = found(100), found(3000)
    wide, wider = (each.arrays for each in results)
    assert wide
    for key in wide.keys() - {"basis"}:  # a basis is up to sign
        reach = 1e-5 * np.abs(wide[key]).max(initial=1e-9)
        assert wider[key] == pytest.approx(wide[key], rel=0, abs=reach), key
    verdicts = [[states(each, table) for table in sorted(each.tables)] for each in results]
    assert verdicts[0] == verdicts[1]
    if case.views or name != "average":  # of images the bound is what chance is known by
        for key, number in results[0].numbers.items():
            near = number if isinstance(number, str) else pytest.approx(number, rel=1e-5, abs=1e-9)
            assert results[1].numbers[key] == near, key


def test_canonical_pairs_of_views_that_add_up_to_zero():
    generator = np.random.default_rng(2)
    common, views = generator.standard_normal((2, PERSONS)), []
    for size in (20, 12):
        mixed = generator.standard_normal((size, 2)) @ common
        view = mixed + 2 * generator.standard_normal((size, PERSONS))
        view -= view.mean(axis=0)
        views.append((view / np.linalg.norm(view, axis=0)).astype(np.float32))
    names = (("faces", 20), ("erp", 12))
    result = run("cca", np.vstack(views), names, {"pairs": 3, "headroom": 10.0})
    bases = []
    for view in views:
        within = view - (view @ CONSTANTS / COUNTS) @ CONSTANTS.T
        _, values, right = np.linalg.svd(within, full_matrices=False)
        bases.append(right[values > 1e-4 * values[0]])
    expected = np.linalg.svd(bases[0] @ bases[1].T)[1][:3]
    # Bartlett's test of the k-th and all later pairs.
    p, q, n = 19, 11, PERSONS - 4
    left = np.cumsum(np.log(1 - np.linalg.svd(bases[0] @ bases[1].T)[1][::-1] ** 2))[::-1]
    freedom = [(p - k) * (q - k) for k in range(3)]
    linked = stats.chi2.sf(-(n - (p + q + 3) / 2) * left[:3], freedom) < 0.05
    assert linked.tolist() == [True, True, False]
    assert result.arrays["found"].tolist() == linked.tolist()
    assert result.arrays["correlations"][:2] == pytest.approx(expected[:2], abs=2e-4)


def test_components_are_as_many_as_scikit_learn_says():
    decomposition = pytest.importorskip("sklearn.decomposition")
    generator = np.random.default_rng(3)
    mixing = np.linalg.qr(generator.standard_normal((40, 3)))[0] * [0.45, 0.3, 0.2]
    table = mixing @ generator.standard_normal((3, PERSONS))
    table += 0.1 * generator.standard_normal((40, PERSONS))
    other = decomposition.PCA(n_components="mle", svd_solver="full").fit(table.T)
    for solver in ("moment", "power"):
        analysis = {"components": 6, "bound": 100.0, "solver": solver}
        result = run("pca", table, (("x", 40),), analysis)
        assert result.numbers["found"] == other.n_components_ == 3
        overlap = np.linalg.svd(result.arrays["basis"][:, :3].T @ other.components_.T)[1]
        assert overlap.min() > 0.999


def test_least_squares_find_what_statsmodels_finds():
    api = pytest.importorskip("statsmodels.api")
    generator = np.random.default_rng(4)
    x = generator.uniform(-1, 1, (6, PERSONS))
    y = (
        0.3 * x[0]
        - 0.1 * x[1]
        + 0.03 * x[2]
        + 0.05 * SITE
        + 0.2 * generator.standard_normal(PERSONS)
    )
    views = (("x", 6), ("y", 1))
    table = np.vstack([x, np.clip(y, -1, 1)])
    fitted = api.OLS(table[6], np.column_stack([x.T, CONSTANTS])).fit()
    found = (fitted.pvalues[:6] < 0.05 / 6).tolist()
    assert 2 <= sum(found) < 6
    for name, more in (("regression", {"bound": 3.0}), ("coordinate", {"levels": {"x": 1.0}})):
        result = run(name, table, views, {"target": "y", **more})
        told = [row[-1] for row in result.tables["coefficients"].rows]
        assert [each.value for each in told] == pytest.approx(fitted.params[:6], rel=1e-9)
        assert [each.low for each in told] == pytest.approx(fitted.conf_int()[:6, 0], abs=1e-3)
        assert [each.state == "found" for each in told] == found


def test_discoveries_are_those_of_least_squares():
    outcomes, effects = 68, np.where(np.arange(68) < 12, -0.36, 0.0)
    generator = np.random.default_rng(5)
    group = np.concatenate([np.repeat([0.0, 1.0], [n // 2, n - n // 2]) for n in COUNTS])
    age = generator.uniform(-0.7, 0.7, PERSONS)
    shared = generator.standard_normal(PERSONS)
    own = np.sqrt(0.3) * shared + np.sqrt(0.7) * generator.standard_normal((outcomes, PERSONS))
    mm = 2.5 + 0.02 * SITE + 0.22 * (own + np.outer(effects, group)) - 0.1 * age
    table = np.vstack([(mm - 2.75) / 1.75, 2 * group - 1, age])
    study = make_study("pca", {"components": 1}, views=(("x", 1),)).model_dump(exclude_unset=True)
    region = {"low": 1.0, "high": 4.5}
    person = {"dx": {"levels": ["a", "b"]}, "age": {"low": 18, "high": 90}}
    study |= {
        "algorithm": "glm",
        "features": [
            {"name": "cortex", "source": "table", "columns": {"r[1-68]": region}},
            {"name": "person", "source": "table", "columns": person},
        ],
        "privacy": study["privacy"] | {"scheme": "none"},
        "analysis": {
            "outcomes": "cortex",
            "formula": "dx + age",
            "contrasts": {"dx": "dx"},
            "groups": {
                s: [n // 2, n - n // 2] for s, n in zip(study["sites"], COUNTS, strict=True)
            },
            "norms": {"location": 2.5, "deviation": 0.22, "correlation": 0.3},
            "covariates": {"age": {"mean": 54, "deviation": 14}},
        },
    }
    views = (("cortex", outcomes), ("person", 2))
    result = Simulation(Study.model_validate(study), sites_of(table, views, COUNTS), 0).run()
    plain, errors, _ = least_squares(np.vstack([group, age, CONSTANTS.T]), mm / 0.22)
    assert result.arrays["effect"] == pytest.approx(plain, abs=2e-3)  # a few values are clipped
    # One error for all outcomes, as their variances are those of the norms.
    assert np.ptp(result.arrays["error"]) < 1e-9
    assert result.arrays["error"].mean() == pytest.approx(errors.mean(), rel=0.1)
    found = stats.false_discovery_control(2 * stats.norm.sf(np.abs(plain / errors))) < 0.05
    assert found.sum() == 12
    assert (result.arrays["found"][:68, 0] > 0).tolist() == found.tolist()


def test_means_and_counts_are_those_of_numpy():
    generator = np.random.default_rng(6)
    table = np.clip(
        0.3 * generator.standard_normal((5, PERSONS)) + [[0.2], [0.1], [0], [0], [0]], -1, 1
    )
    mean = table.mean(axis=1)
    for name, analysis in (("average", {"bound": 3.0}), ("coordinate", {"radii": {"x": 3.0}})):
        result = run(name, table, (("x", 5),), analysis)
        assert result.arrays["mean"][:, 0] == pytest.approx(mean, abs=1e-12)
    result = run("describe", table, (("x", 5),), {"bins": 7})
    assert result.arrays["means"][0] == pytest.approx(mean, abs=1e-9)
    assert result.arrays["deviations"][0] == pytest.approx(table.std(axis=1), abs=1e-9)
    expected, _ = np.histogram(table[1], 7, (-1, 1))
    found = [row[4].value for row in result.tables["bins"].rows if row[1] == "x2"]
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_classifier_among_neighbours_is_scikit_learns():
    linear_model = pytest.importorskip("sklearn.linear_model")
    generator = np.random.default_rng(7)
    x = generator.uniform(-1, 1, (4, PERSONS))
    odds = 3 * x[0] - 2 * x[1] + 0.2 * SITE
    y = np.where(generator.random(PERSONS) < 1 / (1 + np.exp(-odds)), 1.0, -1.0)
    analysis = {"target": "group", "bound": 2.0, "rounds": 200, "site_constants": False}
    result = run("admm", np.vstack([x, y]), (("x", 4), ("group", 1)), analysis)
    other = linear_model.LogisticRegression(C=1e9).fit(x.T, y)
    assert result.arrays["coefficients"][:4, 0] == pytest.approx(other.coef_[0], abs=2e-3)


def test_distances_of_sites_are_unbiased_and_told_only_where_a_permutation_tells_them():
    generator = np.random.default_rng(8)
    table = generator.uniform(-0.6, 0.6, (3, PERSONS))
    table[:2, SITE == 3] += 0.35
    views = (("x", 3),)
    result = run("summarize", table, views, {"target": "north"})
    study = make_study("summarize", {"target": "north"}, views=views, scheme="none")
    shape = Simulation(study, sites_of(table, views, COUNTS), 0).plan.shape
    frequencies = REGISTRY["summarize"](study.analysis, shape).frequencies
    features = fourier_features(table, frequencies)
    kernel = features.T @ features

    def distance(one, other):
        parts = [kernel[np.ix_(a, b)] for a, b in ((one, one), (other, other), (one, other))]
        own = [(p.sum() - len(p)) / (len(p) * (len(p) - 1)) for p in parts[:2]]
        return sum(own) - 2 * parts[2].mean()

    persons = [np.flatnonzero(s == SITE) for s in range(4)]
    for s, row in enumerate(result.tables["sites"].rows, 1):
        plain, both = distance(persons[0], persons[s]), np.concatenate([persons[0], persons[s]])
        shuffled = [generator.permutation(both) for _ in range(100)]
        chance = [distance(each[: COUNTS[0]], each[COUNTS[0] :]) for each in shuffled]
        assert (row[2].state == "found") == (plain > np.quantile(chance, 0.95)) == (s == 3)
        assert result.arrays["distances"][0, s] == pytest.approx(plain, abs=1e-9)


def test_kinds_of_persons_are_those_of_scikit_learns_mixture():
    mixture = pytest.importorskip("sklearn.mixture")
    generator = np.random.default_rng(9)
    centres = generator.uniform(-0.5, 0.5, (8, 3))
    table = centres[:, generator.integers(3, size=PERSONS)]
    table = table + 0.1 * generator.standard_normal(table.shape)
    result = run("tensor", table, (("scales", 8),), {"components": 3, "bound": 5.0})
    other = mixture.GaussianMixture(3, covariance_type="spherical", random_state=0).fit(table.T)
    assert all(state == "found" for state in states(result, "components"))
    assert sorted(r[1] for r in result.tables["components"].rows) == pytest.approx(
        sorted(other.weights_), abs=0.03
    )
