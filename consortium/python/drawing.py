"""A result's maps, or its numbers if it has none, as one figure of pyplot, for a notebook."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from matplotlib.figure import Figure
from nibabel import Nifti1Image
from nibabel.affines import apply_affine
from numpy.typing import NDArray

from consortium.algorithms.findings import DRAWN, SURE
from consortium.base.formatting import number
from consortium.python.scratch import is_surface
from consortium.report.brain_figures import THRESHOLD, finer
from consortium.report.pictures import PALETTE

if TYPE_CHECKING:
    from pandas import DataFrame

_WIDTH = 8.0  # inches, of one map
_HEIGHT = 2.6
_T = "_stat-t_"
"""Part of the name of a contrast's t map."""
_DISCOVERIES = 0.05
"""False discovery rate up to which a contrast's voxels are coloured."""
_INTERVAL = "#1f5f99"


class Drawable(Protocol):
    """Interface of a result that can be drawn, such as `StudyResult`."""

    @property
    def images(self) -> Mapping[str, Any]:
        """Every image."""

    @property
    def tables(self) -> Mapping[str, DataFrame]:
        """Every table."""

    @property
    def components_img_(self) -> Nifti1Image:
        """All maps."""

    @property
    def components_key(self) -> str:
        """The image's name."""

    @property
    def found_(self) -> Sequence[bool]:
        """Whether each map stands out."""

    @property
    def names_(self) -> Sequence[str]:
        """Names of the maps; may be empty."""

    @property
    def expected_(self) -> Sequence[float]:
        """Expected correlation of each; may be empty."""

    def errors_of(self, key: str) -> Nifti1Image | None:
        """Return standard errors of an image's maps, if they were released."""


def draw_result(result: Drawable, most: int) -> Figure:
    """Draw maps that exceed the noise: three slices through the peak of each.

    Without maps, the entries of the first table that has intervals, those furthest from zero first.

    Parameters
    ----------
    result : Drawable
    most : int
        Maximum number of maps or entries.
    """
    intervals = next(filter(None, map(_intervals, result.tables.values())), None)
    of_images = bool(result.found_) or any(_T in key for key in result.images)
    if not of_images and intervals is not None:
        return _forest(intervals, most)
    if intervals is None and not result.images:
        return _sentence("There are neither maps nor intervals to draw. See the numbers in tables.")
    maps = [*_components(result, most)] or [*_contrasts(result, most)]
    if not maps:
        return _sentence("No map exceeds the noise, so none is drawn.")
    if is_surface(maps[0].values):
        return _sentence("Maps on the cortex: nilearn.plotting draws what components_img_ holds.")
    figure = _figure(_HEIGHT * len(maps))
    height = 1.0 / len(maps)
    for row, shown in enumerate(maps):
        bottom = 1.0 - (row + 1) * height
        figure.text(0.01, bottom + 0.9 * height, shown.heading, va="center")
        with warnings.catch_warnings():
            # A map without a voxel above its noise is also a finding.
            for message in ("empty mask", "Resampling binary images"):
                warnings.filterwarnings("ignore", message=message)
            _slices(shown, figure, (0.0, bottom, 1.0, 0.82 * height))
    return figure


class _Map(NamedTuple):
    """A map, and the size from which on each voxel is coloured."""

    values: Nifti1Image
    limits: NDArray[np.floating]
    heading: str


def _components(result: Drawable, most: int) -> Iterator[_Map]:
    """Yield the component maps that exceed the noise."""
    for which in [k for k, found in enumerate(result.found_) if found][:most]:
        image = result.components_img_
        if is_surface(image):
            yield _Map(image, np.zeros(0), "")
            continue
        errors = result.errors_of(result.components_key)
        values = _volume(image, which)
        limits = np.full(values.shape, THRESHOLD)
        if errors is not None:
            limits = np.maximum(DRAWN, SURE * _volume(errors, which))
        yield _Map(Nifti1Image(values, image.affine), limits, _heading(result, which))


def _contrasts(result: Drawable, most: int) -> Iterator[_Map]:
    """Yield the t map of each contrast, coloured from the smallest discovery on."""
    for key in [key for key in result.images if _T in key][:most]:
        image = result.images[key].image
        rates = result.images.get(key.replace(_T, "_stat-q_"))
        if rates is None or is_surface(image):
            continue
        values = _volume(image, 0)
        discovered = (values != 0) & (_volume(rates.image, 0) <= _DISCOVERIES)
        if discovered.any():
            least = float(np.abs(values[discovered]).min())
            name = key.partition("_contrast-")[2].partition("_")[0]
            heading = f"{name}: t, coloured where q ≤ {_DISCOVERIES:g}"
            yield _Map(Nifti1Image(values, image.affine), np.full(values.shape, least), heading)


