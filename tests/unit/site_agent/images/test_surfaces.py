"""Maps on a mesh as nibabel writes them are read as nibabel reads them; others are named."""

from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from consortium.errors import DataError
from consortium.space.mesh import read_mesh
from consortium.space.study_space import ViewSpace
from consortium.study.data_section import DataSection
from consortium.views.meshes import MESHES
from consortium.views.surface import SurfaceView
from site_agent.images.surfaces import read_surfaces
from tests.support.surfaces import (
    say_side,
    wall_of,
    write_cifti,
    write_sphere,
    write_values,
    write_wall,
)

FSLR = "fsLR-32k"
SURFACES, WALLS = ("L.surf.gii", "R.surf.gii"), ("L.wall.gii", "R.wall.gii")
FILES = {FSLR: {"surfaces": SURFACES, "cortex": WALLS}, "fsaverage5": {}}


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study's files of fsLR-32k."""
    root = tmp_path_factory.mktemp("study")
    for surface, wall in zip(SURFACES, WALLS, strict=True):
        write_sphere(root / surface, FSLR)
        write_wall(root / wall, FSLR)
    return root


def view_of(public: Path, mesh: str, **more: object) -> ViewSpace[SurfaceView]:
    given = {"name": "cortex", "source": "surface", "mesh": mesh, "values": "thickness"}
    view = SurfaceView.model_validate(given | FILES[mesh] | more)
    found = read_mesh(view.mesh_files, public)
    return ViewSpace(view, found.features, mesh=found)


def halves(mesh: str, seed: int = 0) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    sides = generator.standard_normal((2, MESHES[mesh].vertices)).astype(np.float32)
    cortex = wall_of(mesh) if mesh == FSLR else np.ones(sides.shape[1], bool)
    return [np.where(cortex, 2.5 + side, np.nan).astype(np.float32) for side in sides]


