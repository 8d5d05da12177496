"""A result's sets of maps on disk, and on the page."""

import json
from dataclasses import replace

import nibabel as nib
import numpy as np
import pytest
from nilearn.surface import PolyData, SurfaceImage

from consortium.algorithms.base import Captions, Result
from consortium.algorithms.findings import Finding, ImageSet
from consortium.report.image_sets import about_map, surface_name, write_image_sets, write_surface
from consortium.report.outputs import write_component_maps, write_outputs
from consortium.report.views import surface as report
from consortium.space.grid import template_grid
from consortium.space.mesh import read_mesh
from consortium.space.study_space import Space, ViewSpace
from consortium.study.spec import Study
from consortium.views.surface import SurfaceView
from tests.support.html_page import Page
from tests.support.report_samples import (
    UNITS,
    blob,
    box_grid,
    finished,
    finished_maps,
    sample_report,
    sample_study,
)
from tests.support.surfaces import wall_of, write_wall

VIEW = SurfaceView(
    name="thick",
    source="surface",
    mesh="fsaverage5",
    values="thickness",
    cortex=("L.wall.gii", "R.wall.gii"),
)
KEYS = ("analysis_level", "map_type", "modality", "number_of_subjects", "target_template_image")
PEAK = (-4.0, -52.0, 28.0)


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


@pytest.mark.parametrize(
    ("stat", "kind"),
    [("t", "T map"), ("z", "Z map"), ("variance", "variance"), ("stderr", "other"), ("", "other")],
)
def test_a_maps_sidecar_has_neurovaults_fields(stat: str, kind: str, tmp_path) -> None:
    grid = box_grid()
    entities = {"stat": stat} if stat else {}
    images = {"x": ImageSet(np.ones((grid.features, 1)), "It is.", ("age",), entities)}
    run = finished(sample_study(), Space(grid), Result({}, images=images))
    write_image_sets(tmp_path, run)
    (path,) = tmp_path.glob("tpl-*/func/*_statmap.json")
    told = json.loads(path.read_text())
    many = sum(UNITS)
    assert [told[key] for key in KEYS] == ["group", kind, "fMRI-BOLD", many, "MNI152NLin2009cAsym"]


def test_maps_of_components_have_them_and_another_template_of_mni_is_a_generic_one(tmp_path):
    grid = box_grid()
    study = sample_study(data={"detrend": "none", "space": "MNI152NLin6Asym"})
    write_component_maps(tmp_path, finished_maps(study, grid, blob(grid, (0, 0, 0), 9.0)[:, None]))
    (path,) = tmp_path.glob("tpl-*/func/*_components.json")
    told = json.loads(path.read_text())
    assert (told["map_type"], told["target_template_image"]) == ("other", "GenericMNI")


def test_sites_that_never_answered_and_units_that_are_no_participants_are_not_counted():
    grid, study = box_grid(), sample_study()
    run = finished_maps(study, grid, blob(grid, (0, 0, 0), 9.0)[:, None])
    first, *others = run.report.sites
    absent = (first.model_copy(update={"answered": 0}), *others)
    report = sample_report(study).model_copy(update={"sites": absent})
    assert about_map(replace(run, report=report), grid)["number_of_subjects"] == sum(UNITS[1:])
    volumes = {**study.privacy.model_dump(), "unit": "timepoint"}
    plain = {"detrend": "none", "standardize": "none"}
    study = sample_study(privacy=volumes, data=plain)
    assert "number_of_subjects" not in about_map(replace(run, study=study), grid)


def test_an_image_for_each_participant_is_not_called_a_series():
    grid = box_grid()
    view = {"name": "image", "source": "fmri", "measure": "image", "image": "statmap"}
    changes = {"features": [view], "algorithm": "cca", "analysis": {"pairs": 1}}
    other = {"name": "who", "source": "table", "columns": {"age": {"low": 0, "high": 99}}}
    changes["features"] = [view, other]
    study = Study.model_validate(sample_study().model_dump() | changes)
    run = finished_maps(sample_study(), grid, blob(grid, (0, 0, 0), 9.0)[:, None])
    assert about_map(replace(run, study=study), grid, view="image")["modality"] == "Other"


def written(folder, grid, **images):
    """The folder's new images."""
    return write_image_sets(
        folder, finished(sample_study(), Space(grid), Result({}, images=images))
    )


