"""Names of places from coordinates that nilearn carries."""

import numpy as np
import pytest

from consortium.report.published_regions import Region, nearest_region


@pytest.mark.parametrize(
    ("peak", "found"),
    [
        ((-2, -78, 8), Region("post occipital", "occipital")),
        ((-2, -54, 32), Region("precuneus", "default")),
        ((10, -60, -30), Region("med cerebellum", "cerebellum")),
        ((0, 0, 100), None),
    ],
)
def test_the_nearest_region_is_named_if_it_is_near(peak, found):
    assert nearest_region(np.array(peak, dtype=float)) == found
