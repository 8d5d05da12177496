"""Nilearn's images on the cortex go in and come out."""

from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from nilearn.datasets import load_fsaverage
from nilearn.image import index_img
from nilearn.plotting import plot_surf_stat_map
from nilearn.surface import PolyMesh, SurfaceImage

import consortium as cc
from consortium.errors import DataError
from consortium.report.image_sets import surface_folder, write_surface
from consortium.space.mesh import read_mesh
from consortium.views.meshes import MeshFiles, MeshName
from tests.support.finished_run import finished
from tests.support.surfaces import (
    wall_of,
    write_dlabel,
    write_func_pair,
    write_parcels,
    write_sphere,
    write_wall,
)

VERTICES = 10_242


@cache
def white_matter() -> PolyMesh:
    return load_fsaverage("fsaverage5")["white_matter"]


def on_cortex(generator: np.random.Generator) -> SurfaceImage:
    """A series whose left vertices below the middle go up and down together."""
    shapes = white_matter()
    sides = {side: generator.standard_normal((VERTICES, 24)) for side in ("left", "right")}
    low = shapes.parts["left"].coordinates[:, 2] < 0
    sides["left"][low] += 3 * generator.standard_normal(24)
    return SurfaceImage(shapes, sides)


def model(**changed: Any) -> cc.PrivatePCA:
    fields = {"data": {"mesh": "fsaverage5"}, "solver": "subspace", **changed}
    return cc.PrivatePCA(1, epsilon=50.0, delta=1e-5, **fields)


@cache
def fitted() -> cc.PrivatePCA:
    generator = np.random.default_rng(0)
    return model().fit([on_cortex(generator) for _ in range(30)])


def test_the_map_is_an_image_that_nilearn_draws() -> None:
    image = fitted().components_img_
    assert image.shape == (2 * VERTICES, 1)
    left, right = (np.abs(image.data.parts[side][:, 0]) for side in ("left", "right"))
    low = image.mesh.parts["left"].coordinates[:, 2] < 0
    assert left[low].mean() > 3 * max(left[~low].mean(), right.mean())
    figure = plot_surf_stat_map(stat_map=image, hemi="left", engine="matplotlib")
    assert len(figure.axes[0].collections) == 1


def test_courses_in_other_series_follow_the_map() -> None:
    other = on_cortex(np.random.default_rng(1))
    (course,) = fitted().transform([other])
    low = other.mesh.parts["left"].coordinates[:, 2] < 0
    mean = other.data.parts["left"][low].mean(axis=0)
    assert abs(np.corrcoef(course[:, 0], mean)[0, 1]) > 0.9


def test_a_mesh_that_is_not_named_or_not_the_images_is_refused() -> None:
    one = on_cortex(np.random.default_rng(0))
    with pytest.raises(DataError, match="Name its public mesh, as data="):
        model(data=None).fit([one])
    half = SurfaceImage(one.mesh, {side: one.data.parts[side] for side in ("left", "right")})
    half.data.parts["left"] = half.data.parts["left"][:-1]
    with pytest.raises(DataError, match="vertices in the left hemisphere"):
        model().fit([half])


def on_another_mesh(folder: Path, mesh: MeshName) -> tuple[Path, tuple[str, str], np.ndarray]:
    """An output folder whose maps are on a mesh with a wall, and that mesh's surfaces."""
    out = finished().copy(folder).out
    for old in out.glob("tpl-*/func/*_components.*"):
        old.unlink()
    surfaces, walls = ((f"L.{what}.gii", f"R.{what}.gii") for what in ("surf", "wall"))
    for surface, wall in zip(surfaces, walls, strict=True):
        write_sphere(folder / surface, mesh)
        write_wall(folder / wall, mesh)
    space = read_mesh(MeshFiles(mesh, surfaces, walls), folder)
    values = np.random.default_rng(0).standard_normal((space.features, 2)).astype(np.float32)
    name = f"tpl-{space.kind.space}_task-rest_den-{space.kind.density}_desc-study"
    write_surface(
        surface_folder(out, space), name, "components", space, values, ("a", "b"), {"Found": [1, 0]}
    )
    left, right = (str(folder / name) for name in surfaces)
    return out, (left, right), values


