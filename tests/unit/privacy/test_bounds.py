"""The only source of a sensitivity: closed forms, and pairs that reach them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import PrivacyError
from consortium.privacy.bounds import Bound


def unit_vector(generator, size):
    vector = generator.standard_normal(size)
    return vector / np.linalg.norm(vector)


def test_closed_forms():
    assert Bound(3.0).sensitivity(1) == 6.0
    assert Bound(3.0).sensitivity(4) == 1.5
    assert Bound(3.0, cone=True).sensitivity(2) == pytest.approx(3.0 / math.sqrt(2))


@given(st.floats(0.01, 100), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_no_two_clipped_contributions_lie_further_apart(norm, size, seed):
    generator = np.random.default_rng(seed)
    one, other = (norm * generator.random() * unit_vector(generator, size) for _ in "ab")
    assert np.linalg.norm(one - other) <= Bound(norm).spread * (1 + 1e-12)


@given(st.floats(0.01, 100), st.integers(1, 5), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_positive_semidefinite_matrices_are_a_cone(norm, size, rank, seed):
    generator = np.random.default_rng(seed)
    factors = [generator.standard_normal((size, rank)) for _ in "ab"]
    one, other = (norm * f @ f.T / np.linalg.norm(f @ f.T) for f in factors)
    assert np.sum(one * other) >= 0
    assert np.linalg.norm(one - other) <= Bound(norm, cone=True).spread * (1 + 1e-12)


def test_both_bounds_are_reached():
    assert np.linalg.norm(np.array([2.0]) - np.array([-2.0])) == Bound(2.0).spread
    one, other = np.diag([2.0, 0.0]), np.diag([0.0, 2.0])
    assert np.linalg.norm(one - other) == pytest.approx(Bound(2.0, cone=True).spread)


@pytest.mark.parametrize("norm", [0.0, -1.0, math.inf, math.nan])
def test_a_bound_that_bounds_nothing_is_refused(norm):
    with pytest.raises(PrivacyError, match="clipping bound"):
        Bound(norm)


@pytest.mark.parametrize("units", [0, -3])
def test_a_mean_over_nobody_has_no_sensitivity(units):
    with pytest.raises(PrivacyError, match="at least one unit"):
        Bound(1.0).sensitivity(units)
