"""Without noise an analysis equals its reference in NumPy, SciPy, scikit-learn or statsmodels.

Effects, types of columns and missing values vary; `tests/unit/algorithms/test_without_noise.py`
compares what is found.
"""

import numpy as np
import pytest
from scipy import stats

from benchmarks.glm_runs import least_squares
from consortium.simulation.simulation import Simulation
from consortium.study.spec import Study
from tests.support.cases import make_study, sites_of

api = pytest.importorskip("statsmodels.api")
COUNTS = (150, 100, 200, 150)
PERSONS = sum(COUNTS)
CONSTANTS = np.eye(4)[np.repeat(np.arange(4), COUNTS)]
EFFECTS = (0.0, 0.2, 0.7)
TYPES = ("dense", "levels", "integers", "rare")
EVEN = ("dense", "levels")
"""Types of columns in which no participant has a large influence on a coefficient."""
NEAR = {"rel": 0, "abs": 1e-6}

each_type = pytest.mark.parametrize("kind", TYPES)
each_effect = pytest.mark.parametrize("effect", EFFECTS)


def run(name, table, views, analysis, **more):
    study = make_study(name, analysis, views=views, scheme="none", **more)
    return Simulation(study, sites_of(table, views, COUNTS), 0).run()


def column(kind, generator):
    """A column between -1 and 1."""
    if kind == "integers":
        return generator.integers(-10, 11, PERSONS) / 16  # exact in float32
    if kind == "dense":
        return np.float64(generator.uniform(-1, 1, PERSONS).astype(np.float32))
    return np.where(generator.random(PERSONS) < (0.5 if kind == "levels" else 0.05), 1.0, -1.0)


def explained(kind, effect):
    """Columns that explain a last one, which is rounded as a site stores it."""
    generator = np.random.default_rng(TYPES.index(kind))
    x = np.array([column(kind, generator), column("dense", generator)])
    noise = 0.1 * generator.standard_normal(PERSONS)
    y = 0.5 * effect * x[0] - 0.1 * x[1] + 0.05 * CONSTANTS[:, 2] + noise * (1 + 0.5 * x[1])
    return np.vstack([x, np.clip(y, -1, 1)]).astype(np.float32).astype(np.float64)


@each_type
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_means_are_those_of_numpy(kind, missing):
    generator = np.random.default_rng(TYPES.index(kind))
    table = np.array([column(kind, generator) for _ in range(4)])
    views = (("gaps", 3), ("y", 1))
    lost = generator.random((3, PERSONS)) < missing
    lost &= np.cumsum(lost, axis=0) <= 1  # half of a participant's entries may be missing
    table[:3][lost] = np.nan
    result = run("average", table, views, {"bound": 4.0})
    assert result.arrays["mean"][:, 0] == pytest.approx(np.nanmean(table, axis=1), **NEAR)
    half = [(row[2].high - row[2].low) / 2 for row in result.tables["means"].rows]
    errors = np.nanstd(table, axis=1) / np.sqrt((~np.isnan(table)).sum(axis=1))
    assert half == pytest.approx(stats.norm.ppf(0.975) * errors, **NEAR)


@each_type
def test_means_and_variances_by_entry_are_those_of_numpy(kind):
    generator = np.random.default_rng(TYPES.index(kind))
    table = np.array([column(kind, generator) for _ in range(4)])
    result = run("coordinate", table, (("x", 3), ("y", 1)), {"radii": {"x": 2.0}})
    assert result.arrays["mean"][:, 0] == pytest.approx(table.mean(axis=1), **NEAR)
    half = [(row[2].high - row[2].low) / 2 for row in result.tables["means"].rows]
    errors = table.std(axis=1) / PERSONS**0.5
    assert half == pytest.approx(stats.norm.ppf(0.975) * errors, **NEAR)


@each_type
@pytest.mark.parametrize("bins", [2, 20, 32])
def test_counts_are_those_of_numpy(kind, bins):
    entries = column(kind, np.random.default_rng(1))
    result = run("describe", entries[None], (("x", 1),), {"bins": bins})
    expected, edges = np.histogram(entries, bins, (-1, 1))
    rows = result.tables["bins"].rows
    assert [row[2] for row in rows] == pytest.approx(edges[:-1], **NEAR)
    assert [row[4].value for row in rows] == pytest.approx(expected, **NEAR)
    (mean,) = (row[3] for row in result.tables["table1"].rows if row[2] == "mean")
    assert mean.value == pytest.approx(entries.mean(), **NEAR)


@each_type
@each_effect
@pytest.mark.parametrize("name", ["regression", "coordinate"])
def test_linear_coefficients_are_those_of_least_squares(kind, effect, name):
    table = explained(kind, effect)
    more = {"bound": 2.0} if name == "regression" else {"levels": {"x": 1.0}}
    result = run(name, table, (("x", 2), ("y", 1)), {"target": "y", **more})
    told = [row[-1] for row in result.tables["coefficients"].rows]
    design = np.column_stack([table[:2].T, CONSTANTS])
    fitted = api.OLS(table[2], design).fit()
    assert [each.value for each in told] == pytest.approx(fitted.params[:2], **NEAR)
    half = np.array([(each.high - each.low) / 2 for each in told])
    # The interval's ends are values whose own residuals fit, so that t² leaves the divisor.
    t = stats.t.ppf(0.975, fitted.df_resid)
    if name == "coordinate":
        plain = fitted.bse[:2] * np.sqrt(fitted.df_resid / (PERSONS - t**2))
        assert half == pytest.approx(t * plain, **NEAR)
        return
    white = t * fitted.HC0_se[:2] * np.sqrt(PERSONS / (PERSONS - t**2))
    if kind in EVEN:
        assert half == pytest.approx(white, **NEAR)
    else:  # a squared influence above the bound counts as the bound
        assert (half <= white + NEAR["abs"]).all()
        assert (half >= 0.85 * white).all()


