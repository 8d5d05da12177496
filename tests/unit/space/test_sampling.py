"""An image's values at the study's voxels."""

import numpy as np
import pytest
from scipy import ndimage

from consortium.space.grid import Grid, template_grid
from consortium.space.sampling import (
    FWHM_PER_SIGMA,
    common_voxels,
    resampler,
    sample,
    share_inside,
    smooth_maps,
    voxel_places,
)
from tests.support.report_samples import box_grid

AFFINE = np.diag([2.0, 2, 4, 1])
BALL = np.linalg.norm(np.indices((17, 17, 9)) - np.array([8, 8, 4])[:, None, None, None], axis=0)
GRID = Grid(BALL < 7.5, AFFINE)


def test_a_constant_stays_and_no_width_changes_nothing():
    ones = np.ones((GRID.features, 2))
    assert smooth_maps(ones, 0.3, GRID, 6.0)[0] == pytest.approx(ones)
    same, noise = smooth_maps(3 * ones, 0.3, GRID, 0.0)
    assert np.array_equal(same, 3 * ones)
    assert np.array_equal(noise, np.full(GRID.features, 0.3))


def test_deep_inside_it_is_the_usual_gaussian():
    whole = Grid(np.ones((25, 25, 15), bool), AFFINE)
    drawn = np.random.default_rng(0).standard_normal(whole.shape)
    found = smooth_maps(drawn[whole.mask][:, None], 1.0, whole, 6.0)[0][:, 0].reshape(whole.shape)
    sigma = 6.0 / FWHM_PER_SIGMA / np.array([2, 2, 4])
    usual = ndimage.gaussian_filter(drawn, sigma, truncate=4)
    inner = (slice(8, -8), slice(8, -8), slice(5, -5))
    assert found[inner] == pytest.approx(usual[inner], abs=0.01)


def test_the_noise_that_is_left_is_told():
    noise = 0.5 * np.random.default_rng(1).standard_normal((GRID.features, 4000))
    smooth, told = smooth_maps(noise, 0.5, GRID, 6.0)
    assert smooth.std(axis=1) == pytest.approx(told, rel=0.08)
    assert told.max() < 0.4
    assert told.max() > 1.2 * told.min()  # the edge averages over fewer voxels


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


def shifted_image(steps, corner):
    """Return the affine of an image whose voxel (0, 0, 0) is the grid's voxel ``corner``."""
    affine = np.diag([*steps, 1.0])
    return box_grid().affine @ np.block(
        [[affine[:3, :3], np.array(corner, float)[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]]
    )


@pytest.mark.parametrize(
    ("steps", "corner"), [((1, 1, 1), (-2, -1, -3)), ((-1, 1, 1), (20, -3, -1))]
)
def test_voxels_shifted_as_a_whole_are_copied_to_the_bit(steps, corner):
    grid, shape = box_grid(), (24, 25, 26)
    affine = shifted_image(steps, corner)
    volume = np.random.default_rng(7).normal(9000, 1500, shape).astype(np.float32)
    places = common_voxels(affine, shape, grid, np.zeros(3))
    copied = volume.ravel(order="F")[places]
    assert np.array_equal(copied, resampler(affine, shape, grid, np.zeros(3))(volume))
    assert len(np.unique(places)) == grid.features


def test_other_images_have_no_voxels_in_common_with_the_grid():
    grid, shape, still = box_grid(), (24, 25, 26), np.zeros(3)
    shift = (-2.0, -1.0, -3.0)
    assert common_voxels(shifted_image((1, 1, 1), shift), shape, grid, still) is not None
    for steps, corner, sigma in (
        ((1, 1, 1), (-2.001, -1, -3), still),  # between voxels
        ((2, 1, 1), shift, still),  # coarser
        ((1, 1, 1), shift, np.array([0.0, 0.4, 0.0])),  # smoothed
        ((1, 1, 1), (30, -1, -3), still),  # outside of the field of view
    ):
        assert common_voxels(shifted_image(steps, corner), shape, grid, sigma) is None
    turned = shifted_image((1, 1, 1), shift)
    turned[0, 1] = 0.3
    assert common_voxels(turned, shape, grid, still) is None
