"""From a release of `average` to its result: means, errors, and coverage if it is released."""

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.special import ndtri

from consortium.algorithms import coverage
from consortium.algorithms.average_parameters import AverageParameters
from consortium.algorithms.base import MOST_ROWS, Array, Captions, Release, Result, Shape, Table
from consortium.algorithms.findings import Cell, Finding, ImageSet
from consortium.base.formatting import count
from consortium.kernels.entry_variances import entry_variances
from consortium.kernels.noisy_shares import EstimatedShares
from consortium.privacy.block_bounds import BlocksBound
from consortium.privacy.bounds import Bound


@dataclass(frozen=True, eq=False)
class Estimated:
    """Estimated means of all entries of `average`, with their errors."""

    means: Array
    """Length D. 0 where a mean is withheld."""
    errors: Array
    """Length D. Standard errors, of noise and chance together."""
    limit: float
    """Standard errors beyond which a mean differs from zero, for all entries together."""
    shares: EstimatedShares | None
    """Shares of the participants who have each entry; None if all have all."""

    @cached_property
    def withheld(self) -> Array:
        """Entries that fewer than half of the participants have."""
        return np.zeros(len(self.means), bool) if self.shares is None else self.shares.withheld

    @cached_property
    def floors(self) -> Array:
        """Size that a mean exceeds if it is found."""
        return np.asarray(self.limit * self.errors)

    @cached_property
    def found(self) -> Array:
        """Means that differ from zero, all together at the study's level."""
        return np.asarray((np.abs(self.means) > self.floors) & ~self.withheld)


def mean_noise(bound: Bound, deviation: float) -> float:
    """Return the noise in an entry of the mean of `average`, for that of the release."""
    return deviation / bound.blocks[0].factor if isinstance(bound, BlocksBound) else deviation


def average_result(
    parameters: AverageParameters, shape: Shape, bound: Bound, release: Release
) -> Result:
    """Return the mean, its error, and which of its values stand out of noise and chance together.

    Parameters
    ----------
    bound : Bound
        Bound of the planned release.
    """
    shares = _shares(parameters, shape, bound, release)
    estimated = _estimated(parameters, shape, bound, release, shares)
    found = estimated.found
    floor = float(np.median(estimated.floors))
    numbers: dict[str, float | int | str] = {
        "noise_deviation": mean_noise(bound, release.deviation),
        "standard_error": float(np.median(estimated.errors)),
        "floor": floor,
        "found": int(found.sum()),
    }
    arrays = {"mean": estimated.means[:, None], "found": found[:, None]}
    meaning = "Mean over the participants of these sites."
    if shares is not None:
        numbers["withheld"] = int(estimated.withheld.sum())
        arrays["coverage"] = shares.values[:, None]
        meaning = "Mean over the participants of these sites who have the value."
    headline = _headline(found, floor), coverage.withheld_sentence(estimated.withheld)
    words = Captions("mean", " ".join(filter(None, headline)), meaning, found=bool(found.any()))
    if not shape.views:
        images = _images(estimated, floor, meaning)
        return Result(arrays, numbers, images=images, captions=words)
    images = {} if shares is None else _coverage_images(parameters, shape, shares)
    tables = {"means": _table(parameters, shape, estimated)}
    withheld = estimated.withheld[:, None]
    shown = partial(Result, loadings="mean", drawn="found", withheld=withheld, images=images)
    return shown(arrays, numbers, tables=tables, captions=words)


def _shares(
    parameters: AverageParameters, shape: Shape, bound: Bound, release: Release
) -> EstimatedShares | None:
    if not isinstance(bound, BlocksBound):
        return None
    absent = bound.split(release.values)[coverage.ABSENT]
    noise = bound.deviations(release.deviation)[coverage.ABSENT]
    return coverage.estimate_coverage(absent, noise, parameters.views, shape)


