"""Parcels of a mesh are those of CIFTI's labels, and series of parcels are found by their names."""

import nibabel as nib
import numpy as np
import pytest

from consortium.errors import DataError
from consortium.space.atlas import (
    LONGEST,
    parcel_places,
    parcels_of,
    read_anatomy,
    read_names,
    read_parcellation,
)
from consortium.space.mesh import read_mesh
from consortium.views.meshes import MeshFiles
from tests.support.surfaces import wall_of, write_dlabel, write_parcels, write_sphere, write_wall

AFFINE = np.diag([4.0, 4.0, 4.0, 1.0])
MESH = "fsaverage5"
VERTICES = 10_242
KEYS = [1 + np.arange(VERTICES) * 3 // VERTICES, 3 + np.arange(VERTICES) * 2 // VERTICES]
"""Parcels 1 to 3 on the left, 3 and 4 on the right: the third is on both."""
NAMES = {1: "L_front", 2: "L_back", 3: "both", 4: "R"}


@pytest.fixture
def atlas(tmp_path):
    values = np.zeros((10, 10, 10), dtype=np.int16)
    values[0:2, 0, 0], values[9, 9, 9] = 7, 12
    path = tmp_path / "atlas.nii.gz"
    nib.save(nib.Nifti1Image(values, AFFINE), path)
    (tmp_path / "atlas.tsv").write_text(
        "index\tname\tcolor\n7\tLeft Corner\tred\n12\tFar Corner\tblue\n"
    )
    return path


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ((0, 0, 0), "Left Corner"),
        ((5, 1, 1), "Left Corner"),
        ((4, 6, 0), "6 mm from Left Corner"),
        ((36, 36, 36), "Far Corner"),
        ((20, 20, 20), ""),
    ],
)
def test_a_place_has_the_name_of_its_region_or_of_one_nearby(atlas, place, name):
    assert read_anatomy(atlas).name_at(np.array(place, dtype=float)) == name


def test_a_label_that_the_table_does_not_name_has_no_name(atlas):
    atlas.with_name("atlas.tsv").write_text("index\tname\n12\tFar Corner\n")
    assert read_anatomy(atlas).name_at(np.zeros(3)) == ""


def test_a_name_is_one_short_printable_line(tmp_path):
    path = tmp_path / "names.tsv"
    path.write_text(f"index\tname\n1\tleft\x1b[31m\u202eside {'x' * 300}\n")
    (name,) = read_names(path).values()
    assert name.isprintable()
    assert len(name) <= LONGEST


@pytest.mark.parametrize(
    "text", ["", "label\tname\n1\ta\n", "index\tname\none\ta\n", "index\tname\n1\n"]
)
def test_a_table_of_another_form_is_refused_in_a_sentence(tmp_path, text):
    path = tmp_path / "names.tsv"
    path.write_text(text)
    with pytest.raises(DataError, match=r"names\.tsv"):
        read_names(path)


def test_an_atlas_of_fractions_is_refused(tmp_path):
    path = tmp_path / "maps.nii"
    nib.save(nib.Nifti1Image(np.full((2, 2, 2), 0.5, dtype=np.float32), AFFINE), path)
    with pytest.raises(DataError, match="3-D image of labels"):
        read_anatomy(path)


@pytest.fixture(scope="module")
def mesh(tmp_path_factory):
    root = tmp_path_factory.mktemp("mesh")
    for side in "LR":
        write_sphere(root / f"{side}.surf.gii", MESH)
        write_wall(root / f"{side}.wall.gii", MESH)
    files = (("L.surf.gii", "R.surf.gii"), ("L.wall.gii", "R.wall.gii"))
    return read_mesh(MeshFiles(MESH, *files), root)


@pytest.mark.parametrize("whole", [True, False])
def test_means_are_those_of_the_labels_vertices_outside_the_wall(mesh, tmp_path, whole):
    # Atlases have the medial wall's vertices as well, or leave them out.
    walls = None if whole else [wall_of(MESH)] * 2
    regions = read_parcellation(write_dlabel(tmp_path / "x.dlabel.nii", KEYS, NAMES, walls), mesh)
    assert regions.names == ("L_front", "L_back", "both", "R")
    values = np.random.default_rng(0).standard_normal((5, mesh.features)).astype(np.float32)
    keys = np.concatenate([own[wall_of(MESH)] for own in KEYS])
    expected = [values[:, keys == key].mean(axis=1) for key in NAMES]
    np.testing.assert_allclose(regions.average(values), np.transpose(expected), atol=1e-6)
    painted = regions.paint(np.arange(4.0)[:, None])[:, 0]
    assert np.array_equal(painted, keys - 1)


def test_who_names_parcels_otherwise_means_another_atlas(mesh, tmp_path):
    files = [
        write_dlabel(tmp_path / f"{n}.dlabel.nii", KEYS, NAMES | {4: name})
        for n, name in enumerate(("R", "Q"))
    ]
    one, other = (read_parcellation(path, mesh).digest for path in files)
    assert one != other


def _no_labels(path):
    write_parcels(path.with_name("y.pscalar.nii"), [1, 2]).replace(path)


def _other_mesh(path):
    write_dlabel(path, [np.ones(40_962), np.ones(40_962)], NAMES)


def _one_side(path):
    write_dlabel(path, [KEYS[0], 0 * KEYS[1]], NAMES)


def _same_name(path):
    write_dlabel(path, KEYS, NAMES | {2: "R"})


def _no_name(path):
    write_dlabel(path, KEYS, {key: name for key, name in NAMES.items() if key != 2})


def _fractions(path):
    write_dlabel(path, [each + 0.5 for each in KEYS], NAMES)


@pytest.mark.parametrize(
    ("write", "match"),
    [
        (_no_labels, "is not a complete .dlabel.nii"),
        (_fractions, "is not a complete .dlabel.nii"),
        (_other_mesh, "40,962 vertices in the left hemisphere, where fsaverage5 has 10,242"),
        (_one_side, "has no parcel in the right hemisphere"),
        (_same_name, "not a name of its own for each parcel"),
        (_no_name, "not a name of its own for each parcel"),
    ],
)
def test_what_is_no_atlas_of_the_mesh_is_told_in_a_sentence(mesh, tmp_path, write, match):
    path = tmp_path / "x.dlabel.nii"
    write(path)
    with pytest.raises(DataError, match=match):
        read_parcellation(path, mesh)


def test_columns_are_found_by_name_and_others_are_refused(mesh, tmp_path):
    regions = read_parcellation(write_dlabel(tmp_path / "x.dlabel.nii", KEYS, NAMES), mesh)
    path = tmp_path / "x.ptseries.nii"
    names = ("R", "spare", "both", "L_front", "L_back")
    image = nib.load(write_parcels(path, np.ones((7, 5)), names))
    assert parcels_of(image) == 5
    assert [names[place] for place in parcel_places(path, image, regions)] == [*regions.names]
    for other in (("R", "both", "L_front", "L_rear"), (*names, "L_back")):
        image = nib.load(write_parcels(path, np.ones((7, len(other))), other))
        with pytest.raises(DataError, match="has not one parcel 'L_back', as the study's atlas"):
            parcel_places(path, image, regions)
