"""Who is one unit of privacy, as a study says it."""

import numpy as np
import pytest
from pydantic import ValidationError

from consortium.algorithms.units import Units


def test_a_units_mean_varies_less_the_more_rows_are_usual():
    assert Units(family="family_id", correlation=0.5).deviation == 1.0
    usual = Units(family="family_id", correlation=0.5, usual_rows=3)
    generator = np.random.default_rng(0)
    shared, own = generator.standard_normal((1, 200_000)), generator.standard_normal((3, 200_000))
    rows = np.sqrt(0.5) * (shared + own)
    assert usual.deviation == pytest.approx(rows.mean(axis=0).std(), rel=0.01)


def test_the_largest_weight_is_that_of_rows_that_differ_in_one_column():
    """Over that of one row: of rows 1, -1, ... whose mean is 0, under the inverse of their R."""
    units = Units(sessions=True, most_rows=4, correlation=0.6)
    likeness = 0.6 + 0.4 * np.eye(4)
    signs, ones = np.array([1.0, -1.0, 1.0, -1.0]), np.ones(4)
    inverse = np.linalg.inv(likeness)
    assert units.largest == pytest.approx(signs @ inverse @ signs / (ones @ inverse @ ones))


def test_expected_squares_are_those_of_pairs_of_whom_one_is_ill():
    """Half of the pairs differ, and q of the others are ill: t̃² + λ Σ (t - t̄)², unbounded."""
    units = Units(family="f", correlation=0.5, usual_rows=2, differ=0.5)
    part, alike = np.array([0.4]), np.array([(0.4 - 0.25) / 0.5])
    same = alike * 0.6**2 + (1 - alike) * 0.4**2
    weight = (1 + 0.5) / (2 * (1 - 0.5))
    different = 0.1**2 + weight * 0.5
    found, varied = units.expected_squares(part, np.array([np.inf]))
    assert found == pytest.approx((same + different) / 2)
    assert varied == pytest.approx(found)  # with the best weight
    bounded, less = units.expected_squares(part, np.array([0.36]))
    assert bounded == pytest.approx((same + 0.36) / 2)
    assert less < bounded
    lone, _ = Units(family="f", correlation=0.5).expected_squares(part, np.array([0.36]))
    assert lone == pytest.approx(0.24)


def test_units_are_of_families_or_sessions_and_named_so():
    with pytest.raises(ValidationError, match="give 'family'"):
        Units()
    assert Units(family="f").named == "families"
    assert "all their sessions" in Units(sessions=True).told
    assert "6 at the most" in Units(family="f", sessions=True, most_rows=6).told