def _estimated(
    parameters: AverageParameters,
    shape: Shape,
    bound: Bound,
    release: Release,
    shares: EstimatedShares | None,
) -> Estimated:
    """Divide the sums by those who have the entry; the error counts the noise of their share."""
    moments = release.values
    size = shape.features
    if isinstance(bound, BlocksBound):
        moments = bound.split(moments)[bound.blocks[0].name]
    present = np.ones(size) if shares is None else shares.divisors
    share_variance = 0.0 if shares is None else shares.relative_variance
    level = mean_noise(bound, release.deviation) / present
    limit = parameters.bound
    mean = moments[:size] / present
    squares = math.sqrt(2.0) * limit * moments[size:]
    if len(squares):
        variances = entry_variances(mean, squares / present, level, limit)
    else:
        variances = _evenly(mean, level, limit)
    chance = variances / (sum(shape.units) * present)
    scale = np.square(mean) * (share_variance + release.scale_deviation**2)
    errors = np.sqrt(level**2 + chance + scale)
    if shares is not None:
        mean = np.where(shares.withheld, 0.0, mean)
    far = float(-ndtri((1 - parameters.confidence) / (2 * size)))
    return Estimated(mean, errors, far, shares)


def _evenly(mean: Array, level: Array, bound: float) -> Array:
    """Return the variance of every entry if all are equal and as large as the bound allows.

    For units x of norm B or less, the sum of all entries' variances is E‖x‖² − ‖m‖² ≤ B² − ‖m‖².
    The noise's Σ τ² is subtracted from ‖m‖².
    """
    square = max(float(mean @ mean) - float(level @ level), 0.0)
    return np.full(len(mean), max(bound**2 - square, 0.0) / len(mean))


def _headline(found: Array, floor: float) -> str:
    if found.any():
        return f"{int(found.sum())} of {count(len(found), 'value')} of the mean are not zero."
    return f"Nothing was found; a mean below {floor:.2g} would not be seen at this ε and number."


def _images(estimated: Estimated, floor: float, meaning: str) -> dict[str, ImageSet]:
    names = ("mean",)
    shown = (bool(estimated.found.any()),)
    found = {
        "mean": ImageSet(
            estimated.means[:, None],
            f"{meaning} Values that noise and chance could make anywhere are not coloured.",
            names,
            found=shown,
            threshold=floor,
        ),
        "errors": ImageSet(
            estimated.errors[:, None],
            "Standard error of each value of the mean, of noise and chance together.",
            names,
            {"stat": "stderr"},
            drawn=False,
        ),
    }
    shares = estimated.shares
    return found | ({} if shares is None else {"coverage": coverage.share_map(shares.values)})


def _coverage_images(
    parameters: AverageParameters, shape: Shape, shares: EstimatedShares
) -> dict[str, ImageSet]:
    """Return maps of the views of voxels or vertices that may have gaps."""
    found = {}
    for view in parameters.views:
        painted = view.mesh_files is not None or (view.is_image and view.maps_file is None)
        if painted and view.most_missing:
            values = shares.values[shape.view_slice(view.name, "features")]
            found[f"{view.name}_coverage"] = coverage.share_map(values, view.name)
    return found


def _table(parameters: AverageParameters, shape: Shape, estimated: Estimated) -> Table:
    half = float(ndtri((1 + parameters.confidence) / 2)) * estimated.errors
    rows = list[tuple[Cell, ...]]()
    for place, name in enumerate(shape.entry_names[:MOST_ROWS]):
        mean = float(estimated.means[place])
        apart = float(half[place])
        cell = Finding()
        if not estimated.withheld[place]:
            found = bool(estimated.found[place])
            cell = Finding(mean, mean - apart, mean + apart, "found" if found else "not found")
        share = () if estimated.shares is None else (float(estimated.shares.values[place]),)
        rows.append((*name, cell, *share))
    percent = f"{100 * parameters.confidence:g}"
    columns = ("view", "entry", "mean")
    return Table(
        f"Means over the participants of these sites, clipped, with {percent} % intervals for "
        f"noise and chance. A mean is found if it differs from zero, all together at {percent} %.",
        columns if estimated.shares is None else (*columns, "coverage"),
        tuple(rows),
        about={"coverage": coverage.CAPTION} if estimated.shares is not None else {},
    )
