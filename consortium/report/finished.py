"""A finished study, from which its files and its page are made.

Component maps are made comparable by a fixed order, sign and scale. A decomposition gives its
components in any order, with either sign, at any scale. Here the order is by explained variance,
the heavier tail is positive, and the scale is a robust z. So maps of two runs can be compared.
"""

import math
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Array, Result, Table
from consortium.algorithms.findings import Finding
from consortium.errors import DataError
from consortium.report.course import Step
from consortium.report.legend import Legend
from consortium.report.privacy_report import PrivacyReport
from consortium.space.grid import Grid
from consortium.space.mesh import Mesh
from consortium.space.sampling import smooth_maps
from consortium.space.study_space import Space
from consortium.study.spec import Study

Floats = NDArray[np.float64]

MAD_TO_DEVIATION = 1.4826
"""Standard deviation of Gaussian noise over its median absolute deviation."""
LEAST_NOISE = 1e-6
"""A noise floor below this part of the largest deviation is none: the map is sparse."""
EVEN = 1e-9
"""A standardised third moment below this says nothing about which tail is heavier."""


@dataclass(frozen=True, eq=False)
class Components:
    """Tidied maps of R components over D voxels, the most explained variance first."""

    maps: Floats
    """Shape (D, R). Robust z-scores."""
    shares: Floats
    """Shape (R,). Part of the components' common variance; adds up to one."""
    peaks: Floats
    """Shape (R, 3). Where a map is highest, in mm of the study's space."""
    heights: Floats
    """Shape (R,). z at the peaks."""
    noise: Floats
    """Shape (R,). Noise floor that a map was divided by, in the unit of the maps that came in."""
    order: tuple[int, ...]
    """Column of the incoming array that each component was, from 0."""
    signs: tuple[int, ...]
    """1 or -1, factor of each column."""

    def __len__(self) -> int:
        return len(self.order)


def tidy_components(
    maps: NDArray[np.floating], grid: Grid | Mesh, variances: NDArray[np.floating] | None = None
) -> Components:
    """Order, sign and scale component maps.

    Raises DataError if the shapes don't fit, a value is not finite or a variance is negative.

    Parameters
    ----------
    maps : array, shape (D, R)
        Raw maps, such as the mixing matrix of a temporal ICA.
    grid : Grid or Mesh
        The D voxels, or vertices.
    variances : array, shape (R,), optional
        Variance that each component explains. By default the sum of squares of
        its column, which is right for sources of unit variance.

    Returns
    -------
    Components
        The same whatever the order and the signs of the incoming columns.
    """
    _check(maps, grid, variances)
    # One contiguous row per component: its sums then don't depend on its neighbours, to the bit.
    rows = np.ascontiguousarray(maps.T, dtype=np.float64)
    signs = [heavier_tail(row) for row in rows]
    rows = rows * np.array(signs, dtype=np.float64)[:, None] + 0.0  # + 0.0 turns -0 into 0
    explained = (rows**2).sum(axis=1) if variances is None else np.asarray(variances, np.float64)
    # Equal variances: the content decides, and never the incoming order.
    order = sorted(range(len(rows)), key=lambda r: (-explained[r], rows[r].tobytes()))
    scaled = [robust_z(rows[r]) for r in order]
    scores = np.array([z for z, _ in scaled])
    tops = scores.argmax(axis=1)
    total = math.fsum(explained)  # exact: the order of its terms has no effect
    return Components(
        maps=scores.T,
        shares=explained[order] / (total if total > 0 else 1.0),
        peaks=grid.coordinates[tops],
        heights=scores[np.arange(len(scores)), tops],
        noise=np.array([noise for _, noise in scaled]),
        order=tuple(order),
        signs=tuple(signs[r] for r in order),
    )


def heavier_tail(values: Floats) -> int:
    """Return the sign that gives a component map a positive heavier tail.

    Parameters
    ----------
    values : array, shape (D,)

    Returns
    -------
    int
        1 or -1; the sign for ``-values`` is always the opposite, but for all zeros.
    """
    centred = values - values.mean()
    deviation = float(np.sqrt((centred**2).mean()))
    skewness = float((centred**3).mean()) / deviation**3 if deviation**3 > 0 else 0.0
    if abs(skewness) < EVEN:
        skewness = float(values[np.abs(values).argmax()])
    return -1 if skewness < 0 else 1


def robust_z(values: Floats) -> tuple[Floats, float]:
    """Return maps in units of their noise floor, around their median.

    The floor is 1.4826 times the median absolute deviation: most voxels of a network's map are
    outside the network, so this is the spread of its noise. A map with more than half of its voxels
    at one value has none. The standard deviation is used instead, and a constant map is zero
    everywhere.

    Parameters
    ----------
    values : array, shape (D,)

    Returns
    -------
    scores : array, shape (D,)
    noise : float
        The divisor, more than zero.
    """
    centred = values - np.median(values)
    sizes = np.abs(centred)
    noise = MAD_TO_DEVIATION * float(np.median(sizes))
    if noise <= LEAST_NOISE * float(sizes.max()):
        noise = float(centred.std())
    if noise == 0:
        return np.zeros_like(values), 1.0
    return centred / noise, noise


