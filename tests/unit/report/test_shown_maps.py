"""Names of places from coordinates that nilearn carries."""

import numpy as np
import pytest

from consortium.report.shown_maps import Region, nearest_region


@pytest.mark.parametrize(
    ("peak", "found"),
    [
        ((-2, -78, 8), Region("posterior occipital", "occipital")),
        ((-2, -54, 32), Region("precuneus", "default")),
        ((10, -60, -30), Region("medial cerebellum", "cerebellum")),
        ((0, 0, 100), None),
    ],
)
def test_the_nearest_region_is_named_if_it_is_near(peak, found):
    assert nearest_region(np.array(peak, dtype=float)) == found


def test_no_region_is_named_by_an_abbreviation():
    from consortium.report.shown_maps import _published

    words = {word for region in _published()[1] for word in region.name.split()}
    assert not [word for word in words if word.lower() != word or len(word) < 4]
