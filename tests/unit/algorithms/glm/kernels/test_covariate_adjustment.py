"""Shrinkage of the slopes on covariates: its limit, and the error that remains."""

import numpy as np
import pytest

from consortium.algorithms.glm.kernels.covariate_adjustment import (
    LEAST_KEPT,
    CovariateSums,
    adjust,
    left_of_noise,
)

DRAWS = 20_000


def adjustment_with(noise):
    """Adjust 100 participants of one site for two declared columns, with noise in G."""
    sums = CovariateSums(
        contrast=np.array([1.0, -1.0]),
        moment=50.0 * np.eye(2),
        means=np.zeros((1, 2)),
        hidden=np.zeros(2, dtype=bool),
        noise={"contrast": noise, "moment": 0.0, "means": 0.0, "column": 0.0},
    )
    return adjust(sums, np.array([100.0]), np.ones(1), 25.0)


def test_slopes_that_are_noise_are_halved_and_others_kept():
    assert adjustment_with(0.0).kept == 1.0
    assert adjustment_with(0.5).kept == pytest.approx(1 - 0.25 * (2 / 50) / (2 / 50))
    hidden = adjustment_with(10.0)
    assert hidden.kept == LEAST_KEPT == 0.5
    assert hidden.slopes == pytest.approx([0.5 / 50, -0.5 / 50])


@pytest.mark.parametrize("columns", [3, 6])
@pytest.mark.parametrize("size", [1.0, 1.5, 2.5])
def test_the_error_of_shrunk_slopes_is_counted_to_nine_tenths_or_more(columns, size):
    """Slopes of ``size`` each, whose noise has variance one, and shrink as in `adjust`."""
    true = np.full(columns, size)
    found = true + np.random.default_rng(0).standard_normal((DRAWS, columns))
    kept = np.maximum(1 - columns / np.square(found).sum(axis=1), LEAST_KEPT)
    error = np.square(kept[:, None] * found - true).mean()
    counted = np.mean([left_of_noise(float(each), columns) for each in kept[:2000]])
    assert counted >= 0.9 * error
