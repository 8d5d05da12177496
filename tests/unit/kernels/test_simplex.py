"""The simplex: a projection is the nearest point."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.kernels.simplex import project_to_simplex


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_the_projection_is_the_nearest_point(seed, size):
    generator = np.random.default_rng(seed)
    vector = 3 * generator.standard_normal(size)
    nearest = project_to_simplex(vector)
    assert nearest.min() >= 0
    assert nearest.sum() == pytest.approx(1)
    for other in generator.dirichlet(np.ones(size), 20):
        assert (vector - nearest) @ (other - nearest) <= 1e-9  # the obtuse angle
