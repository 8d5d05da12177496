"""Bins of values that were stored as single-precision numbers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from consortium.algorithms.describe.kernels.bins import bins_of, reaches_end
from consortium.views.column import Column
from site_agent.data.tsv import encode_cell


def entries_of(values, low, high):
    """Return the entries that a site stores for a column's values."""
    column = Column(low=low, high=high)
    return np.array([encode_cell(repr(value), column)[0] for value in values], dtype=np.float32)


@given(
    low=st.integers(-500, 500),
    width=st.integers(1, 1_000),
    bins=st.integers(2, 1_000),
    unit=st.sampled_from([1, 2, 4, 10, 100, 1_000]),
)
def test_every_integer_and_decimal_is_in_its_bin_at_every_scale(low, width, bins, unit):
    """The reference computes floor(k bins / width) in integers for k units above ``low``."""
    edges = np.linspace(low / unit, (low + width) / unit, bins + 1)
    values = [(low + step) / unit for step in range(width + 1)]
    expected = [min(step * bins // width, bins - 1) for step in range(width + 1)]
    stored = entries_of(values, low / unit, (low + width) / unit).astype(np.float64)
    assert bins_of(stored, edges).tolist() == expected


def test_only_values_at_the_upper_limit_or_beyond_it_reach_the_end():
    stored = entries_of([0.0, 9.99, 10.0, 12.0], 0.0, 10.0).astype(np.float64)
    assert reaches_end(stored).tolist() == [False, False, True, True]


def test_bins_of_limits_that_almost_coincide_have_places():
    for low, high in ((0.0, 5e-324), (1.0, np.nextafter(1.0, 2.0)), (-1e300, 1e300)):
        places = bins_of(np.array([-1.0, 0.0, 1.0]), np.linspace(low, high, 11))
        assert ((places >= 0) & (places < 10)).all()
