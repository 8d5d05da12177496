"""Image files as hospitals write them: read as nibabel reads them, or named in a sentence.

Kinds K4, K6, K7 and K8 of the list of troubles that users of other tools reported.
"""

import shutil
from collections.abc import Callable
from itertools import permutations, product
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nibabel.gifti import GiftiDataArray, GiftiImage

from consortium.errors import DataError
from consortium.space.atlas import read_regions
from consortium.space.grid import mask_grid
from consortium.study.data_section import DataSection
from site_agent.data.bids import find_subjects
from site_agent.images.summary import summarize_series
from tests.contract.inputs.images import (
    MESH,
    NAMES,
    READERS,
    at_grid,
    cortex,
    mesh_series,
    parcel_series,
    patch_header,
    reoriented,
    single_images,
    surface_maps,
    voxel_series,
)
from tests.support.surfaces import write_dtseries, write_parcels, write_values
from tests.support.tiny_images import AFFINE, save, save_confounds, tiny_grid, tiny_series
from tests.unit.site_agent.images.test_summary import found_in, serious

SPACE = "space-MNI152NLin2009cAsym"
CODES = [
    "".join(code)
    for axes in permutations((("R", "L"), ("A", "P"), ("S", "I")))
    for code in product(*axes)
]
VOLUMES = 12
VERTICES = 10_242
RARE = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def bold(root: Path, label: str, more: str = "desc-preproc", end: str = ".nii.gz") -> Path:
    """Path of a participant's series of voxels."""
    name = "_".join(filter(None, (f"sub-{label}_task-rest", SPACE, more, "bold")))
    return root / f"sub-{label}" / "func" / f"{name}{end}"


def put(path: Path, image: Any) -> Path:
    """Write an image."""
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(image, path)
    return path


@st.composite
def stored(draw: st.DrawFn) -> tuple[nib.Nifti1Image, np.ndarray, str]:
    """An image in some way of storage, its values in the study's space, and its ending."""
    series = tiny_series(draw(st.integers(0, 99)), volumes=VOLUMES)
    kind = draw(st.sampled_from(["<f4", ">f4", "<f8", ">i2", "<i2", "<u2", "<i4"]))
    version = draw(st.sampled_from([nib.Nifti1Image, nib.Nifti2Image]))
    turned = reoriented(series, AFFINE, draw(st.sampled_from(CODES)))
    header = version.header_class(endianness=kind[0])
    header.set_data_dtype(np.dtype(kind))
    whole = kind[1:] in ("i2", "u2")
    slope = draw(st.sampled_from([0.05, 0.1, 1.0])) if whole else 1.0
    inter = draw(st.integers(0, 3)) if whole else 0
    made = version((np.asarray(turned.dataobj) - inter) / slope, turned.affine, header)
    codes = draw(st.sampled_from([(1, 0), (0, 1), (2, 1), (4, 4)]))
    made.set_sform(turned.affine if codes[0] else None, codes[0])
    made.set_qform(turned.affine, codes[1])
    if whole:
        made.header.set_slope_inter(slope, inter)
    return made, series, draw(st.sampled_from([".nii", ".nii.gz"]))


@RARE
@given(stored())
def test_a_series_in_any_storage_has_the_written_values(tmp_path_factory, made) -> None:
    image, series, end = made
    root = tmp_path_factory.mktemp("k") / "bids"
    path = put(bold(root, "01", end=end), image)
    values, sentences = voxel_series(root)
    assert not sentences
    np.testing.assert_allclose(values["01"], at_grid(series), atol=0.51)
    back = nib.as_closest_canonical(nib.load(path)).get_fdata()
    np.testing.assert_allclose(values["01"], at_grid(back), rtol=1e-6, atol=1e-3)


@RARE
@given(stored())
def test_a_single_image_in_any_storage_has_the_written_values(tmp_path_factory, made) -> None:
    image, series, end = made
    root = tmp_path_factory.mktemp("k") / "bids"
    volume = nib.load(put(root.parent / f"series{end}", image)).slicer[..., 0]
    put(root / "sub-01" / f"sub-01_statmap{end}", volume)
    values, sentences = single_images(root)
    assert not sentences
    np.testing.assert_allclose(values["01"], at_grid(series[..., 0]), atol=0.51)


