"""Preprocessing of a subject's files to a D x T block, by the study's data section.

The maximum memory of work on some participants is computed from headers. Arrays are counted, with
all copies that exist at one time. A test compares the counts with the allocated memory. The
process's own memory is not included.
"""

import math
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from nibabel.affines import voxel_sizes
from numpy.typing import NDArray

from consortium.base.formatting import count
from consortium.base.near_names import known_names
from consortium.errors import ConfigurationError, DataError
from consortium.privacy.bounds import Unit
from consortium.space.atlas import Target
from consortium.space.grid import Grid
from consortium.space.mesh import Mesh
from consortium.space.sampling import FWHM_PER_SIGMA, common_voxels, lies_in, resampler
from consortium.study.data_section import DataSection
from site_agent.data.survey import RecordingRun, Subject
from site_agent.data.tsv import read_lines
from site_agent.images.nifti import (
    check_finite,
    iterate_volumes,
    open_series,
    same_grid,
    stored_places,
)
from site_agent.images.repetition import seconds_apart
from site_agent.images.surfaces import is_of_parcels, read_surface_series

Block = NDArray[np.float32]

DEGREES = {"none": -1, "constant": 0, "linear": 1, "quadratic": 2}
DEPENDENT = 1e-8
"""Share of its size, or of the largest singular value, below which a regressor adds nothing."""
CONSTANT = 1e-6
"""Standard deviation over largest value below which a course is float32's rounding only."""
LEAST_LEFT = 10
"""Smallest number of degrees of freedom of a run after trends, band and confounds."""
_PREPARED = 12
"""Bytes for a voxel's value: those of the runs, and those of all runs together or of the fit that
is subtracted from one run."""
_COLUMNS = 2048
"""Time series that are standardized at a time."""
_VOLUMES = 8
"""Whole volumes of 8 bytes while one is read, smoothed and resampled."""
_UNPACKED = 64
"""Bytes for a vertex of a hemisphere: both, and subcortical values, in float64 if scaled."""
_SUMMED = 20
"""Bytes for a feature's value: the block, and float64 copies while it is clipped and multiplied."""
_PARTS = 24
"""Bytes for a number of a sum: the total, the addend, and the check of its size."""
_SMALL = 1 << 20
_KEPT = 16
"""Fraction of the memory that data kept between rounds may take; larger data are on disk."""


class TooFewLeftError(DataError):
    """Too few degrees of freedom are left of a participant's recording."""


def preprocess_person(
    subject: Subject, data: DataSection, target: Target, unit: Unit = "subject"
) -> Block:
    """Load one participant's files as a preprocessed block.

    Every run is smoothed, resampled if its grid differs, and freed of trends and confounds on its
    own. Runs are then concatenated, averaged over the regions if there are any, and standardized
    together.

    Where a volume is the unit, one that is not finite counts as zero, because it must not affect
    the use of a participant's other volumes. Raises DataError if an image or table can't be used.
    The message names the file.

    Parameters
    ----------
    target : Target
        Values of a volume: D voxels, or regions.
    unit : {'subject', 'timepoint'}
        Of privacy; with ``timepoint`` nothing in ``data`` mixes volumes.

    Returns
    -------
    array, shape (D, T), float32
        Volumes are contiguous in memory (Fortran order).
    """
    if unit == "timepoint":
        runs = [_read(run, data, target, unit) for run in subject.runs]
    else:
        runs = [preprocess_run(run, data, target) for run in subject.runs]
    if target.regions is not None:
        runs = [
            series if is_of_parcels(run) else target.regions.average(series)
            for run, series in zip(subject.runs, runs, strict=True)
        ]
    series = runs[0] if len(runs) == 1 else np.vstack(runs)
    standardize_series(series, data, subject.runs[0].bold)
    return series.T


def preprocess_run(run: RecordingRun, data: DataSection, target: Target) -> Block:
    """Load one run: all steps but means of regions and standardization; shape (T, D)."""
    series = _read(run, data, target)
    peaks = _peaks(series)
    regressors = np.hstack([_confounds(run, data, len(series)), _band(run, data, len(series))])
    basis = confound_design(len(series), DEGREES[data.detrend], regressors)
    check_left(basis, DEGREES[data.detrend], run.bold)
    project_out(series, basis)
    # A course that was only trend must not be scaled to unit variance later.
    series[:, _peaks(series) <= CONSTANT * peaks] = 0.0
    if not series.any():
        msg = f"{run.bold} is zero or constant in the study's mask. Check image and mask."
        raise DataError(msg)
    return series


