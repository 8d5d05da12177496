"""The atlas of cubes: every region is one cube, and the brain is covered."""

import numpy as np

from consortium.space.grid import template_grid
from tests.support.cube_atlas import cube_atlas, cube_labels


def test_regions_are_cubes_that_cover_the_brain():
    grid = template_grid(8.0)
    labels = cube_labels(grid, 24.0)
    inside = labels[grid.mask]
    assert not labels[~grid.mask].any()
    assert np.mean(inside > 0) > 0.95
    assert np.array_equal(np.unique(inside[inside > 0]), np.arange(1, inside.max() + 1))
    for label in range(1, inside.max() + 1):
        places = grid.coordinates[inside == label]
        assert np.ptp(places, axis=0).max() < 24
    assert np.array_equal(np.asarray(cube_atlas(grid, 24.0).dataobj), labels)
