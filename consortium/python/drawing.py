"""A result's maps as one figure that pyplot knows, so that a notebook shows it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from matplotlib.figure import Figure
from nibabel import Nifti1Image
from nibabel.affines import apply_affine
from numpy.typing import NDArray

from consortium.algorithms.group_ica.result import DRAWN, SURE
from consortium.base.formatting import number
from consortium.report.brain_figures import THRESHOLD
from consortium.report.pictures import PALETTE

_WIDTH, _HEIGHT = 8.0, 2.4  # inches, of one map


class Drawable(Protocol):
    """What is drawn of a result: `StudyResult` has it."""

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
    def expected_(self) -> Sequence[float]:
        """Expected correlation of each; may be empty."""

    def errors_of(self, key: str) -> Nifti1Image | None:
        """Standard errors of an image's maps, if they were released."""


def draw_result(result: Drawable, most: int) -> Figure:
    """Draw what stands out of the noise: three slices through the peak of each map.

    Parameters
    ----------
    result : Drawable
    most : int
        Maps to draw, at most.
    """
    drawn = [number for number, found in enumerate(result.found_) if found][:most]
    if not drawn:
        return _sentence("Nothing stands out of the noise, so that no map is drawn.")
    figure = _figure(_HEIGHT * len(drawn))
    for row, which in enumerate(drawn):
        height = 1.0 / len(drawn)
        axes = (0.0, 1.0 - (row + 1) * height, 1.0, 0.9 * height)
        peak = _peak(result.components_img_, which)
        with warnings.catch_warnings():
            # A map without a voxel above its noise is a finding, too.
            for message in ("empty mask", "Resampling binary images"):
                warnings.filterwarnings("ignore", message=message)
            _slices(_coloured(result, which), figure, axes, peak, _heading(result, which))
    return figure


def _slices(
    image: Nifti1Image,
    figure: Figure,
    axes: tuple[float, ...],
    peak: tuple[float, ...],
    title: str,
) -> None:
    from nilearn.plotting import plot_stat_map  # costs seconds, which only few should pay

    plot_stat_map(
        image,
        figure=figure,
        axes=axes,
        title=title,
        cut_coords=peak,
        threshold=1e-6,
        cmap=PALETTE,
        symmetric_cbar=True,
        black_bg=False,
        draw_cross=False,
    )


def _peak(image: Nifti1Image, which: int) -> tuple[float, ...]:
    """Where a map is largest, in mm."""
    values = np.abs(_volume(image, which))
    place = np.unravel_index(int(values.argmax()), values.shape)
    return tuple(float(mm) for mm in apply_affine(image.affine, place))


def _coloured(result: Drawable, which: int) -> Nifti1Image:
    """A map, with zero for what noise alone may have made."""
    key = result.components_key
    image, errors = result.components_img_, result.errors_of(key)
    values = _volume(image, which)
    limit: NDArray[Any] = np.full(values.shape, THRESHOLD)
    if errors is not None:
        limit = np.maximum(DRAWN, SURE * _volume(errors, which))
    return Nifti1Image(np.where(np.abs(values) >= limit, values, 0.0), image.affine)


def _volume(image: Nifti1Image, which: int) -> NDArray[Any]:
    values = np.asarray(image.dataobj)
    return values[..., which] if values.ndim == 4 else values


def _heading(result: Drawable, which: int) -> str:
    expected = result.expected_
    told = f", expected correlation {number(expected[which])}" if expected else ""
    return f"component {which + 1}{told}"


def _sentence(text: str) -> Figure:
    figure = _figure(1.0)
    figure.text(0.5, 0.5, text, ha="center", va="center")
    return figure


def _figure(height: float) -> Figure:
    from matplotlib import pyplot as plt  # chooses a backend, which only who draws should do

    figure: Figure = plt.figure(figsize=(_WIDTH, height))
    return figure