@pytest.mark.parametrize("odds", [0.0, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_the_logistic_coefficient_of_two_levels_is_that_of_the_odds_ratio(odds, share):
    generator = np.random.default_rng(3)
    x = np.where(generator.random(PERSONS) < share, 1.0, -1.0)
    y = np.where(generator.random(PERSONS) < 1 / (1 + np.exp(-odds * x / 2)), 1.0, -1.0)
    analysis = {"target": "y", "bound": 1.0, "model": "logistic", "site_constants": False}
    result = run("regression", np.vstack([x, y]), (("x", 1), ("y", 1)), analysis)
    both = [[np.sum((x == a) & (y == b)) for b in (-1, 1)] for a in (-1, 1)]
    expected = np.log(both[1][1] * both[0][0] / both[1][0] / both[0][1]) / 2
    (row,) = result.tables["coefficients"].rows
    # The estimated share of the variance exceeds that of this column by 0.0003 at the largest
    # odds ratio, which counts as explained by other columns.
    near = NEAR if odds <= 2 else {"rel": 2e-3}
    assert row[2].value == pytest.approx(expected, **near)


@each_type
def test_eigenpairs_are_those_of_numpy(kind):
    generator = np.random.default_rng(4)
    table = np.array([column(kind, generator) * scale for scale in (1, 0.8, 0.6, 0.4)])
    table = table.astype(np.float32).astype(np.float64)
    result = run("pca", table, (("x", 4),), {"components": 4, "bound": 3.0})
    values, vectors = np.linalg.eigh(table @ table.T / PERSONS)
    assert result.arrays["eigenvalues"] == pytest.approx(values[::-1], **NEAR)
    overlap = np.abs(np.sum(result.arrays["basis"] * vectors[:, ::-1], axis=0))
    assert overlap == pytest.approx(np.ones(4), **NEAR)


@each_type
@each_effect
def test_canonical_correlations_are_those_of_scipy(kind, effect):
    generator = np.random.default_rng(5)
    table = np.array([0.5 * column(kind, generator) for _ in range(5)])
    table[3] += effect * table[0]
    table = np.clip(table, -1, 1).astype(np.float32).astype(np.float64)
    result = run("cca", table, (("faces", 3), ("erp", 2)), {"pairs": 2, "headroom": 10.0})
    within = table - (table @ CONSTANTS / COUNTS) @ CONSTANTS.T
    bases = [np.linalg.qr(part.T)[0] for part in np.split(within, [3])]
    expected = np.linalg.svd(bases[0].T @ bases[1])[1]
    reported = [row[1].reported for row in result.tables["pairs"].rows]
    assert reported[0]
    told = result.arrays["correlations"][reported]
    assert told == pytest.approx(expected[reported], **NEAR)


def glm_study(groups):
    """Thickness in two groups, adjusted for age."""
    study = make_study("pca", {"components": 1}, views=(("x", 1),)).model_dump(exclude_unset=True)
    region, levels = {"low": 1.0, "high": 4.5}, {"levels": ["a", "b"]}
    columns = {"dx": levels, "age": {"low": 18, "high": 90}}
    return Study.model_validate(
        study
        | {
            "algorithm": "glm",
            "features": [
                {"name": "cortex", "source": "table", "columns": {"r[1-8]": region}},
                {"name": "person", "source": "table", "columns": columns},
            ],
            "privacy": study["privacy"] | {"scheme": "none"},
            "analysis": {
                "outcomes": "cortex",
                "formula": "dx + age",
                "contrasts": {"dx": "dx"},
                "groups": dict(zip(study["sites"], groups, strict=True)),
                "norms": {"location": 2.5, "deviation": 0.22, "correlation": 0.3},
                "covariates": {"age": {"mean": 54, "deviation": 36}},
            },
        }
    )


@each_type
@each_effect
def test_contrasts_are_those_of_least_squares_with_site_constants(kind, effect):
    generator = np.random.default_rng(TYPES.index(kind))
    groups = [[n // 2, n - n // 2] for n in COUNTS]
    group, age = np.concatenate([np.repeat([0.0, 1.0], g) for g in groups]), column(kind, generator)
    spread = 0.6 * generator.uniform(-1, 1, (8, PERSONS)) + 0.5 * effect * group
    thickness = 2.5 + 0.22 * spread - 0.02 * age
    table = np.vstack([(thickness - 2.75) / 1.75, 2 * group - 1, age])
    table = table.astype(np.float32).astype(np.float64)
    sites = sites_of(table, (("cortex", 8), ("person", 2)), COUNTS)
    result = Simulation(glm_study(groups), sites, 0).run()
    outcomes = (1.75 * table[:8] + 2.75) / 0.22
    plain, _, _ = least_squares(np.vstack([group, age, CONSTANTS.T]), outcomes)
    assert result.arrays["effect"] == pytest.approx(plain, **NEAR)
