"""A kept smooth basis is the basis itself, in a series' own type."""

from dataclasses import replace

import numpy as np
import pytest

from consortium.algorithms.subspace import smooth_basis
from consortium.base.kept_arrays import cache_folder
from consortium.errors import StudyError
from consortium.kernels.smooth_basis import SmoothBasis
from consortium.space import kept_basis
from consortium.space.grid import Grid
from consortium.space.kept_basis import KeptBasis, surface_places
from consortium.space.mesh import Hemisphere, Mesh
from consortium.space.study_space import Space
from tests.support.surfaces import sphere

MANY = 400
GRID = Grid(np.ones((7, 6, 6), dtype=bool), np.diag([8.0, 8.0, 8.0, 1.0]))


@pytest.fixture
def mesh(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    points, triangles = sphere(MANY)
    cortex = np.arange(MANY) >= 20
    left = Hemisphere("L", points, triangles, cortex)
    return Mesh("fsaverage5", left, replace(left, side="R", coordinates=2 * points))


def test_they_are_kept_and_found_again(mesh):
    left, right = surface_places(mesh).modes
    assert left.vectors.shape == (380, len(left.values))
    assert right.area == pytest.approx(4 * left.area)
    files = sorted(cache_folder().iterdir())
    assert len(files) == 2
    first = [path.read_bytes() for path in files]
    kept_basis._side_modes.cache_clear()
    places = surface_places(mesh)
    again = places.modes
    assert places.modes is again
    np.testing.assert_array_equal(again[0].vectors, left.vectors)
    assert [path.read_bytes() for path in files] == first


def test_another_mesh_has_its_own(mesh):
    assert len(surface_places(mesh).modes) == 2
    wall = replace(mesh.left, cortex=np.arange(MANY) >= 40)
    assert len(surface_places(Mesh("fsaverage5", wall, mesh.right)).modes[0].vectors) == 360
    assert len(list(cache_folder().iterdir())) == 4


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kept_basis, "_ROWS", 50)  # of 252 voxels


def test_it_is_the_basis_itself():
    plain = SmoothBasis(GRID.coordinates, 30.0)
    for _ in range(2):  # made, and read
        kept = smooth_basis(Space(GRID).places, 30.0)
        assert isinstance(kept, KeptBasis)
        assert np.array_equal(kept.centres, plain.centres)
        assert np.array_equal(kept.factor, plain.factor)
        assert kept.for_series.dtype == np.float32
        assert np.array_equal(kept.for_series, plain.matrix.astype(np.float32))
        assert np.array_equal(kept.matrix, plain.matrix)


def test_another_grid_and_another_cutoff_have_their_own():
    moved = Grid(GRID.mask, GRID.affine + np.eye(4)[:, :1] @ np.array([[0, 0, 0, 3.0]]))
    sizes = {
        KeptBasis(grid.coordinates, cutoff, grid.digest).centres.tobytes()
        for grid in (GRID, moved)
        for cutoff in (30.0, 25.0)
    }
    assert len(sizes) == 4


def test_what_is_refused_is_not_kept(tmp_path):
    fine = Grid(np.ones((24, 24, 24), dtype=bool), np.eye(4))
    with pytest.raises(StudyError, match="too many"):
        KeptBasis(fine.coordinates, 2.5, fine.digest).factor  # noqa: B018
    assert not [path for path in tmp_path.rglob("*.arrays") if path.stat().st_size > 1e7]
