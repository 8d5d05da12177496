"""Known networks: on their places, distinct, and in the order of the mask."""

import numpy as np
import pytest

from consortium.errors import DataError
from consortium.simulation.networks import NETWORKS, network_maps
from consortium.space.grid import template_grid


@pytest.fixture(scope="module")
def grid():
    return template_grid(6.0)


def test_every_blob_is_in_the_brain(grid):
    for name, blobs in NETWORKS.items():
        for blob in blobs:
            offset = grid.coordinates - (blob.x, blob.y, blob.z)
            assert np.linalg.norm(offset, axis=1).min() < 6.0, name


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("default-mode", (0, -54, 30)),
        ("sensorimotor", (-40, -24, 56)),
        ("visual-medial", (0, -80, 6)),
        ("salience", (0, 22, 36)),
        ("cerebellum", (-30, -64, -32)),
    ],
)
def test_peak_is_where_it_is_known_to_be(grid, name, place):
    names, maps = network_maps(grid.affine, grid.shape, grid.mask)
    image = grid.image(maps[:, names.index(name)])
    peak = np.array(np.unravel_index(image.get_fdata().argmax(), grid.shape))
    where = grid.affine[:3, :3] @ peak + grid.affine[:3, 3]
    mirrored = where * (np.sign(place[0]) * np.sign(where[0]) or 1, 1, 1)
    assert np.linalg.norm(mirrored - place) < 12


def test_networks_can_be_told_apart(grid):
    names, maps = network_maps(grid.affine, grid.shape, grid.mask)
    assert len(names) == maps.shape[1] >= 10
    unit = maps / np.linalg.norm(maps, axis=0)
    overlap = np.abs(unit.T @ unit - np.eye(len(names)))
    assert overlap.max() < 0.3
    assert maps.dtype == np.float32
    assert maps.max(axis=0).min() > 0.8
    assert maps.max() < 1.5


def test_rows_follow_the_mask(grid):
    whole = np.ones(grid.shape, dtype=bool)
    _, maps = network_maps(grid.affine, grid.shape, grid.mask, count=2)
    _, everywhere = network_maps(grid.affine, grid.shape, whole, count=2)
    np.testing.assert_array_equal(everywhere.reshape(*grid.shape, 2)[grid.mask], maps)


def test_unfit_requests_are_refused(grid):
    with pytest.raises(DataError, match="known networks"):
        network_maps(grid.affine, grid.shape, grid.mask, count=len(NETWORKS) + 1)
    with pytest.raises(DataError, match="own grid"):
        network_maps(grid.affine, (1, 2, 3), grid.mask)
