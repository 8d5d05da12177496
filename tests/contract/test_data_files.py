"""Whatever a data set is read from: no file of a person is waited for, nor fills the memory.

Each reader gets a data set of two persons. Every file of the first, whatever its name, becomes a
pipe, a folder or a link to an endless device: the person is left out by a sentence that names the
file, or the file was none that is read.
"""

import functools
import gzip
import os
import shutil
import signal
import struct
import tempfile
import tracemalloc
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from scipy.io import savemat

from consortium.base import regular_file
from consortium.errors import DataError
from consortium.space import mesh as mesh_module
from consortium.space.mesh import Mesh, read_mesh
from consortium.space.study_space import Space, ViewSpace
from consortium.study.data_section import DataSection
from consortium.views.surface import SurfaceView
from consortium.views.table import TableView
from site_agent.data.survey import RecordingRun, SkippedPerson
from site_agent.data.tsv import read_table
from site_agent.eeg import native_checks
from site_agent.eeg.reading import read_recording
from site_agent.eeg.vectors import read_recordings
from site_agent.engines.base import Threads
from site_agent.images import nifti
from site_agent.images.series import SiteDataset
from site_agent.images.surfaces import read_surface_series, read_surfaces
from tests.support.recordings import WRITERS
from tests.support.surfaces import (
    write_cifti,
    write_dtseries,
    write_func_pair,
    write_parcels,
    write_values,
)
from tests.support.tiny_images import save, save_confounds, tiny_grid, tiny_series
from tests.support.tiny_recordings import CHANNELS, RATE, erp_view, record, tiny_tape

FIVE, VERTICES, VOLUMES = "fsaverage5", 10_242, 24
PEOPLE = ("01", "02")
Vectors = dict[str, np.ndarray]
Found = tuple[Vectors, dict[str, SkippedPerson]]


@functools.cache
def mesh() -> Mesh:
    files = DataSection.model_validate({"mesh": FIVE}).mesh_files
    assert files is not None
    return read_mesh(files, Path())


def halves(shape: tuple[int, ...], seed: int) -> list[np.ndarray]:
    drawn = np.random.default_rng(seed).standard_normal((2, *shape)).astype(np.float32)
    return list(100 + drawn)


# -- kinds of data: how a person's files are written, and how all are read -----------------------


def write_volumes(root: Path, label: str, ending: str) -> None:
    name = f"sub-{label}_task-rest_space-MNI152NLin2009cAsym_desc-preproc_bold{ending}"
    path = save(root / f"sub-{label}" / "func" / name, tiny_series(int(label), VOLUMES))
    save_confounds(path, {"drift": np.linspace(0, 1, VOLUMES) ** 3})
    path.with_name(name.replace(ending, ".json")).write_text('{"RepetitionTime": 2.0}')


def write_on_mesh(root: Path, label: str, ending: str) -> None:
    home, stem = root / f"sub-{label}" / "func", f"sub-{label}_task-rest"
    sides = halves((VOLUMES, VERTICES), int(label))
    if ending == ".func.gii":
        home.mkdir(parents=True)
        write_func_pair(home, stem, FIVE, sides)
        beside = home / f"{stem}_hemi-L_space-{FIVE}_bold.json"
    else:
        walls = [np.ones(VERTICES, bool)] * 2
        write_dtseries(home / f"{stem}_space-{FIVE}_bold{ending}", sides, walls)
        beside = home / f"{stem}_space-{FIVE}_bold.json"
    beside.write_text('{"RepetitionTime": 2.0}')


def read_series(root: Path, space: Space, **more: object) -> Found:
    section = DataSection.model_validate({"high_pass": 0.01, "minimum_volumes": 5} | more)
    dataset = SiteDataset(root, section, space, "subject", root / "cache")
    for _ in dataset.load():
        pass
    found = dataset.survey
    blocks = [block.copy() for block in dataset.blocks()]
    people = [each.label for each in found.subjects]
    assert len(people) == len(blocks)
    return dict(zip(people, blocks, strict=True)), {each.label: each for each in found.skipped}


def read_volumes(root: Path) -> Found:
    return read_series(root, Space(tiny_grid()), confounds=("drift",))


