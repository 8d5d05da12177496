"""Effects of hospitals and an open cohort together are better than either, with honest errors."""

import numpy as np
import pytest

from consortium.algorithms.glm.kernels.with_open import shrink_to_open, slopes_contradicted

OUTCOMES, RUNS = 60, 200


@pytest.mark.parametrize(("error", "apart"), [(0.05, 0.05), (0.3, 0.05), (0.3, 0.4)])
def test_both_together_are_about_as_good_as_the_better_one_and_errors_are_right(error, apart):
    generator = np.random.default_rng(3)
    squares, told, opened = [], [], []
    for _ in range(RUNS):
        truth = 0.3 * generator.standard_normal(OUTCOMES)
        cohort = truth + np.hypot(apart, 0.08) * generator.standard_normal(OUTCOMES)
        effects = truth + error * generator.standard_normal(OUTCOMES)
        errors = np.full(OUTCOMES, error)
        found = shrink_to_open(effects, errors, cohort, 0.08, 0.05**2, OUTCOMES)
        squares.append(np.mean(np.square(found.values - truth)))
        opened.append(np.mean(np.square(cohort - truth)))
        told.append(np.mean(np.square(found.errors)))
    assert np.mean(squares) < 1.2 * min(error**2, np.mean(opened))
    assert 0.9 < np.sqrt(np.mean(told) / np.mean(squares)) < 1.4


def test_only_effects_that_clearly_differ_contradict_an_open_cohort():
    opened = np.linspace(-1, 1, 20)
    for noise, sign, said in ((0.1, 1, False), (0.1, -1, True), (0.1, 0, True), (10, -1, False)):
        assert slopes_contradicted(sign * opened, np.full(20, noise), opened, 1.0) == said
    assert not slopes_contradicted(opened, np.ones(20), np.zeros(20), 1.0)
