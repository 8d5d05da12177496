"""What is seen on the coarse grid could be worked out from what would be seen on the fine one."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm

from consortium.privacy.loss import SiteNoise, coalition_losses

ERRORS = np.linspace(0.0, 3.0, 13)
CELLS = np.arange(-60, 61)


def rounded(deviation, centre, cells=CELLS):
    """Law of a normal number that is rounded to whole cells."""
    edges = np.append(cells - 0.5, cells[-1] + 0.5)
    return np.diff(norm.cdf(edges, centre, deviation))


def delta(one, other, epsilon):
    """Least δ with which two laws are (ε, δ)-close."""
    return max(
        np.maximum(p - np.exp(epsilon) * q, 0.0).sum() for p, q in ((one, other), (other, one))
    )


def promised(mu, epsilon):
    """The same of two normal laws that are μ standard deviations apart."""
    return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


def summed(local, first, second):
    """Law of the sum of two sites, each rounded by itself."""
    return np.convolve(rounded(local, first), rounded(local, second))


def with_correlated(correlated, local, first, second):
    """Law of two open vectors and of what is left once the sum of ê is known."""
    near = np.arange(-10, 11)
    law = np.zeros((2 * 50 + 1, 2 * 50 + 1, 2 * 20 + 1))
    widest = rounded(correlated, 0.0, np.arange(-70, 71))
    values = rounded(local, first, near), rounded(local, second, near)
    for i, j in itertools.product(range(near.size), repeat=2):
        one, two = (widest[20 - near[k] : 121 - near[k]] for k in (i, j))
        law[:, :, 20 + near[i] + near[j]] += values[0][i] * values[1][j] * np.outer(one, two)
    return law


def worst(local, correlated, moved):
    """Most by which a pair of neighbours breaks the promise, over where they lie in a cell.

    Without correlated noise it is exact.
    """
    noise = SiteNoise("cape", (correlated,) * 2, (local,) * 2, exact=not correlated)
    mu = float(coalition_losses(noise, [moved] * 2, 0)[0])
    excess = []
    for centre, other in itertools.product((0.0, 0.25, 0.5), repeat=2):
        places = centre - moved / 2, centre + moved / 2
        if correlated:
            laws = [with_correlated(correlated, local, place, other) for place in places]
        else:
            laws = [summed(local, place, other) for place in places]
        excess += [delta(*laws, epsilon) - promised(mu, epsilon) for epsilon in ERRORS]
    return max(excess)


@pytest.mark.parametrize("moved", [0.3, 1.0, 3.0])
def test_a_sum_of_rounded_values_promises_what_a_sum_of_values_does(moved):
    assert worst(8.0, 0.0, moved) <= 1e-12


@pytest.mark.parametrize("moved", [0.3, 2.0])
def test_open_vectors_promise_the_same_once_rounded(moved):
    assert worst(2.0, 6.0, moved) <= 1e-8


@pytest.mark.parametrize("correlated", [0.0, 6.0])
def test_cells_wider_than_the_noise_break_the_promise(correlated):
    assert worst(0.2, correlated, 0.2) >= 0.01
