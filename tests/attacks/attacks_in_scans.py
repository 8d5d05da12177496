"""Images that are not what their headers say, and masks that lie where they should not."""

import gzip
import struct
import tracemalloc
from pathlib import Path

import nibabel as nib
import numpy as np

from consortium.membership.signed_study import named_files_digest
from consortium.space.grid import Grid, study_grid
from consortium.study.data_section import DataSection
from consortium.study.reader import parse_study
from consortium.study.spec import Study
from site_agent.data.bids import find_subjects
from site_agent.images.nifti import iterate_volumes, open_series
from tests.attacks.attack_kinds import Stage, attack, nothing

_AFFINE = np.diag([4.0, 4.0, 4.0, 1.0])
_SHAPE = (5, 4, 3)
_GRID = Grid(np.ones(_SHAPE, dtype=bool), _AFFINE)
_MASK_BESIDE = "consortium.space.grid:path_in_folder"


def _series(stage: Stage, volumes: int = 2) -> bytes:
    values = np.arange(60 * volumes, dtype=np.float32).reshape(*_SHAPE, volumes)
    path = stage.root / "made.nii"
    nib.save(nib.Nifti1Image(values, _AFFINE), path)
    return path.read_bytes()


def _with(data: bytes, place: int, form: str, *values: float) -> bytes:
    """Overwrite fields of a NIfTI-1 header."""
    field = struct.pack(form, *values)
    return data[:place] + field + data[place + len(field) :]


@attack(
    "file giver",
    guard="site_agent.images.nifti:load_nifti",
    without="a small file counts as terabytes of scans, for which the agent reserves memory",
    stops="can't be read as NIfTI",
    instead=lambda real: nib.load,
)
def header_that_claims_terabytes(stage: Stage) -> bool:
    """Gives a small .nii.gz whose header claims 30,000 voxels along every axis."""
    path = stage.root / "bomb.nii.gz"
    lengths = (4, 30_000, 30_000, 30_000, 2, 1, 1, 1)
    path.write_bytes(gzip.compress(_with(_series(stage), 40, "<8h", *lengths)))
    return open_series(path, _GRID).shape[:3] == lengths[1:4]


@attack(
    "file giver",
    guard="consortium.space.nifti:_check_offset",
    without="all bytes before the first voxel are read into memory",
    stops="can't be read as NIfTI",
    instead=nothing,
)
def gzip_bomb_before_the_voxels(stage: Stage) -> bool:
    """Gives a file of 100 kB that unpacks to 100 MB of header extensions."""
    path, size = stage.root / "bomb.nii.gz", 100 << 20
    header = _with(_series(stage)[:348], 108, "<f", 352.0 + size)
    extension = b"\x01\x00\x00\x00" + struct.pack("<2i", size, 6)
    path.write_bytes(gzip.compress(header + extension + bytes(size + 1000), compresslevel=1))
    tracemalloc.start()
    try:
        open_series(path, _GRID)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak >= size


@attack(
    "file giver",
    guard="site_agent.images.nifti:CHUNK",
    without="a file of 100 kB is unpacked to its end, however far that is",
    stops="is cut short or damaged after volume 2",
    instead=lambda real: 1 << 28,
)
def gzip_bomb_behind_the_voxels(stage: Stage) -> bool:
    """Gives a file that unpacks to 100 MB more than its header states."""
    path = stage.root / "bomb.nii.gz"
    path.write_bytes(gzip.compress(_series(stage) + bytes(100 << 20), compresslevel=1))
    return len(list(iterate_volumes(path, open_series(path, _GRID)))) == 2


@attack(
    "disk intruder",
    guard="site_agent.images.nifti:_expect_end",
    without="a scan whose numbers were changed is taken for the one that was saved",
    stops="is cut short or damaged after volume 400",
    instead=nothing,
)
def voxel_changed_under_the_checksum(stage: Stage) -> bool:
    """Changes a voxel in a compressed scan, and not the checksum at its end."""
    path = stage.root / "scan.nii.gz"
    behind = bytes(1 << 19)  # so that nobody who reads ahead meets the checksum with the voxels
    data = bytearray(gzip.compress(_series(stage, 400) + behind, compresslevel=0))
    data[-1000 - len(behind)] ^= 64
    path.write_bytes(data)
    return len(list(iterate_volumes(path, open_series(path, _GRID)))) == 400