class _Intervals(NamedTuple):
    """Numbers of a table's entries with their intervals."""

    heading: str
    entries: Sequence[str]
    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def _intervals(table: DataFrame) -> _Intervals | None:
    """Return a table's entries with their intervals; None if it has none."""
    from pandas import to_numeric  # only who has a table should pay

    for heading in table.columns:
        ends = [f"{heading} {end}" for end in ("low", "high")]
        ends = ["low", "high"] if heading == "effect" else ends
        if "entry" in table and all(end in table for end in ends):
            # The result's tables are numeric; a caller's own table may also have empty text.
            numbers = (
                np.asarray(to_numeric(table[name], errors="coerce"), dtype=np.float64)
                for name in (heading, *ends)
            )
            names = [str(x) for x in table["entry"]]
            return _Intervals(heading, names, *numbers)
    return None


def _forest(intervals: _Intervals, most: int) -> Figure:
    """Draw each entry's number with its interval, in the table's order."""
    width = np.maximum(intervals.high - intervals.low, np.finfo(float).tiny)
    far = np.nan_to_num(np.abs(intervals.value) / width, nan=-1.0)
    shown = sorted(np.argsort(-far, kind="stable")[:most].tolist())
    shown = [k for k in shown if far[k] >= 0]
    if not shown:
        return _sentence("No entry exceeds the noise, so none is drawn.")
    figure = _figure(1.0 + 0.25 * len(shown))
    axes = figure.subplots()
    rows = range(len(shown))[::-1]
    axes.hlines(rows, intervals.low[shown], intervals.high[shown], color=_INTERVAL)
    axes.plot(intervals.value[shown], rows, "o", color=_INTERVAL)
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.set_yticks(rows, [intervals.entries[k] for k in shown])
    axes.set_xlabel(f"{intervals.heading}, with its interval")
    figure.tight_layout()
    return figure


def _slices(shown: _Map, figure: Figure, axes: tuple[float, ...]) -> None:
    """Draw three slices through a map's peak, interpolated, with the left side on the left."""
    from nilearn.plotting import plot_stat_map  # costs seconds, which only few should pay

    display = plot_stat_map(
        _smooth(shown),
        figure=figure,
        axes=axes,
        cut_coords=_peak(shown.values),
        threshold=1e-6,
        vmax=float(np.abs(shown.values.dataobj).max()),
        cmap=PALETTE,
        symmetric_cbar=True,
        black_bg=False,
        draw_cross=False,
        annotate=False,
    )
    display.annotate(size=10)


def _smooth(shown: _Map) -> Nifti1Image:
    """Return a map on voxels of 2 mm, with 0 where it is below the limits there.

    Values and limits are both interpolated linearly. So a place is coloured only if at least one
    of the voxels around it exceeds its own limit.
    """
    fine = finer(shown.values)
    limits = finer(Nifti1Image(shown.limits, shown.values.affine))
    values = np.asarray(fine.dataobj)
    return Nifti1Image(np.where(np.abs(values) >= limits.dataobj, values, 0.0), fine.affine)


def _peak(image: Nifti1Image) -> tuple[float, ...]:
    """Return the place of a map's peak in mm."""
    values = np.abs(image.dataobj)
    place = np.unravel_index(int(values.argmax()), values.shape)
    return tuple(float(mm) for mm in apply_affine(image.affine, place))


def _volume(image: Nifti1Image, which: int) -> NDArray[Any]:
    values = np.asarray(image.dataobj, dtype=np.float64)
    return values[..., which] if values.ndim == 4 else values


def _heading(result: Drawable, which: int) -> str:
    expected = result.expected_
    expectation = f", expected correlation {number(expected[which])}" if expected else ""
    name = result.names_[which] if result.names_ else ""
    return f"component {which + 1}{f': {name}' if name else ''}{expectation}"


def _sentence(text: str) -> Figure:
    figure = _figure(1.0)
    figure.text(0.5, 0.5, text, ha="center", va="center")
    return figure


def _figure(height: float) -> Figure:
    from matplotlib import pyplot as plt  # chooses a backend, which only who draws should do

    figure: Figure = plt.figure(figsize=(_WIDTH, height))
    return figure
