"""The regression of an open cohort within its sites is that of others' software."""

import numpy as np
import pytest
import statsmodels.api

from consortium.algorithms.glm.kernels.open_regression import fit_within


def simulated(persons=240, sites=6, *, between=0.0, seed=1):
    """Outcomes of one slope that varies between sites, columns and sites."""
    generator = np.random.default_rng(seed)
    site = np.arange(persons) % sites
    columns = generator.standard_normal((3, persons)) + 0.3 * site
    slopes = 0.5 + between * generator.standard_normal((8, sites))
    outcomes = slopes[:, site] * columns[0] + 0.2 * columns[1] + 2.0 * site
    return outcomes + 0.7 * generator.standard_normal((8, persons)), columns, site


def test_slopes_deviations_and_errors_are_those_of_statsmodels():
    outcomes, columns, site = simulated()
    found = fit_within(outcomes, columns, site)
    design = np.column_stack([columns.T, site[:, None] == np.unique(site)]).astype(float)
    for place, outcome in enumerate(outcomes):
        right = statsmodels.api.OLS(outcome, design).fit()
        assert found.slopes[place] == pytest.approx(right.params[:3])
        assert found.deviation[place] == pytest.approx(np.sqrt(right.scale))
        assert found.error * found.deviation[place] == pytest.approx(right.bse[0])


def test_a_column_that_does_not_vary_within_sites_has_no_slope():
    outcomes, columns, site = simulated()
    columns[0] = site
    found = fit_within(outcomes, columns, site)
    assert found.varied.tolist() == [False, True, True]
    assert not found.slopes[:, 0].any()
    assert np.isinf(found.error)


def test_equal_columns_share_their_slope():
    outcomes, columns, site = simulated()
    columns[2] = columns[0]
    found = fit_within(outcomes, columns, site)
    assert found.slopes[:, 0] == pytest.approx(found.slopes[:, 2])
    alone = fit_within(outcomes, columns[:2], site)
    assert found.slopes[:, 0] * 2 == pytest.approx(alone.slopes[:, 0])


@pytest.mark.parametrize("between", [0.0, 0.3])
def test_the_variance_of_a_slope_between_sites_is_estimated(between):
    found = [
        fit_within(*simulated(1200, 12, between=between, seed=seed)).between for seed in range(20)
    ]
    assert np.sqrt(np.mean(found)) * 0.7 == pytest.approx(max(between, 0.035), rel=0.15)


def test_few_sites_have_a_usual_variance():
    assert fit_within(*simulated(120, 3)).between == pytest.approx(0.01)