def read_on_mesh(root: Path) -> Found:
    return read_series(root, Space(grid=None, mesh=mesh()), mesh=FIVE)  # type: ignore[arg-type]


def write_map(root: Path, label: str, ending: str) -> None:
    home, sides = root / f"sub-{label}" / "anat", halves((VERTICES,), int(label))
    if ending == ".dscalar.nii":
        write_cifti(home / f"sub-{label}_thickness{ending}", *sides, FIVE)
        return
    for side, values in zip("LR", sides, strict=True):
        gifti = f"sub-{label}_hemi-{side}_thickness{ending}"
        overlay = f"{side.lower()}h.thickness{ending}"
        write_values(home / (gifti if ending.endswith(".gii") else overlay), values)


def read_maps(root: Path) -> Found:
    given = {"name": "cortex", "source": "surface", "mesh": FIVE, "values": "thickness"}
    view = ViewSpace(SurfaceView.model_validate(given), mesh().features, mesh=mesh())
    vectors, skipped = read_surfaces(root, DataSection(), view)
    return vectors, {each.label: each for each in skipped}


def write_eeg(root: Path, label: str, ending: str) -> None:
    tape = tiny_tape(int(label))
    path = record(root, label, tape, ".vhdr" if ending == ".set" else ending)
    if ending == ".set":
        for each in path.parent.glob("*_eeg.*"):
            each.unlink()
        path = path.with_suffix(".set")
        tape.signals.T.astype("<f4").tofile(path.with_suffix(".fdt"))
        write_eeglab(path, tape.signals.shape[1], path.with_suffix(".fdt").name)


def write_eeglab(path: Path, points: int, data: object, *, pack: bool = False) -> None:
    places = np.array([(name, 0.0) for name in CHANNELS], dtype=[("labels", "O"), ("X", "f8")])
    content = {
        "nbchan": len(CHANNELS), "pnts": points, "trials": 1, "srate": float(RATE), "xmin": 0.0,
        "xmax": points / RATE, "data": data, "chanlocs": places, "event": [], "epoch": [],
    }  # fmt: skip
    savemat(path, {"EEG": content}, appendmat=False, do_compression=pack)


def read_eeg(root: Path) -> Found:
    vectors, skipped = read_recordings(root, erp_view(), DataSection(), root / "cache", Threads())
    return vectors, {each.label: each for each in skipped}


PARCELS = ".pscalar.nii", ".ptseries.nii"


def write_person(root: Path, label: str, ending: str) -> None:
    home, values = root / f"sub-{label}", (float(label), 3.0)
    if ending in PARCELS:
        rows = np.random.default_rng(int(label)).standard_normal((12, 2))
        write_parcels(home / f"own{ending}", values if ending == PARCELS[0] else rows)
        return
    home.mkdir(parents=True)
    lines = ["# ColHeaders StructName Thick", f"a {values[0]}", f"b {values[1]}"]
    (home / f"own{ending}").write_text("\n".join(lines))


def read_people(root: Path, ending: str) -> Found:
    names: tuple[str, ...] = ("L_V1", "R_V1") if ending in PARCELS else ("a_Thick", "b_Thick")
    names = ("L_V1-R_V1",) if ending == PARCELS[1] else names
    given = {"name": "own", "source": "table", "file": f"sub-*/own{ending}"}
    columns = {name: {"low": 0, "high": 100} for name in names}
    view = TableView.model_validate(given | {"columns": columns})
    return read_table(root, view)


def write_kind(root: Path, label: str, ending: str) -> None:
    KINDS[ending][0](root, label, ending)


Kind = tuple[Callable[[Path, str, str], None], Callable[[Path], Found]]
KINDS: dict[str, Kind] = {
    "_bold.nii.gz": (lambda r, p, e: write_volumes(r, p, ".nii.gz"), read_volumes),
    "_bold.nii": (lambda r, p, e: write_volumes(r, p, ".nii"), read_volumes),
    ".dtseries.nii": (write_on_mesh, read_on_mesh),
    ".func.gii": (write_on_mesh, read_on_mesh),
    **dict.fromkeys((".dscalar.nii", ".shape.gii", ".mgz", ".mgh"), (write_map, read_maps)),
    **{f"_eeg{each}": (lambda r, p, e: write_eeg(r, p, e.removeprefix("_eeg")), read_eeg)
       for each in (*WRITERS, ".set")},
    **{each: (write_person, functools.partial(read_people, ending=each))
       for each in (*PARCELS, ".stats")},
}  # fmt: skip
"""By the end of the file's name."""


