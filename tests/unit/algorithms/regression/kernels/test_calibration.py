"""Calibration from bins: equal to a logistic fit, with errors that account for noise."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from consortium.algorithms.regression.kernels.calibration import calibration_line

SCORES = np.linspace(-2.0, 2.0, 9)
MANY = np.full(9, 80.0)


def test_without_noise_it_is_the_logistic_fit_of_the_participants():
    positives = np.round(MANY * expit(0.3 + 0.8 * SCORES))
    found = calibration_line(positives, MANY - positives, SCORES, 0.0, slope=True)
    x = np.repeat(np.tile(SCORES, 2), np.concatenate([positives, MANY - positives]).astype(int))
    y = np.repeat([1, 0], [int(positives.sum()), int((MANY - positives).sum())])
    fit = LogisticRegression(C=1e9, tol=1e-10).fit(x[:, None], y)
    assert found.values == pytest.approx([fit.intercept_[0], fit.coef_[0, 0]], abs=1e-4)
    likely = fit.predict_proba(x[:, None])[:, 1]
    rows = np.vstack([np.ones(len(x)), x])
    errors = np.sqrt(np.diag(np.linalg.inv((rows * likely * (1 - likely)) @ rows.T)))
    assert found.errors == pytest.approx(errors, rel=1e-3)


def test_errors_are_those_of_noise_and_chance():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(800):
        positives = rng.binomial(80, expit(-0.2 + SCORES)).astype(float)
        counts = (x + 3.0 * rng.standard_normal(9) for x in (positives, MANY - positives))
        found.append(calibration_line(*counts, SCORES, 3.0, slope=True))
    values = np.array([each.values for each in found])
    assert values.mean(axis=0) == pytest.approx([-0.2, 1.0], abs=0.03)
    assert np.mean([each.errors for each in found], axis=0) == pytest.approx(
        values.std(axis=0), rel=0.1
    )


def test_equal_scores_have_an_intercept_and_no_slope():
    positives = np.full(9, 20.0)
    given = positives, MANY - positives, np.zeros(9), 1.0
    assert calibration_line(*given, slope=True) is None
    assert calibration_line(*given, slope=False).values == pytest.approx([np.log(1 / 3)])