def _read(run: RecordingRun, data: DataSection, target: Target, unit: Unit = "subject") -> Block:
    if isinstance(target.grid, Mesh):
        return read_surface_series(run, target.grid, unit, target.regions)
    return read_series(run.bold, data.smoothing, target.grid, unit)


def read_series(path: Path, smoothing: float | None, grid: Grid, unit: Unit = "subject") -> Block:
    """Read the study's voxels of an image, volume by volume.

    Raises DataError if the image can't be used, or a value in the mask is not finite and a
    participant is the unit.

    Parameters
    ----------
    smoothing : float or None
        FWHM in mm. Smoothing is done on the image's own grid, before resampling to a coarser one.
        None for the width that turns the image's voxels into voxels of the grid's size.
    unit : {'subject', 'timepoint'}
        Of privacy.

    Returns
    -------
    array, shape (T, D), float32
    """
    image = open_series(path, grid)
    own = voxel_sizes(image.affine)
    width = np.sqrt(np.maximum(grid.edge**2 - own**2, 0.0))
    sigma = (width if smoothing is None else smoothing) / FWHM_PER_SIGMA / own
    if same_grid(image, grid) and not smoothing:
        kept: NDArray[np.intp] | None = stored_places(grid.mask)
    else:
        kept = common_voxels(image.affine, image.shape[:3], grid, sigma)
    series = np.empty((image.shape[3], grid.features), dtype=np.float32)
    if kept is not None:
        order = np.argsort(kept)  # a gather in the file's order takes two thirds of the time
        back = np.argsort(order)
        volumes = iterate_volumes(path, image, kept[order])
        for number, (row, voxels) in enumerate(zip(series, volumes, strict=True), 1):
            voxels.take(back, out=row, mode="clip")
            check_finite(path, number, row, unit)
    else:
        at_voxels = resampler(image.affine, image.shape[:3], grid, sigma)
        volumes = iterate_volumes(path, image)
        for number, (row, volume) in enumerate(zip(series, volumes, strict=True), 1):
            with np.errstate(all="ignore"):  # values that are not finite are found below
                row[:] = at_voxels(_zero_outside(volume, image, grid))
            check_finite(path, number, row, unit)
    return series


def _zero_outside(volume: Block, image: nib.Nifti1Image, grid: Grid) -> Block:
    """Set values that are not finite outside the mask to zero: filters would spread them."""
    if np.isfinite(volume).all():
        return volume
    inside = lies_in(grid, image.affine, image.shape)
    return np.where(inside | np.isfinite(volume), volume, np.float32(0))