def _check(
    maps: NDArray[np.floating], grid: Grid | Mesh, variances: NDArray[np.floating] | None
) -> None:
    if maps.ndim != 2 or maps.shape[0] != grid.features or maps.shape[1] < 1:
        raise DataError(
            f"Maps of shape {maps.shape} don't fit a grid of {grid.features} voxels. Give one "
            "row for each voxel and one column for each component."
        )
    if not np.isfinite(maps).all():
        raise DataError("A component map has a value that is not finite. Run the study again.")
    if variances is None:
        return
    if variances.shape != maps.shape[1:]:
        raise DataError(
            f"{variances.shape} variances don't fit {maps.shape[1]} maps. Give one for each map."
        )
    if not (np.isfinite(variances).all() and (variances >= 0).all()):
        raise DataError("An explained variance is negative or not finite. Give variances >= 0.")


@dataclass(frozen=True, eq=False)
class ComponentMaps:
    """The tidied component maps of a study of images."""

    grid: Grid | Mesh
    """Their V voxels, or vertices."""
    components: Components
    noise: NDArray[np.float64] | None = None
    """Shape (V,). Standard deviation of the privacy noise in each voxel of the maps before they
    were scaled, if it is known."""
    found: tuple[bool, ...] = ()
    """Whether each component stands out of the noise; one that does not is listed, but not drawn.
    Empty: all do."""
    shares: tuple[Finding, ...] = ()
    """Fraction of the data's variance that each component explains. If it is unknown, this is
    empty, and fractions of all components' variance are reported."""

    @property
    def floor(self) -> NDArray[np.float64] | None:
        """The noise in the units of each map, V x R."""
        return None if self.noise is None else self.noise[:, None] / self.components.noise

    def is_found(self, r: int) -> bool:
        """Return whether component r, counted from 0, exceeds the noise."""
        return self.found[r] if self.found else True

    @property
    def tells_shares(self) -> bool:
        """Whether the share of any component is reported."""
        return not self.shares or any(share.reported for share in self.shares)

    def share(self, r: int) -> Finding:
        """Return the share of the data's variance, or of the components', that r explains."""
        return self.shares[r] if self.shares else Finding(float(self.components.shares[r]))


@dataclass(frozen=True, eq=False)
class Finished:
    """Everything that is reported about a finished study; `finish_result` makes one."""

    study: Study
    space: Space
    result: Result
    report: PrivacyReport
    day: date
    """The day that the page carries."""
    components: ComponentMaps | None = None
    """The result's maps, if it is a study of images and has any."""
    legend: Legend = field(default_factory=Legend)
    """Names of places and networks, if the study gives any."""
    course: tuple[Step, ...] = ()
    """Comparison of the outcome with the plan, if the plan is known."""
    files: tuple[Path, ...] = ()
    """Files that users may open, relative to the output folder."""

    @property
    def loadings(self) -> Array | None:
        """Values over all views' entries, D x K, of a study of participants that has any."""
        name = self.result.loadings or self.result.maps
        return self.result.arrays[name] if name and self.space.views else None

    @property
    def has_images(self) -> bool:
        """Whether anything comes from images."""
        return not self.space.views or any(view.view.is_image for view in self.space.views)


def finish_result(
    study: Study,
    space: Space,
    result: Result,
    report: PrivacyReport,
    day: date,
    legend: Legend | None = None,
) -> Finished:
    """Collect everything that is reported; the same result gives the same maps.

    Raises DataError if the maps don't fit the study's grid or have a value that is not finite.
    """
    maps = _component_maps(study, space, result) if result.maps and not study.features else None
    tables = {name: _with_names(space, table) for name, table in result.tables.items()}
    return Finished(
        study=study,
        space=space,
        result=replace(result, tables=tables),
        report=report,
        day=day,
        components=maps,
        legend=legend or Legend(),
    )


def _with_names(space: Space, table: Table) -> Table:
    """Return a table with the names of component maps instead of their numbers."""
    names = {
        (view.name, written): label
        for view in space.views
        if view.map_names
        for unnamed, label in zip(view.unnamed, view.labels, strict=True)
        for written in (unnamed, f"{view.name}{unnamed}")  # the second by `describe`
    }
    if not names or not {"view", "entry"} <= set(table.columns):
        return table
    view, entry = (table.columns.index(name) for name in ("view", "entry"))
    rows = (
        (*row[:entry], names.get((str(row[view]), str(row[entry])), row[entry]), *row[entry + 1 :])
        for row in table.rows
    )
    return replace(table, rows=tuple(rows))


def _component_maps(study: Study, space: Space, result: Result) -> ComponentMaps:
    """Paint, smooth and tidy the result's maps."""
    values = result.arrays[result.maps]
    grid = space.maps if result.fine else space.domain
    painted = values if result.fine else space.paint(values)
    smooth, noise = smooth_maps(painted, result.noise, grid, study.data.maps_smoothing)
    # A region's voxels share their noise, so it is not reported by voxel.
    with_noise = result.noise > 0 and (result.fine or space.regions is None)
    variances = np.maximum(result.arrays[result.variances], 0.0) if result.variances else None
    components = tidy_components(smooth, grid, variances)
    found = tuple(result.captions.is_found(r) for r in components.order)
    shares = tuple(result.shares[r] for r in components.order) if result.shares else ()
    return ComponentMaps(grid, components, noise if with_noise else None, found, shares)