@pytest.mark.parametrize("slope", [np.nan, 0.0, np.inf, -1.0, 2.0])
@pytest.mark.parametrize("end", [".nii", ".nii.gz"])
def test_odd_slopes_have_nibabels_values(tmp_path: Path, slope: float, end: str) -> None:
    root = tmp_path / "bids"
    path = save(bold(root, "01", end=end), tiny_series(volumes=VOLUMES).astype(np.int16))
    patch_header(path, 112, np.array([slope, 3.0], "<f4").tobytes())
    image = save(
        root / "sub-01" / f"sub-01_statmap{end}", np.asarray(nib.load(path).dataobj)[..., 0]
    )
    expected = at_grid(nib.load(path).get_fdata())
    values, sentences = voxel_series(root)
    np.testing.assert_allclose(values["01"], expected, rtol=1e-6)
    assert not sentences
    np.testing.assert_allclose(single_images(root)[0]["01"], at_grid(nib.load(image).get_fdata()))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _unoriented(path: Path) -> None:
    patch_header(path, 252, bytes(4))


def _complex(path: Path) -> None:
    save(path, (1j * np.asarray(nib.load(path).dataobj)).astype(np.complex64))


def _text(path: Path) -> None:
    path.write_text("sub-01/func is in the archive")


def _broken_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("../../.git/annex/objects/gone")


def _singular(path: Path) -> None:
    patch_header(path, 280, bytes(48))


