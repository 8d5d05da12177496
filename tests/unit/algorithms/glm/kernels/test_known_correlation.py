"""The correlation of an open cohort: its powers do not depend on eigenvectors' order or sign."""

import numpy as np
import pytest
from scipy.linalg import fractional_matrix_power

from consortium.algorithms.glm.kernels.equal_correlation import correlation_power
from consortium.algorithms.glm.kernels.known_correlation import (
    KnownCorrelation,
    known_correlation,
    mean_correlation,
)


def left_of(outcomes, persons, seed=0):
    generator = np.random.default_rng(seed)
    shared = generator.standard_normal(persons)
    return 0.6 * shared + 0.8 * generator.standard_normal((outcomes, persons))


def test_powers_are_those_of_the_matrix_in_any_order_of_the_outcomes():
    known = known_correlation(left_of(12, 200))
    outcomes = np.random.default_rng(1).standard_normal((12, 5))
    right = fractional_matrix_power(known.matrix, -0.25) @ outcomes
    assert known.encode(outcomes) == pytest.approx(right)
    assert known.decode(known.encode(outcomes)) == pytest.approx(outcomes)
    turned = KnownCorrelation(known.matrix[::-1, ::-1])
    assert turned.encode(outcomes[::-1])[::-1] == pytest.approx(known.encode(outcomes))
    root = fractional_matrix_power(known.matrix, 0.5)
    assert known.roots == pytest.approx(np.diag(root))
    assert known.common == pytest.approx(root.mean())


def test_equal_correlations_are_those_of_one_number():
    matrix = np.full((6, 6), 0.3) + 0.7 * np.eye(6)
    outcomes = np.random.default_rng(1).standard_normal((6, 4))
    assert KnownCorrelation(matrix).encode(outcomes) == pytest.approx(
        correlation_power(outcomes, 0.3, -0.25)
    )


def test_the_mean_correlation_is_that_of_all_pairs():
    left = left_of(9, 4000)
    pairs = np.corrcoef(left)[np.triu_indices(9, 1)]
    assert mean_correlation(left) == pytest.approx(pairs.mean(), abs=1e-3)
    assert mean_correlation(left[:1]) == 0.0


def test_equal_outcomes_still_have_a_matrix_with_an_inverse():
    left = np.tile(left_of(1, 200), (5, 1))
    known = known_correlation(left)
    assert known.spectrum.min() >= 0.02
    assert np.isfinite(known.encode(left)).all()


@pytest.mark.parametrize(("outcomes", "persons"), [(12, 47), (2, 100), (1, 50)])
def test_few_participants_or_outcomes_have_no_matrix(outcomes, persons):
    assert known_correlation(left_of(outcomes, persons)) is None
