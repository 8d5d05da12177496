"""Modes of a mesh are worked out once, and again if what was kept is damaged or of another mesh."""

from dataclasses import replace

import numpy as np
import pytest

from consortium.base.kept_arrays import cache_folder
from consortium.space import kept_modes
from consortium.space.kept_modes import surface_places
from consortium.space.mesh import Hemisphere, Mesh
from tests.support.surfaces import sphere

MANY = 400


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
    kept_modes._side_modes.cache_clear()
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
