"""One operator for each axis does what smoothing and interpolating the whole volume does."""

import numpy as np
import pytest
from scipy import ndimage

from consortium.space.grid import template_grid
from consortium.space.resampling import resampler
from consortium.space.sampling import sample, voxel_places


def image_affine(edges, flipped=False):
    affine = np.diag([*edges, 1.0])
    affine[:3, 3] = (-92.3, -128.1, -74.9)
    if flipped:
        affine[0, 0], affine[0, 3] = -affine[0, 0], 92.3
    return affine


def whole(volume, affine, grid, sigma):
    smooth = ndimage.gaussian_filter(volume, sigma) if sigma.any() else volume
    return sample(smooth, voxel_places(affine, grid), order=3)


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("sigma", [(0.0, 0.0, 0.0), (1.3, 0.9, 2.1)])
def test_parallel_axes_give_what_the_whole_volume_gives(sigma, flipped):
    grid, affine = template_grid(14.0), image_affine((4.0, 5.0, 4.5), flipped)
    volume = 1000 + np.random.default_rng(2).normal(0, 100, (47, 48, 40))
    sigma = np.array(sigma)
    found = resampler(affine, volume.shape, grid, sigma)(volume)
    wanted = whole(volume, affine, grid, sigma)
    assert np.count_nonzero(wanted) > 0.8 * grid.features
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-6)


def test_turned_axes_are_interpolated_as_a_whole():
    grid, affine = template_grid(14.0), image_affine((4.0, 5.0, 4.5))
    affine[0, 1] = 0.3
    volume = np.random.default_rng(3).normal(0, 100, (47, 48, 40))
    sigma = np.array([1.0, 0.0, 1.0])
    found = resampler(affine, volume.shape, grid, sigma)(volume)
    np.testing.assert_array_equal(found, whole(volume, affine, grid, sigma))


def test_an_image_on_the_grid_comes_back():
    grid = template_grid(14.0)
    volume = np.random.default_rng(4).normal(size=grid.shape)
    found = resampler(grid.affine, grid.shape, grid, np.zeros(3))(volume)
    np.testing.assert_allclose(found, volume[grid.mask], atol=1e-12)
