"""Maps on a mesh become files that nibabel and nilearn open, and a picture."""

import json

import nibabel as nib
import numpy as np
import pytest
from nilearn.surface import PolyData, SurfaceImage

from consortium.algorithms.base import Captions, Result
from consortium.algorithms.findings import ImageSet
from consortium.report.image_sets import write_image_sets
from consortium.report.outputs import write_outputs
from consortium.report.surface_files import surface_name, write_surface
from consortium.report.views import surface as report
from consortium.space.mesh import read_mesh
from consortium.space.study_space import Space, ViewSpace
from consortium.views.surface import SurfaceView
from tests.support.html_page import Page
from tests.support.report_samples import box_grid, finished, sample_study
from tests.support.surfaces import wall_of, write_wall

VIEW = SurfaceView(
    name="thick",
    source="surface",
    mesh="fsaverage5",
    values="thickness",
    cortex=("L.wall.gii", "R.wall.gii"),
)


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    root = tmp_path_factory.mktemp("study")
    for side in "LR":
        write_wall(root / f"{side}.wall.gii", "fsaverage5")
    mesh = read_mesh(VIEW.mesh_files, root)
    return Space(box_grid(), views=(ViewSpace(VIEW, mesh.features, mesh=mesh),))


def bump(mesh):
    """A hill on the right hemisphere around 40, -20, 50 mm."""
    away = np.square(mesh.coordinates - (40, -20, 50)).sum(axis=1)
    return 6 * np.exp(-away / 800)


def test_files_hold_the_values_that_were_given_and_say_where(space, tmp_path):
    mesh = space.mesh_of("thick")
    values = np.random.default_rng(0).standard_normal((mesh.features, 2))
    study = sample_study()
    name = surface_name(study, mesh, "thick", "_contrast-age_stat-t")
    assert name == "tpl-fsaverage_den-10k_contrast-age_stat-t_desc-threehospitalsaveragethick"
    told = name, "statmap", mesh, values, ("a", "b"), {"Units": "t"}
    dense, left, right = write_surface(tmp_path, *told)
    assert left.name.startswith("tpl-fsaverage_hemi-L_den-10k_contrast-age_stat-t_")
    assert right.name.endswith("_statmap.func.gii")
    image = nib.load(dense)
    np.testing.assert_array_equal(image.get_fdata(dtype=np.float32), values.T.astype(np.float32))
    assert list(image.header.get_axis(0).name) == ["a", "b"]
    models = list(image.header.get_axis(1).iter_structures())
    assert [name for name, _, _ in models] == [
        "CIFTI_STRUCTURE_CORTEX_LEFT",
        "CIFTI_STRUCTURE_CORTEX_RIGHT",
    ]
    wall, at = ~wall_of("fsaverage5"), mesh.left.features
    for path, rows, side in ((left, values[:at], "Left"), (right, values[at:], "Right")):
        stored = nib.load(path)
        assert stored.meta["AnatomicalStructurePrimary"] == f"Cortex{side}"
        for array, column in zip(stored.darrays, rows.T, strict=True):
            np.testing.assert_array_equal(array.data[~wall], column.astype(np.float32))
            assert np.isnan(array.data[wall]).all()
    about = json.loads((dense.parent / f"{name}_statmap.json").read_text())
    assert (about["SpatialReference"], about["Units"]) == ("fsaverage5", "t")
    opened = SurfaceImage(
        {side.side.replace("L", "left").replace("R", "right"): _shape(side) for side in mesh.sides},
        PolyData(left=left, right=right),
    )
    assert opened.shape == (2 * 10_242, 2)
    again = write_surface(tmp_path / "again", *told)
    assert [x.read_bytes() for x in again] == [x.read_bytes() for x in (dense, left, right)]


def _shape(side):
    from nilearn.surface import InMemoryMesh

    return InMemoryMesh(side.coordinates, side.triangles)


def _result(mesh, found=True):
    maps = bump(mesh)[:, None]
    drawn = ImageSet(
        maps,
        "t of a difference.",
        ("patients",),
        {"contrast": "patients", "stat": "t"},
        units="t",
        view="thick",
        found=(found,),
        threshold=3.0,
    )
    hidden = ImageSet(maps, "Effect.", ("patients",), {"stat": "effect"}, view="thick", drawn=False)
    return Result({}, images={"t": drawn, "e": hidden}, captions=Captions(headline="Found."))


def test_the_page_shows_a_map_on_both_cortices_with_its_peak(space, tmp_path):
    mesh = space.mesh_of("thick")
    write_outputs(tmp_path, finished(sample_study(), space, _result(mesh)))
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    (text,) = page.values("img", "alt")
    assert text == "Patients, thick on both cortices of fsaverage5, from outside and inside"
    peak = mesh.coordinates[bump(mesh).argmax()]
    told = ", ".join(f"{round(mm)}".replace("-", "−") for mm in peak)
    assert f"{told} mm (right hemisphere)" in page.text
    coloured = np.count_nonzero(bump(mesh) >= 3)
    assert f"{coloured:,} of {mesh.features:,} vertices" in page.text
    names = {path.name for path in tmp_path.rglob("tpl-fsaverage*")}
    assert sum(name.endswith(".gii") for name in names) == 4
    assert not list(tmp_path.rglob("*.nii.gz"))


def test_a_map_that_is_not_found_is_written_and_not_drawn(space, tmp_path):
    run = finished(sample_study(), space, _result(space.mesh_of("thick"), found=False))
    assert len(write_image_sets(tmp_path, run)) == 6
    write_outputs(tmp_path, run)
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.values("img", "alt") == []


def test_loadings_are_drawn_and_written_on_the_mesh(space, tmp_path):
    (view,) = space.views
    noise = np.random.default_rng(1).standard_normal(view.size)
    drawing = report.draw(space, view, noise + 20 * bump(view.mesh), "Factor 1")
    assert len(drawing.pictures) == 1
    assert not drawing.note
    flat = report.draw(space, view, np.clip(noise, -2, 2), "Factor 2")
    assert flat.note == "No vertex of this map passes |z| = 3."
    run = finished(sample_study(), space, Result({}, captions=Captions("factor")))
    path = report.write(tmp_path, run, view, np.stack([noise, noise], axis=1))
    assert path.name == "tpl-fsaverage_den-10k_desc-threehospitalsaveragethick_loadings.dscalar.nii"
    assert nib.load(path).shape == (2, view.size)
