"""Series on a mesh are read as nibabel reads them, and what is of another mesh is named."""

import json
from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from pydantic import ValidationError

from consortium.errors import DataError
from consortium.space.atlas import Regions, Target, read_parcellation
from consortium.space.mesh import Mesh, read_mesh
from consortium.space.study_space import Space
from consortium.study.data_section import DataSection
from site_agent.data.bids import find_subjects
from site_agent.data.survey import RecordingRun, Subject
from site_agent.images.preprocess import preprocess_person, standardize_series, to_prepare
from site_agent.images.recordings import recording_remarks
from site_agent.images.repetition import seconds_apart
from site_agent.images.series import SiteDataset
from site_agent.images.surfaces import count_volumes, read_surface_series
from tests.support.surfaces import (
    below_cortex,
    say_side,
    wall_of,
    write_cifti,
    write_dlabel,
    write_dtseries,
    write_func_pair,
    write_parcels,
    write_sphere,
    write_values,
    write_wall,
)

FSLR, FIVE, SIX = "fsLR-32k", "fsaverage5", "fsaverage6"
VOLUMES, STEM = 8, "sub-01_task-rest"
PUBLIC = {
    "mesh": FSLR,
    "surfaces": ("L.surf.gii", "R.surf.gii"),
    "cortex": ("L.wall.gii", "R.wall.gii"),
    "minimum_volumes": 5,
}
WALLS = [wall_of(FSLR)] * 2


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("study")
    for side in "LR":
        write_sphere(root / f"{side}.surf.gii", FSLR)
        write_wall(root / f"{side}.wall.gii", FSLR)
    return root


@pytest.fixture(scope="module")
def mesh(public: Path) -> Mesh:
    files = DataSection.model_validate(PUBLIC).mesh_files
    assert files is not None
    return read_mesh(files, public)


def halves(vertices: int = 32_492, volumes: int = VOLUMES, seed: int = 0) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    drawn = generator.standard_normal((2, volumes, vertices), dtype=np.float32)
    return [100 + each for each in drawn]


def dataset(root: Path, mesh: Mesh, cache: Path, **data: object) -> SiteDataset:
    section = DataSection.model_validate(PUBLIC | data)
    space = Space(grid=None, mesh=mesh)  # type: ignore[arg-type]  # a study on a mesh has no use of it
    return SiteDataset(root, section, space, "subject", cache)


def of_nibabel(path: Path, mesh: Mesh) -> np.ndarray:
    """Values at the cortex's vertices by nibabel alone, T x D."""
    image = nib.load(path)
    values, axis, found = image.get_fdata(dtype=np.float32), image.header.get_axis(1), {}
    for name, rows, model in axis.iter_structures():
        found[name] = {v: values[:, rows][:, k] for k, v in enumerate(model.vertex)}
    sides = zip(mesh.sides, ("LEFT", "RIGHT"), strict=True)
    return np.stack(
        [
            found[f"CIFTI_STRUCTURE_CORTEX_{name}"][v]
            for side, name in sides
            for v in np.flatnonzero(side.cortex)
        ],
        axis=1,
    )


@pytest.mark.parametrize("more", [[], [below_cortex()]])
def test_a_dense_series_has_nibabels_values(tmp_path: Path, mesh: Mesh, more: list) -> None:
    path = write_dtseries(tmp_path / f"{STEM}_bold.dtseries.nii", halves(), WALLS, *more)
    run = RecordingRun(path)
    series = read_surface_series(run, mesh)
    assert series.dtype == np.float32
    assert count_volumes(run, mesh) == VOLUMES
    np.testing.assert_array_equal(series, of_nibabel(path, mesh))


def test_scaled_integers_have_nibabels_values(tmp_path: Path, mesh: Mesh) -> None:
    path = write_dtseries(tmp_path / "x.dtseries.nii", halves(), WALLS)
    image = nib.load(path)
    image.nifti_header.set_data_dtype(np.int16)
    image.nifti_header.set_slope_inter(0.01, 3.0)
    again = nib.Cifti2Image(image.get_fdata(), image.header, image.nifti_header)
    nib.save(again, path)
    series = read_surface_series(RecordingRun(path), mesh)
    np.testing.assert_allclose(series, of_nibabel(path, mesh), rtol=1e-6)


