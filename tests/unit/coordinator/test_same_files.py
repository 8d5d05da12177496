"""How far apart files on a mesh are."""

from pathlib import Path

import numpy as np
import pytest

from consortium.coordinator.remake import TURNED, relative_distance
from consortium.report.image_sets import write_surface
from consortium.space.mesh import read_mesh
from consortium.views.meshes import MeshFiles
from tests.support.surfaces import write_wall


@pytest.fixture
def files(tmp_path):
    walls = [write_wall(tmp_path / f"{side}.wall.gii", "fsaverage5").name for side in "LR"]
    mesh = read_mesh(MeshFiles("fsaverage5", None, tuple(walls)), tmp_path)
    maps = np.random.default_rng(0).standard_normal((mesh.features, 2))

    def write(name, values):
        return write_surface(tmp_path / name, "tpl_den-10k", "components", mesh, values, "ab", {})

    return maps, write


def both(one: list[Path], other: list[Path]) -> list[dict[str, float]]:
    return [relative_distance(*pair) for pair in zip(one, other, strict=True)]


def test_equal_maps_are_not_apart(files):
    maps, write = files
    assert both(write("a", maps), write("b", maps)) == 3 * [{"map 1": 0.0, "map 2": 0.0}]


def test_a_changed_vertex_is_seen_in_each_file_that_has_it(files):
    maps, write = files
    changed = maps.copy()
    changed[5, 1] += 1.0
    dense, left, right = both(write("a", maps), write("b", changed))
    assert min(dense["map 2"], left["map 2"]) > 0.1
    assert dense["map 1"] == right["map 2"] == 0.0


def test_turned_maps_are_called_so(files):
    maps, write = files
    turned = both(write("a", maps), write("b", -maps[:, ::-1]))
    assert turned == 3 * [{"map 1": 0.0, "map 2": 0.0, TURNED: np.inf}]


def test_another_number_of_maps_and_a_damaged_file_are_endlessly_apart(files):
    maps, write = files
    one, other = write("a", maps), write("b", maps[:, :1].repeat(3, axis=1)[:, :2])
    for path in other:
        path.write_bytes(path.read_bytes()[:-1000])
    assert both(one, other) == 3 * [{"the whole": np.inf}]