def test_a_set_of_one_map_is_one_image_with_its_entities_and_what_is_known_of_it(tmp_path):
    grid = box_grid()
    values = np.arange(grid.features, dtype=float)[:, None]
    one = ImageSet(
        values,
        "t-values of age.",
        ("age",),
        entities={"contrast": "age", "stat": "t"},
        found=(False,),
        accuracy=(Finding(0.9, state="withheld"),),
    )
    path, mask = written(tmp_path, grid, t=one)
    assert path.name.endswith(
        "_res-4_contrast-age_stat-t_desc-threehospitalsaverage_statmap.nii.gz"
    )
    image = np.asarray(nib.load(path).dataobj)
    assert image.shape == grid.shape
    np.testing.assert_array_equal(image[grid.mask], values[:, 0])
    about = json.loads(path.with_name(path.name.replace(".nii.gz", ".json")).read_text())
    assert about["Found"] == [False]
    assert about["Accuracy"] == ["withheld"]
    assert mask.name.endswith("_res-4_desc-threehospitalsaverage_mask.nii.gz")
    np.testing.assert_array_equal(np.asarray(nib.load(mask).dataobj, dtype=bool), grid.mask)


def test_more_maps_are_the_volumes_of_one_image(tmp_path):
    grid = box_grid()
    two = ImageSet(np.ones((grid.features, 2)), "Maps.", ("a", "b"), suffix="components")
    path, _ = written(tmp_path, grid, maps=two)
    assert nib.load(path).shape == (*grid.shape, 2)
    assert written(tmp_path / "none", grid) == []
    assert not (tmp_path / "none").exists()


def test_two_sets_that_would_be_one_file_are_refused_before_any_is_written(tmp_path):
    grid = box_grid()
    first = ImageSet(np.ones((grid.features, 1)), "A.", ("a",), entities={"stat": "t-1"})
    same = replace(first, caption="B.", entities={"stat": "t1"})  # alike without the dash
    with pytest.raises(ValueError, match=r"'first' and 'second' would both be the file .*stat-t1"):
        written(tmp_path, grid, first=first, second=same)
    assert not list(tmp_path.iterdir())
    others = {"suffix": replace(same, suffix="components"), "stat": replace(same, entities={})}
    assert len(written(tmp_path, grid, first=first, **others)) == 4  # and one mask


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page of three components: the first stands out, one has no voxel, one was not found."""
    grid, folder = template_grid(12.0), tmp_path_factory.mktemp("out")
    maps = np.stack([8 * blob(grid, PEAK, 12.0), *2 * [np.full(grid.features, 9.0)]], axis=1)
    sure, unsure = Finding(0.91, 0.84, 0.95), Finding(0.4321, 0.1, 0.8, "withheld")
    drawn = ImageSet(
        maps,
        "Map of a network, in standard deviations.",
        ("component 1", "component 2", "component 3"),
        suffix="components",
        found=(True, True, False),
        accuracy=(sure, sure, unsure),
        threshold=np.array([[2.0, np.inf, 2.0]]) * np.ones_like(maps),
    )
    errors = replace(drawn, entities={"stat": "stderr"}, drawn=False, caption="Errors.")
    result = Result(
        {},
        images={"components": drawn, "errors": errors},
        captions=Captions(headline="2 networks found.", sign=True),
    )
    write_outputs(folder, finished(sample_study(), Space(grid), result))
    return Page((folder / "report.html").read_text(encoding="utf-8"))


def test_a_found_map_is_drawn_at_its_peak_with_how_sure_it_is(page):
    texts = page.values("img", "alt")
    assert len(texts) == 3
    assert all(text.startswith("Component 1: ") for text in texts)
    grid = template_grid(12.0)
    place = grid.coordinates[blob(grid, PEAK, 12.0).argmax()]
    told = ", ".join(f"{mm:.0f}".replace("-", "−") for mm in place)
    assert f"{told} mm" in page.text
    assert page.text.count("0.91 (0.84 to 0.95)") == 2
    count = int(np.count_nonzero(8 * blob(grid, PEAK, 12.0) >= 2.0))
    assert f"{count} voxels, from 2" in page.text


def test_a_map_that_was_not_found_is_listed_without_a_number_and_without_a_picture(page):
    assert page.values("article", "id") == ["components-1", "components-2", "components-3"]
    assert page.text.count("Not distinguishable from the noise") == 1
    assert "0.432" not in page.text
    assert "No voxel of this map passes the threshold." in page.text


def test_the_page_of_sets_leads_to_each_and_names_every_file(page):
    assert {f"#components-{k}" for k in (1, 2, 3)} <= set(page.values("a", "href"))
    assert "stat-stderr" in page.text
    assert "Errors." not in page.text
    assert page.text.count("2 of 3") == 1  # maps found
    assert "described by" not in page.text
    assert "same in all views" not in page.text
