"""Odd properties of participants' usable images, for the site's own staff only.

They include recordings that differ from a site's others. The site's messages do not depend on them.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path

import nibabel as nib
import numpy as np
from nibabel.affines import apply_affine, voxel_sizes

from consortium.base.formatting import count
from consortium.errors import DataError
from consortium.space.atlas import Target
from consortium.space.mesh import Mesh
from consortium.study.data_section import DataSection
from site_agent.data.bids import ON_MESHES
from site_agent.data.survey import RecordingRun, Subject
from site_agent.images.nifti import (
    check_orientation,
    iterate_volumes,
    open_nifti,
    open_series,
)
from site_agent.images.repetition import seconds_apart
from site_agent.images.surfaces import count_volumes

HEAD = 6
"""Number of volumes that are read, from the first."""
STEADY = 0.1
"""Part by which the first volume's mean may differ from the next ones'."""
_STEADIED_BY = ("non_steady_state_outlier",)
_SHORTER = 0.8
"""Ratio to the median length or repetition time from which a difference is reported."""
_STEP = 0.01
"""Part of the median repetition time."""
_NAMED = 5


def quality_remarks(subjects: Sequence[Subject], data: DataSection) -> tuple[str, ...]:
    """Name images whose sform and qform disagree, or whose first volume is far from the next.

    Parameters
    ----------
    data : DataSection
        The study's. If it removes volumes before the steady state, no image is named for them.

    Returns
    -------
    tuple of str
        A sentence each. They contain paths and stay at the site.
    """
    return tuple(
        odd for subject in subjects for run in subject.runs for odd in _oddities(run, data)
    )


def _oddities(run: RecordingRun, data: DataSection) -> Iterator[str]:
    try:
        image = open_nifti(run.bold)
        apart = _forms_apart(image)
        steadied = any(name.startswith(_STEADIED_BY) for name in data.confounds)
        first = 1.0 if steadied else _first_volume_ratio(run.bold, image)
    except DataError:
        return  # loading reports it
    half = float(voxel_sizes(image.affine).min()) / 2
    if apart > half:
        yield (
            f"{run.bold}: sform and qform place voxels up to {apart:.1f} mm apart; the sform is "
            "used. Check that it is the right one."
        )
    if abs(first - 1.0) > STEADY:
        yield (
            f"{run.bold}: the first volume's mean is {first:.2f} times that of the next ones, as "
            "before a steady state. Remove such volumes, or have the study regress out "
            "non_steady_state_outlier*."
        )


def _forms_apart(image: nib.Nifti1Image) -> float:
    """Return the largest distance in mm between a corner's places by sform and by qform."""
    sform, coded = image.header.get_sform(coded=True)
    qform, too = image.header.get_qform(coded=True)
    if not coded or not too:
        return 0.0
    corners = np.array(list(product(*((0, length - 1) for length in image.shape[:3]))))
    apart = apply_affine(sform, corners) - apply_affine(qform, corners)
    return float(np.linalg.norm(apart, axis=1).max())


def _first_volume_ratio(path: Path, image: nib.Nifti1Image) -> float:
    """Return the mean of the first volume over the median of the means of volumes 3 to `HEAD`.

    It is 1 for a recording with fewer volumes, or whose volumes have no positive mean.
    """
    if len(image.shape) != 4 or image.shape[3] < HEAD:
        return 1.0
    means = [_mean(volume) for volume in islice(iterate_volumes(path, image), HEAD)]
    usual = float(np.median(means[2:]))
    return means[0] / usual if usual > 0 else 1.0


def _mean(volume: np.ndarray) -> float:
    return float(np.where(np.isfinite(volume), volume, 0.0).mean(dtype=np.float64))


def recording_remarks(subjects: Sequence[Subject]) -> tuple[str, ...]:
    """Name recordings with another length or repetition time than most of the site's.

    Returns
    -------
    tuple of str
        A sentence each. They contain paths and stay at the site.
    """
    lengths: dict[Path, float] = {}
    steps: dict[Path, float] = {}
    for run in (run for subject in subjects for run in subject.runs):
        try:
            lengths[run.bold] = float(_volumes(run))
            steps[run.bold] = seconds_apart(run)
        except (DataError, IndexError):
            continue  # loading reports it, where it matters
    return (*_other_lengths(lengths), *_other_steps(steps))


def volumes_of(run: RecordingRun, target: Target, *, unoriented: bool = True) -> int:
    """Return the number of volumes of a recording, from headers that fit a study's voxels.

    The names in a file of parcels must be those of the study's regions. Raises DataError if a
    header does not fit.

    Parameters
    ----------
    unoriented : bool, default=True
        Whether an image that does not state its orientation is counted.
    """
    if isinstance(target.grid, Mesh):
        return count_volumes(run, target.grid, target.regions)
    image = open_series(run.bold, target.grid)
    if not unoriented:
        check_orientation(run.bold, image)
    return int(image.shape[3])


def _volumes(run: RecordingRun) -> int:
    if run.bold.name.endswith(ON_MESHES):
        return count_volumes(run)
    return int(open_nifti(run.bold).shape[3])


def _other_lengths(lengths: Mapping[Path, float]) -> Iterator[str]:
    usual = statistics.median(lengths.values()) if lengths else 0.0
    other = [path for path, n in lengths.items() if min(n, usual) < _SHORTER * max(n, usual)]
    if other:
        yield (
            f"{_which(other, lengths)} volumes, where the median is {usual:g}. Check whether "
            "these recordings are complete and intended, as all participants have equal weight."
        )


def _other_steps(steps: Mapping[Path, float]) -> Iterator[str]:
    usual = statistics.median(steps.values()) if steps else 0.0
    other = [path for path, step in steps.items() if abs(step - usual) > _STEP * usual]
    if other:
        yield (
            f"{_which(other, steps)} s from volume to volume, where the median is {usual:g} s. "
            "Check whether the times are right, and whether the study intends to mix them."
        )


def _which(paths: Sequence[Path], values: Mapping[Path, float]) -> str:
    """Return the first recording with its value, and the number of other recordings."""
    more = ", ".join(path.name for path in paths[1:_NAMED]) + (", …" if paths[_NAMED:] else "")
    also = f" and {count(len(paths) - 1, 'other')} ({more})" if paths[1:] else ""
    return f"{paths[0]}{also} {'have' if also else 'has'} {_range(paths, values)}"


def _range(paths: Sequence[Path], values: Mapping[Path, float]) -> str:
    low, high = (f(values[path] for path in paths) for f in (min, max))
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