BROKEN: dict[str, Callable[[Path], None]] = {
    "cut short": _cut,
    "no orientation": _unoriented,
    "complex numbers": _complex,
    "text": _text,
    "broken link": _broken_link,
    "singular affine": _singular,
    "empty": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("end", [".nii", ".nii.gz"])
def test_one_bad_file_leaves_out_its_participant_only(tmp_path: Path, case: str, end: str) -> None:
    root = tmp_path / "bids"
    for number, label in enumerate(("01", "02", "03")):
        series = tiny_series(number, volumes=VOLUMES)
        save(bold(root, label, end=end), series)
        save(root / f"sub-{label}" / f"sub-{label}_statmap{end}", series[..., 0])
    for path in (bold(root, "02", end=end), root / "sub-02" / f"sub-02_statmap{end}"):
        BROKEN[case](path)
    for read in (voxel_series, single_images):
        values, sentences = read(root)
        assert sorted(values) == ["01", "03"], case
        assert "sub-02" in sentences["02"]
        volume = nib.load(bold(root, "03", end=end)).get_fdata()
        expected = at_grid(volume if read is voxel_series else volume[..., 0])
        np.testing.assert_allclose(values["03"], expected, rtol=1e-6)
    subjects = find_subjects(root, DataSection())[0]
    assert dict(summarize_series(subjects, DataSection()).facts)["volumes"]


def test_no_orientation_is_named_and_used_only_where_the_site_accepts_it(tmp_path: Path) -> None:
    root = tmp_path / "bids"
    save(bold(root, "01"), tiny_series(volumes=VOLUMES))
    save(bold(root, "02"), tiny_series(volumes=VOLUMES))
    _unoriented(bold(root, "02"))
    values, sentences = voxel_series(root)
    assert sorted(values) == ["01"]
    assert "sform_code and qform_code are both 0" in sentences["02"]


@pytest.mark.parametrize("reader", [mask_grid, lambda path: read_regions(path, tiny_grid())])
@pytest.mark.parametrize("kind", ["no codes", "analyze"])
def test_public_images_without_orientation_are_refused(tmp_path: Path, reader, kind) -> None:
    mask = tiny_grid().mask.astype(np.uint8)
    path = save(tmp_path / "mask.nii", mask)
    assert reader(path) is not None
    if kind == "analyze":
        path = put(tmp_path / "mask.hdr", nib.AnalyzeImage(mask, AFFINE))
    else:
        _unoriented(path)
    with pytest.raises(DataError, match="must state its orientation") as raised:
        reader(path)
    assert str(path) in str(raised.value)


def test_k6_denoised_and_smoothed_files_are_not_mixed_in_silence(tmp_path: Path) -> None:
    root = tmp_path / "bids"
    for number in range(12):
        kinds = ["denoised", "denoisedSmoothed"] if number < 6 else ["denoisedSmoothed"]
        for kind in kinds:
            save(bold(root, f"{number:02d}", f"desc-{kind}"), tiny_series(number, volumes=VOLUMES))
    data = DataSection()
    (note,) = serious(summarize_series(found_in(root, data), data))
    assert "desc-denoised (6 participants), desc-denoisedSmoothed (6 participants)" in note
    assert "'data: {description: denoised}'" in note
    values, sentences = voxel_series(root, description="denoisedSmoothed")
    assert (len(values), sentences) == (12, {})
    values, sentences = voxel_series(root, description="denoised")
    assert (len(values), len(sentences)) == (6, 6)


LABELS = st.sampled_from(["desc-preproc", "desc-a", "desc-ab", "", "res-1", "res-2", "cohort-5"])


@RARE
@given(st.lists(st.sets(LABELS, min_size=1, max_size=3), min_size=2, max_size=5))
def test_k6_what_is_chosen_depends_on_own_files_and_mixtures_are_warned(
    tmp_path_factory, people
) -> None:
    root = tmp_path_factory.mktemp("k")
    for number, versions in enumerate(people):
        for version in versions:
            path = bold(root, f"{number}", version)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    subjects = found_in(root, DataSection())
    chosen = [subject.runs[0].bold.name[7:] for subject in subjects]
    for number, name in enumerate(chosen):
        alone = tmp_path_factory.mktemp("one")
        shutil.copytree(root / f"sub-{number}", alone / f"sub-{number}")
        ((subject,), _) = find_subjects(alone, DataSection())
        assert subject.runs[0].bold.name[7:] == name
    several = len(set(chosen)) > 1 or any(len(versions) > 1 for versions in people)
    assert bool(serious(summarize_series(subjects, DataSection()))) == several


def test_k6_a_linked_session_is_read_and_one_outside_is_named(tmp_path: Path) -> None:
    root, series = tmp_path / "bids", tiny_series(volumes=VOLUMES)
    inside = save(root / "sub-01" / "ses-a" / f"sub-01_ses-a_task-rest_{SPACE}_bold.nii", series)
    moved = root / "archive" / "ses-b"
    moved.mkdir(parents=True)
    shutil.copy(inside, moved / inside.name.replace("ses-a", "ses-b"))
    (root / "sub-01" / "ses-b").symlink_to(moved)
    values, _ = voxel_series(root)
    assert values["01"].shape[1] == 2 * VOLUMES
    (root / "sub-01" / "ses-b").unlink()
    shutil.move(moved, tmp_path / "ses-b")
    (root / "sub-01" / "ses-b").symlink_to(tmp_path / "ses-b")
    (note,) = serious(summarize_series(found_in(root, DataSection()), DataSection()))
    assert "outside the data set" in note


def test_k6_one_run_under_two_indices_is_named(tmp_path: Path) -> None:
    root = tmp_path / "bids"
    for run in ("run-1", "run-01"):
        path = root / "sub-01" / "func" / f"sub-01_task-rest_{run}_{SPACE}_bold.nii"
        save(path, tiny_series(volumes=VOLUMES))
    save(bold(root, "02"), tiny_series(volumes=VOLUMES))
    values, sentences = voxel_series(root)
    assert sorted(values) == ["02"]
    assert "run-1_" in sentences["01"]
    assert "run-01_" in sentences["01"]


@pytest.mark.parametrize(("columns", "left"), [(50, 0), (37, 1), (29, 9), (28, 10)])
def test_k7_too_few_degrees_of_freedom_are_named(tmp_path: Path, columns: int, left: int) -> None:
    root, volumes = tmp_path / "bids", 40
    names = {
        f"c_comp_{k}": np.random.default_rng(k).standard_normal(volumes) for k in range(columns)
    }
    save_confounds(save(bold(root, "01"), tiny_series(volumes=volumes)), names)
    save_confounds(
        save(bold(root, "02"), tiny_series(volumes=2 * columns + 20)),
        {
            name: np.random.default_rng(k).standard_normal(2 * columns + 20)
            for k, name in enumerate(names)
        },
    )
    values, sentences = voxel_series(root, detrend="linear", confounds=["c_comp_*"])
    assert ("01" in values) == (left >= 10)
    assert "02" in values
    if left < 10:
        assert f"leave {left}. " in sentences["01"]
        assert "40 volumes less" in sentences["01"]
    stated = DataSection(confounds=["c_comp_*"])
    facts = dict(summarize_series(found_in(root, stated), stated).facts)
    assert f"{38 - columns} of 40 volumes" in facts["least degrees of freedom left"]


def test_k4_a_damaged_json_file_leaves_out_its_participant_where_times_are_used(tmp_path) -> None:
    root = tmp_path / "bids"
    for number, label in enumerate(("01", "02")):
        path = save(bold(root, label), tiny_series(number, volumes=40))
        patch_header(path, 123, b"\x0a")  # mm and s
        path.with_name(path.name.replace(".nii.gz", ".json")).write_text('{"RepetitionTime": 2}')
    broken = bold(root, "02").with_name(bold(root, "02").name.replace(".nii.gz", ".json"))
    before = voxel_series(root, detrend="constant", high_pass=0.03)[0]
    broken.write_text('{"RepetitionTime": 1')
    values, sentences = voxel_series(root, detrend="constant", high_pass=0.03)
    assert sorted(values) == ["01"]
    assert broken.name in sentences["02"]
    np.testing.assert_array_equal(values["01"], before["01"])
    assert len(voxel_series(root)[0]) == 2  # without a filter no time is needed
    broken.unlink()
    (root / "task-rest_bold.json").write_text('{"RepetitionTime": 1}')
    inherited = voxel_series(root, detrend="constant", high_pass=0.03)[0]["02"]
    assert np.abs(inherited - before["02"]).max() > 1


NEAR = {
    "task-rest_SPACE_desc-preproc_bold.NII.GZ": "NII.GZ",
    "task-rest_part-phase_SPACE_bold.nii.gz": "part-phase",
    "task-rest_space-MNI152NLin6Asym_res-2_bold.nii.gz": "space-MNI152NLin6Asym instead",
    "task-Rest_SPACE_bold.nii.gz": "task-Rest instead of task-rest",
    "task-rest_SPACE_desc-denoised.nii.gz": "desc-denoised",
}


@pytest.mark.parametrize("name", NEAR)
def test_k8_a_near_miss_is_named_and_its_remedy_works(tmp_path: Path, name: str) -> None:
    root = tmp_path / "bids"
    save(bold(root, "01"), tiny_series(volumes=VOLUMES))
    image = root / "sub-02" / "func" / f"sub-02_{name.replace('SPACE', SPACE)}"
    image.parent.mkdir(parents=True)
    shutil.copy(bold(root, "01"), image)
    values, sentences = voxel_series(root)
    assert sorted(values) == ["01"]
    assert NEAR[name] in sentences["02"]
    assert image.name in sentences["02"]
    image.rename(image.with_name(f"sub-02_task-rest_{SPACE}_bold.nii.gz"))
    assert sorted(voxel_series(root)[0]) == ["01", "02"]


def test_k8_the_magnitude_is_read(tmp_path: Path) -> None:
    root = tmp_path / "bids"
    for part, seed in (("mag", 1), ("phase", 2)):
        path = root / "sub-01" / f"sub-01_task-rest_part-{part}_{SPACE}_bold.nii"
        save(path, tiny_series(seed, volumes=VOLUMES))
    expected = at_grid(tiny_series(1, volumes=VOLUMES))
    np.testing.assert_allclose(voxel_series(root)[0]["01"], expected, rtol=1e-6)


ENCODINGS = [f"GIFTI_ENCODING_{kind}" for kind in ("ASCII", "B64BIN", "B64GZ")]


def _sides(seed: int, volumes: int = 1) -> list[np.ndarray]:
    drawn = np.random.default_rng(seed).standard_normal((2, volumes, VERTICES))
    return [(100 + each).astype(np.float32) for each in drawn]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("kind", ["float32", "int32", "uint8"])
def test_gifti_series_and_maps_have_nibabels_values(tmp_path: Path, encoding, kind) -> None:
    root, expected, maps = tmp_path / "bids", [], []
    folder = root / "sub-01"
    folder.mkdir(parents=True)
    for side, values in zip("LR", _sides(0, 2), strict=True):
        arrays = [GiftiDataArray(each.astype(kind), encoding=encoding) for each in values]
        stem = f"sub-01_task-rest_hemi-{side}_space-{MESH}"
        paths = folder / f"{stem}_bold.func.gii", folder / f"{stem}_thickness.shape.gii"
        for path, some in zip(paths, (arrays, arrays[:1]), strict=True):
            nib.save(GiftiImage(darrays=some), path)
        expected.append(np.stack([each.data for each in nib.load(paths[0]).darrays], axis=1))
        maps.append(nib.load(paths[1]).darrays[0].data)
    series, sentences = mesh_series(root)
    np.testing.assert_array_equal(series["01"], np.concatenate(expected))
    assert not sentences
    np.testing.assert_array_equal(surface_maps(root)[0]["01"], np.concatenate(maps))


WALL = np.ones(VERTICES, dtype=bool)


@pytest.mark.parametrize("end", [".dtseries.nii", ".ptseries.nii"])
def test_cifti_series_have_nibabels_values(tmp_path: Path, end: str) -> None:
    root = tmp_path / "bids"
    name = f"sub-01_task-rest_space-fsaverage_den-10k_bold{end}"
    path, order = root / "sub-01" / "func" / name, slice(None)
    if end == ".dtseries.nii":
        write_dtseries(path, _sides(0, 3), [WALL, WALL])
        values, sentences = mesh_series(root)
    else:
        write_parcels(path, np.random.default_rng(0).standard_normal((3, 4)), NAMES[::-1])
        values, sentences = parcel_series(root)
        order = slice(None, None, -1)
    assert not sentences
    np.testing.assert_array_equal(values["01"], nib.load(path).get_fdata(dtype=np.float32).T[order])
    assert len(values["01"]) in (cortex().features, len(NAMES))


def test_overlays_have_nibabels_values(tmp_path: Path) -> None:
    folder = tmp_path / "bids" / "sub-01" / "surf"
    for side, values in zip("lr", _sides(0), strict=True):
        write_values(folder / f"{side}h.thickness.{MESH}.mgh", values[0])
    found = [nib.load(folder / f"{s}h.thickness.{MESH}.mgh").get_fdata().ravel() for s in "lr"]
    np.testing.assert_array_equal(surface_maps(tmp_path / "bids")[0]["01"], np.concatenate(found))


SURFACE_FILES = {
    "mesh series": ("sub-{}_task-rest_hemi-{}_space-fsaverage5_bold.func.gii", mesh_series),
    "surface maps": ("sub-{}_hemi-{}_space-fsaverage5_thickness.shape.gii", surface_maps),
}


@pytest.mark.parametrize("reader", SURFACE_FILES)
@pytest.mark.parametrize("case", ["cut short", "text", "broken link", "empty", "missing", "short"])
def test_one_bad_surface_leaves_out_its_participant_only(tmp_path: Path, reader, case) -> None:
    name, read = SURFACE_FILES[reader]
    root = tmp_path / "bids"
    for number, label in enumerate(("01", "02")):
        for side, values in zip("LR", _sides(number, 2), strict=True):
            some = values if reader == "mesh series" else values[:1]
            write_values(root / f"sub-{label}" / name.format(label, side), *some)
    path = root / "sub-02" / name.format("02", "R")
    if case == "missing":
        path.unlink()
    elif case == "short":
        write_values(
            path, *(each[:-1] for each in _sides(1, 2)[1][: 1 + (reader != "surface maps")])
        )
    else:
        BROKEN[case](path)
    values, sentences = read(root)
    assert sorted(values) == ["01"]
    assert "sub-02" in sentences["02"]


def test_every_reader_has_a_row() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert all(read.__name__ in text for read in READERS.values())