@functools.cache
def whole(kind: str) -> tuple[Path, Vectors]:
    """A data set of a kind and what is read of it."""
    root = Path(tempfile.mkdtemp())
    for label in PEOPLE:
        write_kind(root, label, kind)
    vectors, skipped = KINDS[kind][1](root)
    assert (set(vectors), skipped) == (set(PEOPLE), {})
    shutil.rmtree(root / "cache", ignore_errors=True)
    return root, vectors


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Fail if it takes longer: who waits for a pipe waits for ever."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


PLANTED: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_regular_file_is_named_and_never_waited_for(
    kind: str, planted: str, tmp_path: Path
) -> None:
    source, expected = whole(kind)
    own = sorted(path.relative_to(source) for path in (source / "sub-01").rglob("*.*"))
    refused = []
    for number, path in enumerate(own):
        root = tmp_path / str(number)
        shutil.copytree(source, root)
        (root / path).unlink()
        PLANTED[planted](root / path)
        with within(60):
            vectors, skipped = KINDS[kind][1](root)
        np.testing.assert_array_equal(vectors["02"], expected["02"])
        if "01" in vectors:
            np.testing.assert_array_equal(vectors["01"], expected["01"])
        elif kind in (*PARCELS, ".stats"):  # a table's person lacks values
            assert str(path) in skipped["01"].detail
            refused.append(path)
        else:
            assert "is not a regular file" in skipped["01"].detail, skipped
            assert str(root / path) in skipped["01"].detail
            refused.append(path)
    read = tuple(path for path in own if path.name.endswith(kind))
    assert set(read) <= set(refused)


# -- bombs --------------------------------------------------------------------------------------


def refused(kind: str, root: Path) -> str:
    with within(60):
        vectors, skipped = KINDS[kind][1](root)
    assert set(vectors) == {"02"}
    return skipped["01"].detail


@pytest.fixture
def dataset(tmp_path: Path) -> Callable[[str], Path]:
    def copy(kind: str) -> Path:
        return Path(shutil.copytree(whole(kind)[0], tmp_path / "data"))

    return copy


def the(root: Path, ending: str) -> Path:
    return next(iter(sorted((root / "sub-01").rglob(f"*{ending}"))))


def claim(path: Path, place: int, form: str, *values: int) -> None:
    """Overwrite a field of a header."""
    packed = path.suffix in (".gz", ".mgz")
    data = bytearray(gzip.decompress(path.read_bytes()) if packed else path.read_bytes())
    field = struct.pack(form, *values)
    data[place : place + len(field)] = field
    path.write_bytes(gzip.compress(bytes(data)) if packed else bytes(data))


def test_a_header_of_voxels_claims_more_than_its_file_can_hold(
    dataset: Callable[[str], Path],
) -> None:
    root = dataset("_bold.nii.gz")
    claim(the(root, ".nii.gz"), 42, "<4h", 500, 500, 500, 30_000)
    assert "can't be read as NIfTI" in refused("_bold.nii.gz", root)


@pytest.mark.parametrize("kind", [".mgz", ".mgh"])
def test_an_overlay_claims_more_vertices_than_the_mesh_has(
    kind: str, dataset: Callable[[str], Path]
) -> None:
    root = dataset(kind)
    path = the(root, kind)
    claim(path, 4, ">3i", 1 << 20, 1, 1)
    said = refused(kind, root)
    assert "1,048,576 vertices" in said or "not a complete overlay" in said
    claim(path, 4, ">3i", 1 << 30, 1, 1)
    assert refused(kind, root)


