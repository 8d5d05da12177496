"""Files of a data set: names, tables and images that somebody gave to a site."""

import gzip
import random
from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np

from consortium.space.grid import Grid, mask_grid
from consortium.space.study_space import Space
from consortium.study.data_section import DataSection
from site_agent.data.bids import entities, find_subjects
from site_agent.data.survey import RecordingRun, Subject
from site_agent.images.nifti import iterate_volumes, open_series
from site_agent.images.preprocess import preprocess_person, read_confounds
from tests.long.fuzz_mutations import Make, mutant
from tests.long.fuzz_records import reads
from tests.long.fuzz_targets import Target

_AFFINE = np.diag([4.0, 4.0, 4.0, 1.0])
_SHAPE, _VOLUMES = (5, 4, 3), 4
_NAMES = (
    b"sub-01_task-rest_space-MNI152NLin2009cAsym_desc-preproc_bold.nii.gz",
    b"sub-01_ses-2_task-rest_run-1_echo-2_bold.nii",
    b"sub-01_task-rest_desc-confounds_timeseries.tsv",
    b"scan.nii",
)
_HEADER = 352


def scan_targets(folder: Path) -> list[Target]:
    """All of them; files are written to a folder."""
    table = b"csf\twhite_matter\ttrans_x\nn/a\t1.5\t-2e-3\n1\t2\t3\n4\t5\t6\n7\t8\t9\n"
    tsv = folder / "confounds.tsv"
    columns = ("csf", "trans_*")
    confounds = reads(tsv, lambda: read_confounds(tsv, columns, _VOLUMES))
    return [
        Target("BIDS name", 700_000, mutant(_NAMES), _entities),
        Target("BIDS name on disk", 50_000, mutant(_NAMES), lambda data: _listed(folder, data)),
        Target("confounds table", 100_000, mutant([table]), confounds),
        *_image_targets(folder),
    ]


def _entities(data: bytes) -> None:
    entities(Path(data.decode("utf-8", "surrogateescape").replace("\x00", "")))


def _listed(folder: Path, data: bytes) -> None:
    """Give a file that name, as far as a disk can."""
    name = data.replace(b"\x00", b"").replace(b"/", b"")[:200].decode("utf-8", "surrogateescape")
    home = folder / "bids" / "sub-01"
    home.mkdir(parents=True, exist_ok=True)
    path = home / (name if name not in ("", ".", "..") else "_bold.nii")
    path.touch()
    try:
        find_subjects(home.parent, DataSection())
        find_subjects([path], DataSection())
    finally:
        path.unlink()


def _image_targets(folder: Path) -> list[Target]:
    mask = np.zeros(_SHAPE, dtype=bool)
    mask[1:4, 1:3, 1:2] = True
    grid, data = Grid(mask, _AFFINE), DataSection(detrend="none", minimum_volumes=2)
    series = _image(folder, (*_SHAPE, _VOLUMES))
    brain = _image(folder, _SHAPE)

    def volumes(path: Path) -> None:
        image = open_series(path, grid)
        for count, _ in enumerate(iterate_volumes(path, image)):
            if count > _VOLUMES:  # a study's own limit of volumes is not this one's
                break

    def load(path: Path) -> None:
        if open_series(path, grid).shape[3] <= 4 * _VOLUMES:
            preprocess_person(Subject("01", (RecordingRun(path),)), data, Space(grid).target)

    def target(name: str, ending: str, make: Make, act: Callable[[Path], object]) -> Target:
        path = folder / f"image{ending}"
        return Target(name, 50_000, make, reads(path, lambda: act(path)))

    plain, packed = headers(series), zipped(headers(series))
    return [
        target("NIfTI header", ".nii", plain, volumes),
        target("NIfTI header in gzip", ".nii.gz", packed, volumes),
        target("NIfTI through the loader", ".nii", plain, load),
        target("NIfTI mask", ".nii.gz", zipped(headers(brain)), mask_grid),
    ]


def _image(folder: Path, shape: tuple[int, ...]) -> bytes:
    values = np.random.default_rng(0).normal(100, 5, shape).astype(np.float32)
    image = nib.Nifti1Image(values, _AFFINE)
    image.set_qform(_AFFINE, code=4)
    nib.save(image, folder / "made.nii")
    return (folder / "made.nii").read_bytes()


def headers(image: bytes) -> Make:
    """Mutate an image's first bytes three times out of four, and any bytes otherwise."""
    whole, start = mutant([image]), mutant([image[:_HEADER]])

    def make(rng: random.Random) -> bytes:
        if rng.random() < 0.25:
            return whole(rng)
        return (start(rng) + bytes(_HEADER))[:_HEADER] + image[_HEADER:]

    return make


def zipped(make: Make) -> Make:
    """Compress what is made, and damage one in five of the files."""

    def pack(rng: random.Random) -> bytes:
        data = gzip.compress(make(rng), compresslevel=1, mtime=0)
        return mutant([data])(rng) if rng.random() < 0.2 else data

    return pack
