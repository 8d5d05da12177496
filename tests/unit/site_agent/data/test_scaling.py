"""One vector: centred and brought to norm 1 at any scale, or refused if nothing is left."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import DataError
from site_agent.data.scaling import scale_vector

WHERE = Path("sub-01.tsv")
PLAIN = np.array([1.0, 4.0, -2.0, 0.5])


@given(st.integers(-1020, 1020), st.booleans())
def test_the_scale_of_a_normalized_vector_does_not_matter(exponent: int, center: bool) -> None:
    expected = scale_vector(PLAIN, 1.0, center, True, WHERE)
    assert np.linalg.norm(expected) == pytest.approx(1.0, rel=1e-15)
    assert (scale_vector(np.ldexp(PLAIN, exponent), 1.0, center, True, WHERE) == expected).all()


@pytest.mark.parametrize("size", [1e-320, 1e-170, 1.0, 1e170, 1e308])
def test_the_same_value_everywhere_is_refused_at_any_scale(size: float) -> None:
    with pytest.raises(DataError, match="same value everywhere"):
        scale_vector(np.full(7, size), 1.0, True, True, WHERE)


def test_zeros_are_refused_only_if_they_are_to_have_norm_1() -> None:
    assert not scale_vector(np.zeros(3), 1.0, True, False, WHERE).any()
    with pytest.raises(DataError, match="same value everywhere"):
        scale_vector(np.zeros(3), 1.0, False, True, WHERE)


def test_without_normalizing_the_scale_is_the_public_one() -> None:
    assert (scale_vector(PLAIN, 4.0, False, False, WHERE) == PLAIN / 4.0).all()
    assert (scale_vector(PLAIN, 4.0, True, False, WHERE) == (PLAIN - PLAIN.mean()) / 4.0).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(DataError, match="not finite"):
        scale_vector(np.array([1.0, value]), 1.0, True, True, WHERE)