def kept(sides: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([side[np.isfinite(side)] for side in sides])


def read(root: Path, view: ViewSpace[SurfaceView], **data: object) -> tuple[dict, dict]:
    vectors, skipped = read_surfaces(root, DataSection.model_validate(data), view)
    return vectors, {each.label: each for each in skipped}


def test_cifti_gifti_and_overlays_are_read_as_nibabel_reads_them(
    public: Path, tmp_path: Path
) -> None:
    view, nuclei = view_of(public, FSLR), np.ones((2, 2, 2), bool)
    sides = [halves(FSLR, seed) for seed in range(3)]
    thalamus = nib.cifti2.BrainModelAxis.from_mask(nuclei, "thalamus_left", np.eye(4))
    name = "sub-1_space-fsLR_den-91k_thickness.dscalar.nii"
    dense = write_cifti(tmp_path / "sub-1" / "anat" / name, *sides[0], FSLR, thalamus)
    for side, values in zip("LR", sides[1], strict=True):
        stem = f"sub-2_hemi-{side}_space-fsLR_den-32k_desc-smooth_thickness.func.gii"
        write_values(tmp_path / "sub-2" / "anat" / stem, values)
    for side, values in zip("lr", sides[2], strict=True):
        write_values(tmp_path / "sub-3" / "surf" / f"{side}h.thickness.fwhm10.mgz", values)
    found, skipped = read(tmp_path, view)
    assert not skipped
    for label, own in zip("123", sides, strict=True):
        np.testing.assert_array_equal(found[label], kept(own).astype(np.float64))
    told = np.asarray(nib.load(dense).dataobj)[0]
    np.testing.assert_array_equal(found["1"], told[: view.size])


def test_vertices_in_another_order_are_the_same_map(public: Path, tmp_path: Path) -> None:
    view, sides = view_of(public, FSLR), halves(FSLR)
    path = tmp_path / "sub-1" / "sub-1_thickness.dscalar.nii"
    straight = write_cifti(path, *sides, FSLR)
    image = nib.load(straight)
    names, axis = image.header.get_axis(0), image.header.get_axis(1)
    turned = np.arange(len(axis))[::-1]
    values = np.asarray(image.dataobj)[:, turned]
    nib.save(nib.Cifti2Image(values, (names, axis[turned])), path)
    found, _ = read(tmp_path, view)
    np.testing.assert_array_equal(found["1"], kept(sides).astype(np.float64))


def test_of_several_kinds_cifti_counts_and_other_meshes_are_passed_over(
    public: Path, tmp_path: Path
) -> None:
    view, sides = view_of(public, FSLR), halves(FSLR)
    home = tmp_path / "sub-1" / "anat"
    write_cifti(home / "sub-1_space-fsLR_den-91k_thickness.dscalar.nii", *sides, FSLR)
    for side in "LR":
        for space in ("fsLR_den-32k", "fsaverage5"):
            name = f"sub-1_hemi-{side}_space-{space}_thickness.shape.gii"
            write_values(home / name, np.ones(MESHES["fsaverage5"].vertices))
    found, _ = read(tmp_path, view)
    np.testing.assert_array_equal(found["1"], kept(sides).astype(np.float64))


def test_a_persons_own_mean_and_norm_are_taken_away_where_the_study_says_so(
    public: Path, tmp_path: Path
) -> None:
    sides = halves("fsaverage5")
    for side, values in zip("LR", sides, strict=True):
        write_values(tmp_path / "sub-1" / f"sub-1_hemi-{side}_thickness.shape.gii", values)
    found, _ = read(tmp_path, view_of(public, "fsaverage5", center=True, normalize=True))
    centred = kept(sides).astype(np.float64) - kept(sides).mean(dtype=np.float64)
    assert found["1"] == pytest.approx(centred / np.linalg.norm(centred), abs=1e-12)


def _dense(**changes: object) -> Callable[[Path], None]:
    def write(home: Path) -> None:
        given: dict = {"sides": halves(FSLR), "mesh": FSLR, "maps": 1} | changes
        path = home / "sub-1_thickness.dscalar.nii"
        write_cifti(path, *given["sides"], given["mesh"], maps=given["maps"])

    return write


def _sides(vertices: int, sides: str = "LR", maps: int = 1) -> Callable[[Path], None]:
    def write(home: Path) -> None:
        for side in sides:
            name = f"sub-1_hemi-{side}_thickness.shape.gii"
            write_values(home / name, *[np.ones(vertices)] * maps)

    return write


def _left_alone(home: Path) -> None:
    cortex = nib.cifti2.BrainModelAxis.from_surface(np.arange(9), 32_492, "CortexLeft")
    names = nib.cifti2.ScalarAxis(["map"])
    nib.save(nib.Cifti2Image(np.ones((1, 9)), (names, cortex)), home / "x_thickness.dscalar.nii")


def _parcels(home: Path) -> None:
    cortex = nib.cifti2.BrainModelAxis.from_surface(np.arange(9), 32_492, "CortexLeft")
    axes = nib.cifti2.ScalarAxis(["map"]), nib.cifti2.ParcelsAxis.from_brain_models([("a", cortex)])
    nib.save(nib.Cifti2Image(np.ones((1, 1)), axes), home / "x_thickness.dscalar.nii")


def _text(name: str) -> Callable[[Path], None]:
    def write(home: Path) -> None:
        for side in "LR":
            (home / name.format(side)).write_bytes(b"no image")

    return write


def _twice(home: Path) -> None:
    for run in "12":
        write_cifti(home / f"sub-1_run-{run}_thickness.dscalar.nii", *halves(FSLR), FSLR)


def _anothers(home: Path) -> None:
    write_cifti(home / "sub-2_thickness.dscalar.nii", *halves(FSLR), FSLR)


def _voxels(home: Path) -> None:
    cortex = nib.cifti2.BrainModelAxis.from_mask(np.ones((2, 2, 2)), "CortexLeft", np.eye(4))
    names = nib.cifti2.ScalarAxis(["map"])
    nib.save(nib.Cifti2Image(np.ones((1, 8)), (names, cortex)), home / "x_thickness.dscalar.nii")


def _unknown_structure(home: Path) -> None:
    path = write_cifti(home / "x_thickness.dscalar.nii", *halves(FSLR), FSLR)
    path.write_bytes(path.read_bytes().replace(b"STRUCTURE_CORTEX_LEFT", b"STRUCTURE_CORTEX_LEFX"))


def _unknown_encoding(home: Path) -> None:
    for side in "LR":
        path = write_values(home / f"hemi-{side}_thickness.func.gii", np.ones(32_492))
        path.write_bytes(path.read_bytes().replace(b"UTF-8", b"UTX-8"))


def _swapped(home: Path) -> None:
    for side, other in (("L", "Right"), ("R", "Left")):
        path = write_values(home / f"hemi-{side}_thickness.shape.gii", np.ones(32_492))
        say_side(path, other)


HOLES = [np.where(np.arange(32_492) == 20_000, np.inf, side) for side in halves(FSLR)]
OTHER_WALL = [np.roll(side, 5) for side in halves(FSLR)]
ALL = [np.ones(32_492), np.ones(32_492)]
REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "another density of CIFTI": (
        _dense(mesh="fsaverage5", sides=halves("fsaverage5")),
        "10,242 vertices in the left hemisphere, where fsLR-32k has 32,492. Resample it",
    ),
    "another density of GIFTI": (_sides(163_842), "163,842 vertices in the left hemisphere"),
    "another wall": (_dense(sides=OTHER_WALL), "left cortex, and the study's 31,139 are others"),
    "no wall": (_dense(sides=ALL), "32,492 vertices of the left cortex, and the study's 31,139"),
    "one hemisphere of CIFTI": (_left_alone, "others. Use the study's medial wall"),
    "one hemisphere of GIFTI": (_sides(32_492, "L"), "has no right hemisphere next to it"),
    "voxels under the cortex's name": (_voxels, "has no left cortex"),
    "an unknown structure of CIFTI": (_unknown_structure, "is not a complete CIFTI file"),
    "an unknown encoding of GIFTI": (_unknown_encoding, "can't be read. Give a whole GIFTI"),
    "hemispheres that were swapped": (_swapped, "hemi-L_thickness.shape.gii says that it is of"),
    "several maps of CIFTI": (_dense(maps=2), "not a dense file of one map"),
    "several maps of GIFTI": (_sides(32_492, maps=2), "number for each vertex"),
    "parcels": (_parcels, "not a dense file of one map"),
    "holes": (
        lambda home: (
            [
                write_values(home / f"{side}h.thickness.mgh", values)
                for side, values in zip("lr", HOLES, strict=True)
            ]
            and None
        ),
        "lh.thickness.mgh has no number at 1 of the study's vertices",
    ),
    "zeros": (
        lambda home: (
            [write_values(home / f"{side}h.thickness.mgh", np.zeros(32_492)) for side in "lr"]
            and None
        ),
        "zero at all of the study's vertices",
    ),
    "damaged CIFTI": (_text("{}_thickness.dscalar.nii"), "has 2 maps"),
    "damaged GIFTI": (_text("hemi-{}_thickness.func.gii"), "can't be read. Give a whole GIFTI"),
    "damaged overlay": (_text("lh.thickness.mgh"), "lh.thickness.mgh has no right hemisphere"),
    "two of a person": (_twice, "has 2 maps of thickness"),
    "another's": (_anothers, "is named as sub-2's"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_map_of_the_study_is_named_in_one_sentence(
    case: str, public: Path, tmp_path: Path
) -> None:
    write, told = REFUSED[case]
    home = tmp_path / "sub-1"
    home.mkdir()
    write(home)
    vectors, skipped = read(tmp_path, view_of(public, FSLR))
    assert not vectors
    assert skipped["1"].reason == "unusable"
    assert told in skipped["1"].detail
    assert len(skipped["1"].detail.split(". ")) <= 2


def test_a_session_that_is_not_the_studys_is_not_chosen(public: Path, tmp_path: Path) -> None:
    view = view_of(public, FSLR)
    for label, session in (("1", "a"), ("2", "b")):
        name = f"sub-{label}_ses-{session}_thickness.dscalar.nii"
        write_cifti(tmp_path / f"sub-{label}" / name, *halves(FSLR), FSLR)
    (tmp_path / "sub-3").mkdir()
    vectors, skipped = read(tmp_path, view, session="a")
    assert list(vectors) == ["1"]
    assert {label: each.reason for label, each in skipped.items()} == {
        "2": "not-chosen",
        "3": "no-view",
    }
    with pytest.raises(DataError, match="has no map of thickness on fsLR-32k"):
        read(tmp_path, view, session="c")


def test_a_mesh_without_surfaces_or_with_others_is_refused(public: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="those of fsaverage6 are in no package"):
        SurfaceView(name="x", source="surface", mesh="fsaverage6", values="thickness")
    with pytest.raises(DataError, match="32,492 vertices, where fsaverage5 has 10,242"):
        view_of(public, "fsaverage5", surfaces=SURFACES)
    with pytest.raises(DataError, match=r"medial wall L\.wall\.gii has 32,492 vertices"):
        view_of(public, "fsaverage5", cortex=WALLS)
    with pytest.raises(DataError, match="not next to the study file"):
        view_of(public, FSLR, surfaces=("../L.surf.gii", "R.surf.gii"))
    for side, name in (("L", "Left"), ("R", "Right")):
        say_side(write_sphere(tmp_path / f"{side}.surf.gii", FSLR), name)
    view_of(tmp_path, FSLR, surfaces=SURFACES, cortex=None)
    with pytest.raises(DataError, match=r"R\.surf\.gii says that it is of the right hemisphere"):
        view_of(tmp_path, FSLR, surfaces=SURFACES[::-1], cortex=None)
    with pytest.raises(DataError, match="has no surface"):
        view_of(public, FSLR, surfaces=WALLS)
    write_values(tmp_path / "L.wall.gii", np.zeros(10_242))
    with pytest.raises(DataError, match="must be 1 on the cortex"):
        view_of(tmp_path, "fsaverage5", cortex=("L.wall.gii", "L.wall.gii"))