@pytest.mark.parametrize("mesh", ["fsLR-32k", "fsaverage6"])
def test_a_folder_with_maps_on_another_mesh_is_opened_with_its_surfaces(
    tmp_path: Path, mesh: MeshName
) -> None:
    out, surfaces, values = on_another_mesh(tmp_path, mesh)
    result = cc.open_result(out, surfaces)
    image, cortex = result.components_img_, wall_of(mesh)
    stored = [image.data.parts[side][cortex] for side in ("left", "right")]
    assert np.array_equal(np.concatenate(stored), values)
    assert result.found_ == (True, False)
    first = index_img(image, 0)
    figure = plot_surf_stat_map(stat_map=first, hemi="left", engine="matplotlib")
    assert len(figure.axes[0].collections) == 1
    with pytest.raises(DataError, match=f"{len(cortex):,}. Name one of that mesh"):
        cc.open_result(out, (str(write_sphere(tmp_path / "x.surf.gii", "fsaverage5")),) * 2)


def test_a_folder_with_maps_on_another_mesh_says_what_it_takes_to_see_them(tmp_path: Path) -> None:
    out, _, _ = on_another_mesh(tmp_path, "fsaverage6")
    result = cc.open_result(out)
    assert "components" in result.tables
    for ask in (lambda: result.components_img_, lambda: result.contrast("patients")):
        with pytest.raises(DataError, match=r"on the mesh fsaverage6, .* surfaces=.left, right"):
            ask()


def test_parcels_of_one_site_and_vertices_of_another_make_maps_on_the_cortex(
    tmp_path: Path,
) -> None:
    generator, many = np.random.default_rng(0), 12
    keys = [1 + 6 * k + np.arange(VERTICES) * 6 // VERTICES for k in range(2)]
    names = {key: f"p{key}" for key in range(1, many + 1)}
    write_dlabel(tmp_path / "x.dlabel.nii", keys, names)
    truth = generator.standard_normal(many)
    for site, person in product(("north", "south"), range(20)):
        func, stem = tmp_path / site / f"sub-{person}" / "func", f"sub-{person}_task-rest"
        series = 3 * np.outer(generator.standard_normal(30), truth)
        series = (series + generator.standard_normal(series.shape)).astype(np.float32)
        if site == "north":
            order = generator.permutation(many)
            path = func / f"{stem}_space-fsaverage_seg-x_timeseries.ptseries.nii"
            write_parcels(path, series[:, order], tuple(names[k + 1] for k in order))
        else:
            write_func_pair(func, stem, "fsaverage5", [series[:, own - 1] for own in keys])
    study = tmp_path / "study.yaml"
    values = {
        "study": "s",
        "sites": ["north", "south"],
        "participants": dict.fromkeys(["north", "south"], 10),
        "data": {"mesh": "fsaverage5", "atlas": "x.dlabel.nii"},
        "privacy": {"unit": "subject", "epsilon": 50, "delta": 1e-5, "colluding_sites": 0},
        "algorithm": "pca",
        "analysis": {"components": 1},
    }
    study.write_text(yaml.safe_dump(values))
    result = cc.simulate(study, {site: tmp_path / site for site in ("north", "south")}, seed=1)
    parts = result.components_img_.data.parts
    painted = np.concatenate([parts[side][:, 0] for side in ("left", "right")])
    each = [painted[np.concatenate(keys) == key] for key in names]
    assert max(np.ptp(own) for own in each) < 1e-3 * np.ptp(painted)
    assert abs(np.corrcoef([own.mean() for own in each], truth)[0, 1]) > 0.99