def confound_design(
    volumes: int, degree: int, confounds: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Build an orthonormal basis of everything that is removed in one step.

    Removing trends and confounds one after the other would restore part of the first.

    Parameters
    ----------
    volumes : int
        T.
    degree : int
        Degree of the polynomial in time; -1 for none, which keeps the mean.
    confounds : array, shape (T, C), optional

    Returns
    -------
    array, shape (T, P)
        P is the rank of trends and confounds together.
    """
    time = np.linspace(-1.0, 1.0, volumes)
    columns = np.polynomial.legendre.legvander(time, max(degree, 0))[:, : degree + 1]
    sizes = np.linalg.norm(columns, axis=0)
    if confounds is not None:
        columns = np.hstack([columns, confounds - confounds.mean(axis=0)])
        sizes = np.concatenate([sizes, np.linalg.norm(confounds, axis=0)])
    norms = np.linalg.norm(columns, axis=0)
    # A constant confound is only rounding after centring, and must not become a regressor.
    varies = norms > DEPENDENT * sizes
    columns = columns[:, varies] / norms[varies]
    if not columns.size:
        return np.zeros((volumes, 0))
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, values > DEPENDENT * values[0]])


def check_left(basis: NDArray[np.float64], degree: int, where: Path) -> None:
    """Refuse a run with too few degrees of freedom after trends, band and confounds (T x P).

    Raises TooFewLeftError if no degree of freedom is left, or fewer than `LEAST_LEFT` and P exceeds
    the trends. A study's ``minimum_volumes`` decides how short a series may be without confounds.

    Parameters
    ----------
    degree : int
        Degree of the polynomial in time.
    """
    volumes, rank = basis.shape
    least = LEAST_LEFT if rank > degree + 1 else 1
    if volumes - rank < least:
        raise TooFewLeftError(
            f"{where}: at least {count(least, 'degree')} of freedom must be left, and "
            f"{count(volumes, 'volume')} less {count(rank, 'regressor')} (trends, band and "
            f"confounds) leave {volumes - rank}. Request a study with fewer confounds or a wider "
            "band."
        )


def project_out(series: Block, basis: NDArray[np.float64]) -> None:
    """Subtract, in place, a series' (T x D) projection on an orthonormal basis (T x P)."""
    volumes, rank = basis.shape
    if not rank:
        return
    # Rounding is relative to the subtracted value: the mean is large and is subtracted first.
    mean_part = basis @ (basis.T @ np.ones(volumes))
    if np.allclose(mean_part, 1.0):
        series -= series.mean(axis=0, dtype=np.float64).astype(np.float32)
    narrow = basis.astype(np.float32)
    series -= narrow @ (narrow.T @ series)


def standardize_series(series: Block, data: DataSection, where: Path) -> None:
    """Scale a series (T x D) in place, as the study's ``data.standardize`` states.

    'none' multiplies it by the study's ``data.scale``. 'voxel' divides every time series by its
    standard deviation, or sets it to zero if it is constant. 'voxel' and 'subject' then make the
    mean of the volumes' squared norms 1, which is the trace of the subject's second moment. Raises
    DataError if nothing but zeros is left to scale.
    """
    if data.standardize == "none":
        series *= np.float32(data.scale)
        return
    if data.standardize == "voxel":
        # Parts that fit the processor's cache; a float64 copy of all would be twice the series.
        for part in np.array_split(series, -(-series.shape[1] // _COLUMNS), axis=1):
            spread = part.std(axis=0, dtype=np.float64)
            varies = spread > CONSTANT * _peaks(part)
            factor = np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)
            part *= factor.astype(np.float32)
    energy = sum(float(np.vdot(volume, volume)) for volume in series)
    if not energy:
        raise DataError(f"{where} is constant in the study's mask. Check image and mask.")
    series *= np.float32(np.sqrt(len(series) / energy))


def _peaks(series: Block) -> Block:
    """Return the largest absolute value of every course, without a copy of the series."""
    return np.asarray(np.maximum(series.max(axis=0), -series.min(axis=0)))


def frequencies_outside(
    volumes: int, step: float, high_pass: float | None, low_pass: float | None
) -> NDArray[np.float64]:
    """Return the cosines with frequencies below or above a band, which a filter removes.

    Parameters
    ----------
    volumes : int
        T.
    step : float
        Seconds from volume to volume.
    high_pass, low_pass : float or None
        Limits of the band in Hz.

    Returns
    -------
    array, shape (T, C)
        Basis of the discrete cosine transform (type II), without its constant.
    """
    order = np.arange(1, volumes)
    frequency = order / (2.0 * volumes * step)
    outside = frequency < (high_pass or 0.0)
    outside |= frequency > (np.inf if low_pass is None else low_pass)
    times = (np.arange(volumes) + 0.5) / volumes
    return np.asarray(np.cos(np.pi * np.outer(times, order[outside])))


def _band(run: RecordingRun, data: DataSection, volumes: int) -> NDArray[np.float64]:
    if data.high_pass is None and data.low_pass is None:
        return np.zeros((volumes, 0))
    step = seconds_apart(run)
    return frequencies_outside(volumes, step, data.high_pass, data.low_pass)


def _confounds(run: RecordingRun, data: DataSection, volumes: int) -> NDArray[np.float64]:
    if not data.confounds:
        return np.zeros((volumes, 0))
    if run.confounds is None:
        msg = (
            f"{run.bold} has no confounds table next to it. Add its desc-confounds_timeseries.tsv."
        )
        raise DataError(msg)
    return read_confounds(run.confounds, data.confounds, volumes)


OUTLIERS = ("motion_outlier*", "non_steady_state_outlier*")
"""Columns of which fMRIPrep writes one for each such volume, and none without such volumes."""


def read_confounds(path: Path, patterns: Sequence[str], volumes: int) -> NDArray[np.float64]:
    """Read a run's confounds as a matrix.

    Raises DataError if a column or a line is missing, or a value after the first line is not a
    number.

    Parameters
    ----------
    path : Path
        A TSV table with a header line and one line per volume.
    patterns : sequence of str
        Names of columns. One that ends in ``*`` matches all that begin so. Columns of `OUTLIERS`
        may be missing.
    volumes : int
        T, required number of lines.

    Returns
    -------
    array, shape (T, C)
        Each column once, in the order of the patterns. A first line of ``n/a``, which fMRIPrep
        gives to derivatives, is 0.
    """
    rows = read_lines(path)
    header = rows[0]
    lines = rows[1:]
    if len(lines) != volumes:
        msg = f"{path} has {count(len(lines), 'line')} for {count(volumes, 'volume')}. "
        raise DataError(msg + "Give the confounds of this run.")
    names = dict.fromkeys(name for item in patterns for name in _matches(path, header, item))
    columns = [_column(path, lines, header.index(name), name) for name in names]
    return np.array(columns, dtype=np.float64).reshape(len(columns), volumes).T


def _matches(path: Path, header: Sequence[str], pattern: str) -> list[str]:
    prefix = pattern.removesuffix("*")
    if pattern.endswith("*"):
        found = [name for name in header if name.startswith(prefix)]
    else:
        found = [name for name in header if name == pattern]
    if not found and pattern not in OUTLIERS:
        raise DataError(
            f"{path} has no column '{pattern}'. {known_names(prefix, header)} Add it, or request a "
            "study without it."
        )
    return found


def _column(
    path: Path, lines: Sequence[Sequence[str]], index: int, name: str
) -> NDArray[np.float64]:
    values = np.array([_number(line[index]) for line in lines])
    if len(values) and np.isnan(values[0]):
        values[0] = 0.0
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        msg = f"{path} has no number in column '{name}' for volume {bad[0] + 1}. "
        raise DataError(msg + "Complete the table, or remove the column from the study.")
    return values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def to_prepare(target: Target, length: int) -> int:
    """Return the bytes of memory to prepare a participant's series with this number of volumes."""
    grid = target.grid
    voxels = target.grid.features
    blocks = _PREPARED * voxels * length
    if isinstance(grid, Mesh):
        return blocks + _UNPACKED * grid.kind.vertices * length + _SMALL
    box = math.prod(grid.shape)
    return blocks + 8 * _VOLUMES * box + 4 * target.features * length + _SMALL


def to_sum(features: int, lengths: Sequence[int], shape: tuple[int, ...]) -> int:
    """Return the memory that sums over a chunk of participants' series need, in bytes."""
    longest = max(lengths, default=0)
    return _SUMMED * features * longest + _PARTS * math.prod(shape) + _SMALL


def scratch_space(shape: tuple[int, int], memory: int | None, folder: Path) -> NDArray[np.float32]:
    """Return an array for series kept between rounds, in memory, or on disk if memory is short.

    Raises ConfigurationError if the disk is full.

    Parameters
    ----------
    shape : (int, int)
    memory : int or None
        Bytes that the site may use.
    folder : Path
        Folder of the file, which has no name and is removed with the array.
    """
    size = 4 * math.prod(shape)
    if memory is None or _KEPT * size <= memory:
        return np.empty(shape, dtype=np.float32)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, size)  # a mapped file can't report a full disk
            room: NDArray[Any] = np.memmap(file, np.float32, "r+", shape=shape)
            return np.asarray(room)
    except OSError as error:
        raise ConfigurationError(
            f"The cache folder {folder} has no {size / 1e6:.0f} MB left for data kept between "
            "rounds. Free space, name another folder with 'cache' in site.yaml, or give more "
            "'memory'."
        ) from error
