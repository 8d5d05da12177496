"""What looks odd about a person's images, although they can be used: for the site's own people."""

from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path

import nibabel as nib
import numpy as np
from nibabel.affines import apply_affine, voxel_sizes

from consortium.errors import DataError
from consortium.study.data_section import DataSection
from site_agent.data.survey import RecordingRun, Subject
from site_agent.images.nifti import open_nifti
from site_agent.images.volumes import iterate_volumes

HEAD = 6
"""Volumes that are looked at, from the first."""
STEADY = 0.1
"""Part by which the first volume's mean may differ from the next ones'."""
_STEADIED_BY = ("non_steady_state_outlier",)


def quality_remarks(subjects: Sequence[Subject], data: DataSection) -> tuple[str, ...]:
    """Name images whose sform and qform disagree, or whose first volume is far from the next.

    Parameters
    ----------
    data : DataSection
        The study's: where it takes volumes before the steady state out, none is named for them.

    Returns
    -------
    tuple of str
        A sentence each; they hold paths and stay at the site.
    """
    return tuple(
        odd for subject in subjects for run in subject.runs for odd in _oddities(run, data)
    )


def _oddities(run: RecordingRun, data: DataSection) -> Iterator[str]:
    try:
        image = open_nifti(run.bold)
        apart = _forms_apart(image)
        steadied = any(name.startswith(_STEADIED_BY) for name in data.confounds)
        first = 1.0 if steadied else _first_volume(run.bold, image)
    except DataError:
        return  # loading tells it
    half = float(voxel_sizes(image.affine).min()) / 2
    if apart > half:
        yield (
            f"{run.bold}: sform and qform place voxels up to {apart:.1f} mm apart; the sform is "
            "used, so make sure that it is the right one."
        )
    if abs(first - 1.0) > STEADY:
        yield (
            f"{run.bold}: the first volume's mean is {first:.2f} times that of the next ones, as "
            "before a steady state; remove such volumes, or have the study regress out "
            "non_steady_state_outlier*."
        )


def _forms_apart(image: nib.Nifti1Image) -> float:
    """Largest distance in mm between a corner's places by sform and by qform."""
    sform, coded = image.header.get_sform(coded=True)
    qform, too = image.header.get_qform(coded=True)
    if not coded or not too:
        return 0.0
    corners = np.array(list(product(*((0, length - 1) for length in image.shape[:3]))))
    apart = apply_affine(sform, corners) - apply_affine(qform, corners)
    return float(np.linalg.norm(apart, axis=1).max())


def _first_volume(path: Path, image: nib.Nifti1Image) -> float:
    """Mean of the first volume over the median of the next ones' means."""
    if len(image.shape) != 4 or image.shape[3] < HEAD:
        return 1.0
    means = [_mean(volume) for volume in islice(iterate_volumes(path, image), HEAD)]
    usual = float(np.median(means[2:]))
    return means[0] / usual if usual > 0 else 1.0


def _mean(volume: np.ndarray) -> float:
    return float(np.where(np.isfinite(volume), volume, 0.0).mean(dtype=np.float64))