@pytest.mark.filterwarnings("ignore:Dataobj shape")
@pytest.mark.parametrize("kind", [".dtseries.nii", ".dscalar.nii", *PARCELS])
def test_a_header_of_cifti_claims_more_than_its_file_holds(
    kind: str, dataset: Callable[[str], Path]
) -> None:
    root = dataset(kind)
    shape = nib.load(the(root, kind)).shape
    claim(the(root, kind), 16, "<8q", 6, 1, 1, 1, 1, shape[0], 1 << 40, 1)
    assert refused(kind, root)


@pytest.mark.parametrize("kind", [".func.gii", ".shape.gii"])
def test_numbers_of_gifti_unpack_to_more_than_the_mesh_has(
    kind: str, dataset: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mesh_module, "_MOST_UNPACKED", 8 * VERTICES)
    root, size = dataset(kind), 1 << 26
    path = the(root, kind)
    text = path.read_text(encoding="utf-8")
    first, _, rest = text.partition("<Data>")
    bomb = b64encode(zlib.compress(bytes(size)))
    path.write_text(f"{first}<Data>{bomb.decode()}</Data>{rest.partition('</Data>')[2]}")
    tracemalloc.start()
    try:
        said = refused(kind, root)
        assert tracemalloc.get_traced_memory()[1] < size
    finally:
        tracemalloc.stop()
    assert "can't be read. Give a whole GIFTI file" in said


def test_a_file_of_eeglab_unpacks_to_more_than_a_recording(
    dataset: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = dataset("_eeg.set")
    points = tiny_tape(1).signals.shape[1]
    write_eeglab(the(root, ".set"), points, np.zeros((len(CHANNELS), points)), pack=True)
    monkeypatch.setattr(native_checks, "_MOST_UNPACKED", 100_000)
    assert "unpacks to more than a recording" in refused("_eeg.set", root)


@pytest.mark.parametrize("kind", [f"_eeg{each}" for each in (*WRITERS, ".set")])
def test_a_recording_claims_more_values_than_memory_has(
    kind: str, dataset: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = the(dataset(kind), kind)  # is read once when it is made
    few = tiny_tape(1).signals[:3].size  # the study's channels
    for module in (native_checks, nifti):
        monkeypatch.setattr(module, "MOST_VALUES", few - 1)
    with pytest.raises(DataError, match="claims more than"):
        read_recording(path, ("Cz", "Pz", "Oz"))


@pytest.mark.parametrize("named", ["DataFile", "MarkerFile"])
def test_a_recording_names_no_file_of_another_folder(
    named: str, dataset: Callable[[str], Path]
) -> None:
    root = dataset("_eeg.vhdr")
    path = the(root, ".vhdr")
    text = path.read_text(encoding="utf-8")
    other = f"{named}=../../sub-02/eeg/sub-02"
    path.write_text(text.replace(f"{named}=sub-01", other), encoding="utf-8")
    assert other in path.read_text(encoding="utf-8")
    assert "names a file in another folder" in refused("_eeg.vhdr", root)


def test_eeglabs_data_lie_in_the_same_folder(dataset: Callable[[str], Path]) -> None:
    root = dataset("_eeg.set")
    points = tiny_tape(1).signals.shape[1]
    theirs = next((root / "sub-02").rglob("*.fdt"))
    the(root, ".fdt").unlink()
    write_eeglab(the(root, ".set"), points, f"../../sub-02/eeg/{theirs.name}")
    assert "names data in another folder" in refused("_eeg.set", root)


def test_a_description_without_end_is_refused(
    dataset: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = dataset("_bold.nii.gz")
    monkeypatch.setattr(regular_file.text_of, "__defaults__", (100, "strict"))
    the(root, ".json").write_text(" " * 101 + '{"RepetitionTime": 2.0}')
    assert "more than 100 bytes" in refused("_bold.nii.gz", root)


def test_a_pair_of_which_one_is_a_pipe_is_named() -> None:
    with tempfile.TemporaryDirectory() as folder:
        left, right = (Path(folder, f"hemi-{s}_bold.func.gii") for s in "LR")
        write_values(left, *halves((VERTICES,), 1)[:1])
        os.mkfifo(right)
        with within(60), pytest.raises(DataError, match=r"hemi-R.*is not a regular file"):
            read_surface_series(RecordingRun(left, right=right), mesh())
