"""Ones in the place of a site."""

import numpy as np
import pytest

from consortium.algorithms.site_constants import site_constants


@pytest.mark.parametrize(
    ("places", "rows"),
    [(0, np.zeros((0, 2))), (1, [[1, 1]]), (3, [[0, 0], [1, 1], [0, 0]])],
)
def test_a_site_has_its_own_place_or_the_only_one(places, rows):
    assert np.array_equal(site_constants(places, 1, 2), rows)
