"""Modes of a mesh are worked out once, and again if what was kept is damaged or of another mesh."""

from dataclasses import replace

import numpy as np
import pytest

from consortium.space import kept_modes
from consortium.space.kept_modes import modes_folder, surface_places
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
    files = sorted(modes_folder().iterdir())
    assert len(files) == 2
    first = [path.read_bytes() for path in files]
    kept_modes._side_modes.cache_clear()
    places = surface_places(mesh)
    again = places.modes
    assert places.modes is again
    np.testing.assert_array_equal(again[0].vectors, left.vectors)
    assert [path.read_bytes() for path in files] == first


@pytest.mark.parametrize("content", [b"", b"damaged", None])
def test_what_is_damaged_is_worked_out_again(mesh, content):
    (left, _), files = surface_places(mesh).modes, sorted(modes_folder().iterdir())
    for path in files:
        path.write_bytes(path.read_bytes()[:-2000] if content is None else content)
    kept_modes._side_modes.cache_clear()
    again, _ = surface_places(mesh).modes
    np.testing.assert_array_equal(again.values, left.values)
    kept_modes._side_modes.cache_clear()
    assert np.array_equal(surface_places(mesh).modes[0].vectors, again.vectors)


def test_another_mesh_has_its_own(mesh):
    assert len(surface_places(mesh).modes) == 2
    wall = replace(mesh.left, cortex=np.arange(MANY) >= 40)
    assert len(surface_places(Mesh("fsaverage5", wall, mesh.right)).modes[0].vectors) == 360
    assert len(list(modes_folder().iterdir())) == 4


def test_a_folder_that_cannot_be_written_is_gone_without(mesh, tmp_path):
    (tmp_path / "cache").write_text("a file")
    assert len(surface_places(mesh).modes) == 2
