"""Logistic coefficients from least squares, where a column of two levels makes groups."""

import numpy as np
import pytest

from consortium.algorithms.regression.kernels.logistic_groups import Entries


def entries_of(slope, centre, mean):
    """One column of -1 and 1 at one site."""
    return Entries(
        np.array([slope]), np.ones(1), np.array([[centre]]), np.array([mean]), np.ones(1)
    )


@pytest.mark.parametrize(("effect", "constant", "centre"), [(1.0, 0.0, 0.0), (2.0, -1.5, -0.8)])
def test_a_column_alone_has_the_exact_coefficient(effect, constant, centre):
    low, high = np.tanh((constant - effect) / 2), np.tanh((constant + effect) / 2)
    mean = (1 - centre) / 2 * low + (1 + centre) / 2 * high
    entries = entries_of((high - low) / 2, centre, mean)
    assert entries.level_coefficient(0, 0.0, (high - low) / 2) == pytest.approx(effect, abs=1e-6)


def test_a_level_whose_labels_are_all_the_same_has_no_coefficient():
    assert entries_of(0.9995, 0.0, 0.0).level_coefficient(0, 0.0, 0.9995) == np.inf


def test_groups_have_the_means_and_parts_of_both_levels():
    means, parts = entries_of(0.5, 0.2, 0.1).groups(0)
    assert parts == pytest.approx([0.4, 0.6])
    assert np.dot(means, parts) == pytest.approx(0.1)
    assert means[1] - means[0] == pytest.approx(1.0)