def test_a_pair_of_gifti_has_nibabels_values(tmp_path: Path, mesh: Mesh) -> None:
    sides = halves()
    write_func_pair(tmp_path, STEM, "fsLR", sides)
    left, right = (tmp_path / f"{STEM}_hemi-{s}_space-fsLR_bold.func.gii" for s in "LR")
    series = read_surface_series(RecordingRun(left, right=right), mesh)
    expected = np.concatenate(
        [
            np.stack([a.data for a in nib.load(p).darrays])[:, side.cortex]
            for p, side in zip((left, right), mesh.sides, strict=True)
        ],
        axis=1,
    )
    np.testing.assert_array_equal(series, expected)


def test_trends_confounds_and_bands_are_taken_out_as_of_voxels(tmp_path: Path, mesh: Mesh) -> None:
    volumes = 24
    name = f"{STEM}_space-fsLR_bold.dtseries.nii"
    path = write_dtseries(tmp_path / name, halves(volumes=volumes), WALLS)
    drift = np.cumsum(np.random.default_rng(1).standard_normal(volumes))
    table = tmp_path / f"{STEM}_desc-confounds_timeseries.tsv"
    table.write_text("\n".join(["drift", *map(str, drift)]) + "\n")
    data = DataSection.model_validate(PUBLIC | {"confounds": ("drift",), "high_pass": 0.05})
    found = preprocess_person(Subject("01", (RecordingRun(path, table),)), data, Target(mesh))
    time = np.linspace(-1, 1, volumes)
    step, order = 2.0, np.arange(1, volumes)
    slow = order[order / (2 * volumes * step) < 0.05]
    cosines = np.cos(np.pi * np.outer(np.arange(volumes) + 0.5, slow) / volumes)
    model = np.column_stack([np.ones(volumes), time, drift, cosines])
    values = of_nibabel(path, mesh).astype(np.float64)
    left = values - model @ np.linalg.lstsq(model, values, rcond=None)[0]
    standardize_series(left, data, path)
    np.testing.assert_allclose(found.T, left, atol=1e-4 * np.abs(left).max())


