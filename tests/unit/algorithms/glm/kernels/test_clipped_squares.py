"""The loss of each entry when a vector of squares is clipped to one norm."""

import numpy as np
import pytest

from consortium.algorithms.glm.kernels.clipped_squares import clipped_part

BOUND = 8.0


def clipped_means(variances, many=40000):
    """Mean squares of normal entries, clipped together to one norm."""
    squares = variances * np.random.default_rng(5).standard_normal((many, len(variances))) ** 2
    norms = np.linalg.norm(squares, axis=1, keepdims=True)
    return (squares * np.minimum(1.0, BOUND / norms)).mean(axis=0)


@pytest.mark.parametrize("largest", [1.0, 2.0, 4.0])
def test_what_clipping_took_of_the_largest_variance_is_restored(largest):
    variances = np.append(largest, np.full(9, 0.7))
    found = clipped_means(variances)
    lost = clipped_part(found, float(found @ found), BOUND)
    assert found[0] / (1 - lost[0]) == pytest.approx(largest, rel=0.05)
    assert lost[0] > 0.1 or largest < 4


def test_an_entry_that_is_larger_than_the_bound_is_known_by_what_it_lost():
    found = clipped_means(np.append(30.0, np.full(9, 0.7)))
    assert clipped_part(found, float(found @ found), BOUND)[0] > 0.5


def test_nothing_is_lost_of_equal_variances_or_without_a_clip():
    found = np.full(20, 0.75)
    assert clipped_part(found, float(found @ found), BOUND).max() < 0.02
    assert not clipped_part(100 * found, 0.0, np.inf).any()
