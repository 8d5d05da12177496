"""Quantiles of noisy counts: how often their intervals contain the truth."""

import numpy as np
import pytest

from consortium.algorithms.describe.kernels.quantiles import estimate_quantiles


@pytest.mark.parametrize("share", [0.3, 0.5 - 1e-9, 0.5, 0.5 + 1e-9])
def test_a_quantile_at_the_edge_of_a_bin_is_held_as_often(share):
    # The hardest case: the distribution's step at the quantile is in doubt on one side alone.
    generator, runs, held = np.random.default_rng(7), 4_000, 0
    true_bin = 0 if share >= 0.5 else 2
    edges = np.arange(5.0)
    for _ in range(runs):
        drawn = generator.binomial(1000, share)
        cells = np.array([drawn, 0.0, 1000 - drawn, 0.0]) + 30 * generator.standard_normal(4)
        ((_, low, high),) = estimate_quantiles(cells, np.array([0.5]), edges, 30.0, 1.6449)
        held += low <= true_bin and true_bin + 1 <= high
    assert held / runs > 0.9 - 4 * np.sqrt(0.09 / runs)


@pytest.mark.parametrize("quantile", [0.05, 0.5, 0.9])
def test_intervals_hold_whatever_the_number_of_participants_is(quantile):
    generator, held, widths = np.random.default_rng(8), 0, []
    edges = np.linspace(-3, 3, 31)
    truth = np.quantile(generator.standard_normal(200_000), quantile)
    for _ in range(1000):
        values = generator.standard_normal(generator.integers(800, 1200))
        cells = np.histogram(values.clip(-3, 3), edges)[0] + 5 * generator.standard_normal(30)
        ((_, low, high),) = estimate_quantiles(cells, np.array([quantile]), edges, 5.0, 1.6449)
        held += low <= truth <= high
        widths.append(high - low)
    assert held / 1000 > 0.9
    assert np.mean(widths) < 1.5
