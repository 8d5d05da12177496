"""Pictures of a map on the MNI152 template, as PNG bytes.

Drawn by nilearn into figures of their own: matplotlib's global state (pyplot) is
not touched, so that a flow or a notebook may draw at the same time.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from consortium.space.grid import Grid

SIZE = (6.6, 2.5)
"""Width and height of a picture in inches; with the resolution, 990 x 375 pixels."""
DOTS = 150
COLOURS = 256
"""A picture is stored with so many colours, at a third of the bytes and no visible loss."""
SMOOTH = 2.0
"""Maps are drawn on voxels of this size in mm, interpolated linearly: a peak never grows."""
PALETTE = "RdBu_r"


@dataclass(frozen=True)
class Pictures:
    """Two views of one map, with what they show in words."""

    glass: bytes
    glass_text: str
    slices: bytes
    slices_text: str


def draw_components(
    grid: Grid, maps: NDArray[np.floating], peaks: NDArray[np.floating], threshold: float
) -> Iterator[Pictures]:
    """Draw every map in turn.

    Parameters
    ----------
    grid : Grid
    maps : array, shape (D, R)
        z-scores.
    peaks : array, shape (R, 3)
        Where the slices cut, in mm.
    threshold : float
        Values whose size is below it are not drawn.
    """
    background = template_background()
    for number, (values, peak) in enumerate(zip(maps.T, peaks, strict=True), start=1):
        yield draw(grid, values, peak, threshold, background, f"Component {number}")


def draw(
    grid: Grid,
    values: NDArray[np.floating],
    peak: NDArray[np.floating],
    threshold: float,
    background: Any,
    name: str,
) -> Pictures:
    """Draw one map as a glass brain and as three slices through its peak.

    Parameters
    ----------
    values : array, shape (D,)
    peak : array, shape (3,)
    background : nibabel.Nifti1Image
        Template under the slices.
    name : str
        What to call the map in the texts for those who don't see the pictures.
    """
    top = max(float(np.abs(values).max()), threshold + 1.0)
    x, y, z = (f"{mm:.0f}" for mm in peak)
    with warnings.catch_warnings():
        # A map without a voxel above the threshold is a finding, and the page says so.
        for message in ("empty mask", "Resampling binary images"):
            warnings.filterwarnings("ignore", message=message)
        image = _finer(grid.image(values))
        return Pictures(
            glass=_glass(image, threshold, top),
            glass_text=f"{name} seen through a glass brain from the side, the back and above",
            slices=_slices(image, peak, threshold, top, background),
            slices_text=f"{name} on slices of the MNI152 brain at x = {x}, y = {y}, z = {z} mm",
        )


def _glass(image: Any, threshold: float, top: float) -> bytes:
    from nilearn.plotting import plot_glass_brain

    figure = Figure(figsize=SIZE, dpi=DOTS)
    plot_glass_brain(
        image,
        figure=figure,
        threshold=threshold,
        vmax=top,
        plot_abs=False,
        cmap=PALETTE,
        colorbar=False,
    )
    return to_png(figure)


def _slices(
    image: Any, peak: NDArray[np.floating], threshold: float, top: float, background: Any
) -> bytes:
    from nilearn.plotting import plot_stat_map

    figure = Figure(figsize=SIZE, dpi=DOTS)
    display = plot_stat_map(
        image,
        bg_img=background,
        figure=figure,
        cut_coords=tuple(float(mm) for mm in peak),
        threshold=threshold,
        vmax=top,
        cmap=PALETTE,
        black_bg=False,
        colorbar=True,
        draw_cross=False,
    )
    display.draw_cross(color="black", linewidth=0.6, alpha=0.7)
    return to_png(figure)


def template_background() -> Any:
    """Template under the slices."""
    # Importing nilearn costs seconds, which only those who draw should pay.
    from nilearn.datasets import load_mni152_template

    return load_mni152_template(resolution=1)


def _finer(image: Any) -> Any:
    from nilearn.image import resample_img

    return resample_img(image, np.eye(3) * SMOOTH, interpolation="linear")


def to_png(figure: Figure) -> bytes:
    """Draw a figure with few colours."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", facecolor="white")
    stored = io.BytesIO()
    with Image.open(drawn) as picture:
        few = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        few.save(stored, format="png", optimize=True)
    return stored.getvalue()