def test_a_data_set_is_found_read_and_kept(tmp_path: Path, mesh: Mesh) -> None:
    root = tmp_path / "bids"
    for label, kind in (("01", "cifti"), ("02", "gifti"), ("03", "both")):
        func, stem = root / f"sub-{label}" / "func", f"sub-{label}_task-rest"
        if kind != "gifti":
            name = f"{stem}_space-fsLR_den-91k_bold.dtseries.nii"
            write_dtseries(func / name, halves(seed=int(label)), WALLS, below_cortex())
        if kind != "cifti":
            write_func_pair(func, stem, "fsLR_den-32k", halves(seed=int(label), volumes=6))
    found = dataset(root, mesh, tmp_path / "cache")
    assert found.people == ("01", "02", "03")
    assert found.lengths == (VOLUMES, 6, VOLUMES)  # CIFTI goes before GIFTI
    assert found.features == mesh.features
    blocks = [np.array(block) for block in found.blocks()]
    again = dataset(root, mesh, tmp_path / "cache")
    for one, other in zip(blocks, again.blocks(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(list((tmp_path / "cache").glob("*.npy"))) == 3


def test_a_changed_right_hemisphere_is_read_again(tmp_path: Path, mesh: Mesh) -> None:
    func = tmp_path / "bids" / "sub-02" / "func"
    write_func_pair(func, "sub-02_task-rest", "fsLR", halves())
    before = np.array(next(dataset(tmp_path / "bids", mesh, tmp_path / "cache").blocks()))
    write_values(func / "sub-02_task-rest_hemi-R_space-fsLR_bold.func.gii", *halves(seed=9)[1])
    after = np.array(next(dataset(tmp_path / "bids", mesh, tmp_path / "cache").blocks()))
    assert not np.array_equal(before, after)


def test_a_session_is_chosen_and_longer_names_are_told_apart(tmp_path: Path, mesh: Mesh) -> None:
    for session in ("a", "b"):
        func, stem = tmp_path / "sub-01" / f"ses-{session}", f"sub-01_ses-{session}_task-rest"
        for more in ("", "_desc-preproc", "_desc-smoothed"):
            name = f"{stem}_space-fsLR_den-91k{more}_bold.dtseries.nii"
            write_dtseries(func / name, halves(volumes=8), WALLS)
    (one,) = dataset(tmp_path, mesh, tmp_path / "c", session="b").survey.subjects
    names = [run.bold.name for run in one.runs]
    assert names == ["sub-01_ses-b_task-rest_space-fsLR_den-91k_desc-preproc_bold.dtseries.nii"]
    (both,) = dataset(tmp_path, mesh, tmp_path / "c").survey.subjects
    assert len(both.runs) == 2


Maker = Callable[[Path], object]
CIFTI, PAIR = (
    f"{STEM}_space-fsLR_den-91k_bold.dtseries.nii",
    f"{STEM}_hemi-{{}}_space-fsLR_bold.func.gii",
)


def _wrong_wall(func: Path) -> None:
    write_dtseries(func / CIFTI, halves(), [WALLS[0], np.roll(WALLS[1], 1)])


def _other_mesh(func: Path) -> None:
    write_dtseries(func / CIFTI, halves(40_962), [wall_of(SIX)] * 2)


def _one_cortex(func: Path) -> None:
    image = nib.load(write_dtseries(func / "whole.dtseries.nii", halves(), WALLS))
    (_, rows, model), *_ = image.header.get_axis(1).iter_structures()
    values = image.get_fdata(dtype=np.float32)[:, rows]
    nib.save(nib.Cifti2Image(values, (image.header.get_axis(0), model)), func / CIFTI)


def _scalars(func: Path) -> None:
    sides = [np.where(w, 1.0, np.nan).astype(np.float32) for w in WALLS]
    write_cifti(func / CIFTI, *sides, FSLR, maps=8)


def _short(func: Path) -> None:
    path = write_dtseries(func / CIFTI, halves(), WALLS)
    path.write_bytes(path.read_bytes()[:-4096])


def _gap(func: Path) -> None:
    sides = halves()
    sides[1][3, 20_000] = np.nan
    write_dtseries(func / CIFTI, sides, WALLS)


def _no_right(func: Path) -> None:
    write_func_pair(func, STEM, "fsLR", halves())
    (func / PAIR.format("R")).unlink()


def _no_left(func: Path) -> None:
    write_func_pair(func, STEM, "fsLR", halves())
    (func / PAIR.format("L")).unlink()


def _sides_differ(func: Path) -> None:
    write_func_pair(func, STEM, "fsLR", halves())
    write_values(func / PAIR.format("R"), *halves(volumes=6)[1])


def _swapped(func: Path) -> None:
    write_func_pair(func, STEM, "fsLR", halves())
    say_side(func / PAIR.format("L"), "Right")


def _other_gifti(func: Path) -> None:
    write_func_pair(func, STEM, "fsLR", halves(10_242))


def _no_gifti(func: Path) -> None:
    for side in "LR":
        func.mkdir(parents=True, exist_ok=True)
        (func / PAIR.format(side)).write_text("no XML")


def _says_many(func: Path) -> None:
    write_func_pair(func, STEM, "fsLR", halves(volumes=6))
    for side in "LR":
        path = func / PAIR.format(side)
        head, more = path.read_bytes().split(b'NumberOfDataArrays="6"')
        path.write_bytes(head + b'NumberOfDataArrays="30000"' + more[:1_000_000])


def _other_density(func: Path) -> None:
    write_dtseries(func / CIFTI.replace("91k", "170k"), halves(volumes=6), WALLS)


def _native(func: Path) -> None:
    write_func_pair(func, STEM, "fsnative", halves(volumes=6))


REFUSED: dict[str, tuple[Maker, str]] = {
    "wall": (
        _wrong_wall,
        "the right cortex, and the study's 31,139 are others. Use the study's medial",
    ),
    "mesh": (
        _other_mesh,
        "40,962 vertices in the left hemisphere, where fsLR-32k has 32,492. Resample",
    ),
    "cortex": (_one_cortex, "has no right cortex. Give both hemispheres"),
    "scalars": (_scalars, "is not a complete dense series. Give a .dtseries.nii"),
    "short": (_short, "is cut short or damaged. Copy the file again"),
    "gap": (_gap, "has a value that is not finite in volume 4"),
    "right": (_no_right, "has no right hemisphere next to it. Add its file"),
    "left": (_no_left, "has no left hemisphere next to it. Add its file"),
    "lengths": (_sides_differ, "has 8 volumes and .* has 6. Write both again"),
    "swapped": (
        _swapped,
        "says that it is of the right hemisphere, and is given as that of the left",
    ),
    "gifti": (_other_gifti, "10,242 vertices in the left hemisphere, where fsLR-32k has 32,492"),
    "many": (_says_many, "is not a GIFTI file with a map for each volume. Write it again"),
    "text": (_no_gifti, "is not a GIFTI file with a map for each volume. Write it again"),
    "density": (
        _other_density,
        "den-170k_bold.dtseries.nii is not named as on fsLR-32k. Resample it",
    ),
    "native": (_native, "space-fsnative_bold.func.gii is not named as on fsLR-32k. Resample it"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_does_not_fit_is_named_in_a_sentence(tmp_path: Path, mesh: Mesh, name: str) -> None:
    make, why = REFUSED[name]
    make(tmp_path / "bids" / "sub-01" / "func")
    good = "sub-02_task-rest_space-fsLR_den-91k_bold.dtseries.nii"
    write_dtseries(tmp_path / "bids" / "sub-02" / "func" / good, halves(volumes=8), WALLS)
    found = dataset(tmp_path / "bids", mesh, tmp_path / "cache")
    list(found.load())
    (skipped,) = found.survey.skipped
    assert found.people == ("02",)  # whose own files are sound
    with pytest.raises(DataError, match=why):
        raise DataError(skipped.detail)
    assert skipped.detail.count(". ") == 1


def test_a_volume_that_is_not_finite_is_zero_where_volumes_are_protected(
    tmp_path: Path, mesh: Mesh
) -> None:
    sides = halves()
    sides[0][3, 20_000] = np.inf
    run = RecordingRun(write_dtseries(tmp_path / CIFTI, sides, WALLS))
    series = read_surface_series(run, mesh, "timepoint")
    assert not series[3].any()
    assert np.isfinite(series).all()


def test_a_folder_without_series_says_what_is_wanted(tmp_path: Path, mesh: Mesh) -> None:
    (tmp_path / "sub-01").mkdir()
    data = dataset(tmp_path, mesh, tmp_path / "c")
    assert data.lengths == ()
    assert "sub-*_bold.dtseries.nii of task-rest on the mesh fsLR-32k" in data.nobody


def test_seconds_are_the_sidecars_or_the_axis(tmp_path: Path) -> None:
    path = write_dtseries(tmp_path / CIFTI, halves(volumes=6), WALLS, step=0.8)
    assert seconds_apart(RecordingRun(path)) == 0.8
    (tmp_path / CIFTI.replace(".dtseries.nii", ".json")).write_text(
        json.dumps({"RepetitionTime": 3})
    )
    assert seconds_apart(RecordingRun(path)) == 3.0
    write_func_pair(tmp_path, STEM, "fsLR", halves(volumes=6))
    with pytest.raises(
        DataError, match=r"time in s is required.* Write RepetitionTime into .*_bold\.json"
    ):
        seconds_apart(RecordingRun(tmp_path / PAIR.format("L")))


def test_recordings_of_another_length_are_named(tmp_path: Path) -> None:
    paths = [tmp_path / f"sub-{k}_{CIFTI}" for k in range(3)]
    for path, volumes in zip(paths, (8, 8, 5), strict=True):
        write_dtseries(path, halves(volumes=volumes), WALLS)
    (told,) = recording_remarks([Subject(p.name, (RecordingRun(p),)) for p in paths])
    assert "has 5 volumes, where the median is 8" in told


def test_memory_grows_with_the_volumes(mesh: Mesh) -> None:
    once, twice = (to_prepare(Target(mesh), volumes) for volumes in (100, 200))
    assert once > 100 * 4 * 3 * mesh.features
    assert 1.9 < twice / once < 2.0


PARCELS = "L_front", "L_back", "R_front", "R_back"
KEYS = [2 * k + 1 + np.arange(32_492) * 2 // 32_492 for k in range(2)]
ATLAS = PUBLIC | {"atlas": "seg-Halves.dlabel.nii"}
SEVERAL = f"{STEM}_space-fsLR_seg-Halves_den-91k_stat-mean_timeseries.ptseries.nii"


@pytest.fixture(scope="module")
def regions(mesh: Mesh, tmp_path_factory: pytest.TempPathFactory) -> Regions:
    names = dict(enumerate(PARCELS, 1))
    path = tmp_path_factory.mktemp("atlas") / "seg-Halves.dlabel.nii"
    return read_parcellation(write_dlabel(path, KEYS, names), mesh)


def test_a_series_of_parcels_has_nibabels_values_by_name(
    tmp_path: Path, mesh: Mesh, regions: Regions
) -> None:
    values = np.random.default_rng(0).standard_normal((VOLUMES, 5))
    names = ("R_back", "Thalamus", "L_front", "R_front", "L_back")
    path = write_parcels(tmp_path / SEVERAL, values, names)
    stored, run = nib.load(path).get_fdata(dtype=np.float32), RecordingRun(path)
    series = read_surface_series(run, mesh, regions=regions)
    assert series.dtype == np.float32
    np.testing.assert_array_equal(series, stored[:, [names.index(each) for each in PARCELS]])
    assert count_volumes(run, mesh, regions) == count_volumes(run) == VOLUMES
    assert seconds_apart(RecordingRun(path)) == 0.72
    with pytest.raises(DataError, match=r"the study names none. Add data\.atlas"):
        read_surface_series(run, mesh)


def test_parcels_of_some_and_vertices_of_others_are_one_study(
    tmp_path: Path, mesh: Mesh, regions: Regions
) -> None:
    root, sides = tmp_path / "bids", halves(volumes=24)
    for own, keys in zip(sides, KEYS, strict=True):
        own += 5 * np.random.default_rng(keys[0]).standard_normal((24, 5))[:, keys]
    func = {label: root / f"sub-{label}" / "func" for label in ("01", "02", "03", "04")}
    for home in func.values():
        home.mkdir(parents=True)
    dense = write_dtseries(func["01"] / f"sub-01_{CIFTI[7:]}", sides, WALLS)
    means = regions.average(of_nibabel(dense, mesh))
    for label, names in (("02", PARCELS), ("03", ("L_front", "L_rear", *PARCELS[2:]))):
        write_parcels(func[label] / SEVERAL.replace("sub-01", f"sub-{label}"), means, names)
    other = SEVERAL.replace("sub-01", "sub-04").replace("Halves", "Glasser")
    write_parcels(func["04"] / other, means, PARCELS)
    section = DataSection.model_validate(ATLAS)
    space = Space(None, regions, mesh=mesh)  # type: ignore[arg-type]  # as in `dataset`
    data = SiteDataset(root, section, space, "subject", tmp_path / "cache")
    assert data.people == ("01", "02")
    vertices, parcels = (np.array(block) for block in data.blocks("features"))
    assert vertices.shape == (4, 24)
    np.testing.assert_allclose(vertices, parcels, atol=2e-4)
    told = {each.label: each.detail for each in data.survey.skipped}
    assert "has not one parcel 'L_back', as the study's atlas has" in told["03"]
    assert "has no image of task-rest on the mesh fsLR-32k" in told["04"]


def test_dense_series_come_before_those_of_parcels(tmp_path: Path, mesh: Mesh) -> None:
    home = tmp_path / "sub-01" / "func"
    write_dtseries(home / CIFTI, halves(volumes=8), WALLS)
    write_parcels(home / SEVERAL, np.ones((8, 4)), PARCELS)
    for section, names in ((ATLAS, [CIFTI]), (PUBLIC, [CIFTI])):
        subjects, _ = find_subjects(tmp_path, DataSection.model_validate(section))
        assert [run.bold.name for each in subjects for run in each.runs] == names
    (home / CIFTI).unlink()
    subjects, _ = find_subjects(tmp_path, DataSection.model_validate(ATLAS))
    assert [run.bold.name for run in subjects[0].runs] == [SEVERAL]


def _damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _of_maps(path: Path) -> None:
    write_parcels(path.with_name("x.pscalar.nii"), np.ones(4), PARCELS).replace(path)


@pytest.mark.parametrize("spoil", [_damage, _of_maps])
def test_a_damaged_series_of_parcels_is_named(
    tmp_path: Path, mesh: Mesh, regions: Regions, spoil: Callable[[Path], None]
) -> None:
    path = write_parcels(tmp_path / SEVERAL, np.ones((8, 4)), PARCELS)
    spoil(path)
    said = "is not a complete series of parcels|is cut short or damaged. Copy the file again"
    with pytest.raises(DataError, match=said):
        read_surface_series(RecordingRun(path), mesh, regions=regions)


def test_an_atlas_of_voxels_is_none_of_a_mesh() -> None:
    with pytest.raises(ValidationError, match=r"with .dlabel.nii as its name's end"):
        DataSection.model_validate(PUBLIC | {"atlas": "atlas.nii.gz"})