@attack(
    "file giver",
    guard="site_agent.data.bids:misplaced_file",
    without="one participant's scans count as two participants, with twice the weight",
    stops="is named as sub-02's and is in the folder of sub-01",
    instead=nothing,
)
def scan_in_anothers_folder(stage: Stage) -> bool:
    """Gives a data set in which one participant's scan is also in another's folder."""
    name, data = "task-rest_space-MNI152NLin2009cAsym_bold.nii", _series(stage)
    scans = stage.root / "bids"
    for folder, label in (("01", "01"), ("01", "02"), ("02", "02")):
        path = scans / f"sub-{folder}" / "func" / f"sub-{label}_{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    subjects, skipped = find_subjects(scans, _study("").data)
    stage.said += [each.detail for each in skipped]
    used = [run.bold.name for subject in subjects for run in subject.runs]
    return len(used) > len(set(used))


def _study(mask: str) -> Study:
    return parse_study(
        "study: small\nsites: [north, east, south, west]\n"
        "participants: {north: 10, east: 10, south: 10, west: 10}\nalgorithm: average\n"
        f"data: {{detrend: none, mask: '{mask}'}}\n"
        "privacy: {epsilon: 8, delta: 1.0e-5, colluding_sites: 1}\n"
    )


def _outside(stage: Stage, name: str) -> Path:
    """Make a mask that is none of the study's business, and the study's folder."""
    path, folder = stage.root / "private" / name, stage.root / "study"
    path.parent.mkdir()
    folder.mkdir()
    nib.save(nib.Nifti1Image(np.ones(_SHAPE, dtype=np.uint8), _AFFINE), path)
    return path


def _reads(stage: Stage, mask: str) -> bool:
    data: DataSection = _study(mask).data
    return study_grid(data, stage.root / "study").features > 0


@attack(
    "hub",
    guard=_MASK_BESIDE,
    without="a site's own files are opened by the hub's choice",
    stops="is not next to the study file",
    instead=lambda real: lambda folder, name: folder / name,
)
def mask_up_the_tree(stage: Stage) -> bool:
    """Asks for a mask at '../private/own.nii'."""
    _outside(stage, "own.nii")
    return _reads(stage, "../private/own.nii")


@attack(
    "hub",
    guard=_MASK_BESIDE,
    without="a site's own files are opened by the hub's choice",
    stops="is not next to the study file",
    instead=lambda real: lambda folder, name: folder / name,
)
def mask_at_an_absolute_path(stage: Stage) -> bool:
    """Asks for a mask by an absolute path."""
    return _reads(stage, str(_outside(stage, "own.nii")))


@attack(
    "file giver",
    guard=_MASK_BESIDE,
    without="a site's own files are opened through a link in the folder that it was given",
    stops="is not next to the study file",
    instead=lambda real: lambda folder, name: folder / name,
)
def mask_that_is_a_link(stage: Stage) -> bool:
    """Gives a study folder in which the mask is a link to a file of the site."""
    target = _outside(stage, "own.nii")
    (stage.root / "study" / "mask.nii").symlink_to(target)
    return _reads(stage, "mask.nii")


@attack(
    "hub",
    guard="consortium.membership.signed_study:path_in_folder",
    without="the digest of a site's file is signed and published",
    stops="is not stored next to the study file",
    instead=lambda real: lambda folder, name: folder / name,
)
def digest_of_a_private_file(stage: Stage) -> bool:
    """Has a site compute the digest of one of its own files as if it were the mask."""
    _outside(stage, "keys.nii")
    return len(named_files_digest(_study("../private/keys.nii"), stage.root / "study")) == 64
