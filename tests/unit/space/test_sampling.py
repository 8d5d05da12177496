"""An image's values at the study's voxels."""

import numpy as np
import pytest

from consortium.space.sampling import sample, share_inside, voxel_places
from tests.support.report_samples import box_grid


def test_an_image_on_the_grid_gives_its_own_voxels_at_every_order():
    grid = box_grid()
    volume = np.random.default_rng(0).standard_normal(grid.shape)
    places = voxel_places(grid.affine, grid)
    np.testing.assert_allclose(places, np.argwhere(grid.mask).T, atol=1e-12)
    for order in (0, 1, 3):
        np.testing.assert_allclose(sample(volume, places, order), volume[grid.mask], atol=1e-9)


def test_a_linear_image_is_read_exactly_between_its_voxels():
    grid = box_grid()
    affine = np.array([[2.5, 0, 0, -40.0], [0, 3.0, 0, -50.0], [0, 0, 2.0, -50.0], [0, 0, 0, 1]])
    index = np.stack(np.meshgrid(*map(np.arange, (50, 50, 60)), indexing="ij"), axis=-1)
    millimetres = index @ affine[:3, :3].T + affine[:3, 3]
    volume = millimetres @ [1.0, -2.0, 0.5]
    values = sample(volume, voxel_places(affine, grid), 1)
    np.testing.assert_allclose(values, grid.coordinates @ [1.0, -2.0, 0.5], atol=1e-6)


def test_what_lies_outside_is_zero_and_counted():
    grid = box_grid()
    away = grid.affine.copy()
    away[2, 3] += 5 * 4.0  # half of the ten slices
    places = voxel_places(away, grid)
    values = sample(np.ones(grid.shape), places, 1)
    assert share_inside(places, grid.shape) == pytest.approx(np.mean(values != 0))
    assert 0.4 < share_inside(places, grid.shape) < 0.6
    assert share_inside(voxel_places(grid.affine, grid), (*grid.shape, 24)) == 1.0
