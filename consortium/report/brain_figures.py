"""Pictures of a map: on the MNI152 template, or on the cortex from both sides of both hemispheres.

Drawn by nilearn into separate figures: matplotlib's global state (pyplot) is not changed. So a flow
or a notebook may draw at the same time.
"""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from consortium.report.pictures import (
    DOTS,
    PALETTE,
    SIZE,
    Picture,
    pack_picture,
    to_picture,
    to_pixels,
)
from consortium.space.grid import Grid
from consortium.space.mesh import SIDE_NAMES, Hemisphere, Mesh, Side
from consortium.space.sampling import sample
from consortium.views.meshes import BUILT_IN

THRESHOLD = 3.0
"""Voxels of a map of z-scores with a smaller |z| are not drawn."""
SMOOTH = 2.0
"""Maps are drawn on voxels of this size in mm, interpolated linearly: a peak never grows."""
HEIGHTS = tuple(range(-40, 72, 8))
"""Places of the horizontal slices of a mosaic, z in mm."""
COLUMNS = 7
OUTSIDE = 0.05
"""The template is so dark outside the brain, over its brightest voxel."""
ARBITRARY = "value"
"""Units of values that have none."""
_DRAWING = threading.Lock()
VIEWS: tuple[tuple[Side, str], ...] = (
    ("L", "lateral"),
    ("L", "medial"),
    ("R", "medial"),
    ("R", "lateral"),
)
_WIDTH = 0.23
_ZOOM = 1.2
_GREY = 0.5


def draw_map(
    grid: Grid,
    values: NDArray[np.floating],
    peak: NDArray[np.floating],
    threshold: float,
    name: str,
    units: str = "",
) -> tuple[Picture, Picture]:
    """Draw one map as a glass brain and as three slices through its peak.

    Parameters
    ----------
    values : array, shape (D,)
    peak : array, shape (3,)
        Where the slices cut, in mm.
    threshold : float
        Values whose size is below it are not drawn.
    name : str
        What to call the map in the texts for those who don't see the pictures.
    units : str
        Of the values, above the colour bar.
    """
    top = _top(values, threshold)
    with _quiet():
        image = finer(grid.image(values))
        text = f"{name} seen through a glass brain from the side, the back and above"
        return _glass(image, threshold, top, text), _cut(
            image=image, peak=peak, threshold=threshold, top=top, name=name, units=units
        )


def draw_slices(
    grid: Grid,
    values: NDArray[np.floating],
    peak: NDArray[np.floating],
    threshold: float,
    name: str,
    units: str = "",
) -> Picture:
    """Draw one map as three slices through a place.

    Parameters
    ----------
    As of `draw_map`.
    """
    with _quiet():
        image = finer(grid.image(values))
        return _cut(
            image=image,
            peak=peak,
            threshold=threshold,
            top=_top(values, threshold),
            name=name,
            units=units,
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings about maps without a voxel above the threshold, which the page reports."""
    with warnings.catch_warnings():
        for message in ("empty mask", "Resampling binary images"):
            warnings.filterwarnings("ignore", message=message)
        yield


def _cut(
    image: Any, peak: NDArray[np.floating], threshold: float, top: float, name: str, units: str
) -> Picture:
    x, y, z = (f"{mm:.0f}" for mm in peak)
    return to_picture(
        _slices(image, peak, threshold, top, units),
        f"{name} on slices of the MNI152 brain at x = {x}, y = {y}, z = {z} mm",
    )


def draw_mosaic(grid: Grid, values: NDArray[np.floating], threshold: float, name: str) -> Picture:
    """Draw one map on horizontal slices of the whole brain.

    Parameters
    ----------
    As of `draw_map`.
    """
    top = _top(values, threshold)
    volume = np.zeros(grid.shape)
    volume[grid.mask] = values
    places = _mosaic_places(grid)
    under = _mosaic_brain()
    planes = sample(volume, places, order=1).reshape(under.shape)
    coloured = np.abs(planes) >= threshold
    shades = np.repeat(under[..., None], 3, axis=3)
    shades[coloured] = 255 * colormaps[PALETTE](0.5 + planes[coloured] / (2 * top))[:, :3]
    tiles = shades.astype(np.uint8).transpose(0, 2, 1, 3)[:, ::-1]  # rows from front to back
    rows = [np.hstack(list(tiles[k : k + COLUMNS])) for k in range(0, len(tiles), COLUMNS)]
    drawn = Image.fromarray(np.vstack(rows))
    pen = ImageDraw.Draw(drawn)
    high, wide = tiles.shape[1:3]
    for k, height in enumerate(HEIGHTS):
        corner = (k % COLUMNS * wide + 3, (k // COLUMNS + 1) * high - 13)
        pen.text(corner, f"z={height}", fill="black", font=ImageFont.load_default(10))
    heights = ", ".join(map(str, HEIGHTS))
    return pack_picture(drawn, f"{name} on horizontal slices at z = {heights} mm, left is left")


@lru_cache(maxsize=2)
def _mosaic_places(grid: Grid) -> NDArray[np.float64]:
    """Return the places of the template's voxels in the slices, in a grid's own indices."""
    affine = template().affine
    shape = template().shape
    levels = np.round((np.array(HEIGHTS) - affine[2, 3]) / affine[2, 2])
    axes = np.meshgrid(levels, *map(np.arange, shape[:2]), indexing="ij")
    voxels = np.stack([axes[1], axes[2], axes[0]]).reshape(3, -1)
    to_grid = np.linalg.inv(grid.affine) @ affine
    return np.asarray(to_grid[:3, :3] @ voxels + to_grid[:3, 3:])


@lru_cache(maxsize=1)
def _mosaic_brain() -> NDArray[np.float64]:
    """Return the template's slices in shades of grey, on white."""
    affine = template().affine
    values = np.asarray(template().dataobj, dtype=np.float64)
    levels = np.round((np.array(HEIGHTS) - affine[2, 3]) / affine[2, 2]).astype(int)
    shades = np.where(inside_brain(), 255 * values / values.max(), 255.0)
    return np.asarray(shades[:, :, levels].transpose(2, 0, 1))


def _top(values: NDArray[np.floating], threshold: float) -> float:
    """Return the end of the colours: the largest value, or a third above the threshold."""
    return max(float(np.abs(values).max()), threshold * 4.0 / 3.0) or 1.0


def _glass(image: Any, threshold: float, top: float, text: str) -> Picture:
    with _DRAWING:  # one brain for all threads
        display, outlines = _glass_brain()
        display.add_overlay(image, threshold=threshold, vmin=-top, vmax=top, cmap=PALETTE)
        try:
            drawn = to_pixels(display.frame_axes.figure, "white")
        finally:
            for shown in display.axes.values():
                for overlay in tuple(shown.ax.images):
                    overlay.remove()
    return pack_picture(Image.alpha_composite(drawn, outlines).convert("RGB"), text)


@lru_cache(maxsize=1)
def _glass_brain() -> tuple[Any, Image.Image]:
    """Return a glass brain without a map and outlines, and the outlines on a transparent ground.

    The outlines are 800 curves, the same for every map, and are drawn once.
    """
    from nilearn.plotting import plot_glass_brain

    figure = Figure(figsize=SIZE, dpi=DOTS)
    display = plot_glass_brain(None, figure=figure, plot_abs=False, colorbar=False)
    outlines = to_pixels(figure, "none")
    for shown in display.axes.values():
        for artist in (*shown.ax.patches, *shown.ax.texts):
            artist.remove()
    return display, outlines


def _slices(
    image: Any, peak: NDArray[np.floating], threshold: float, top: float, units: str
) -> Figure:
    from nilearn.plotting import plot_stat_map

    figure = Figure(figsize=SIZE, dpi=DOTS)
    display = plot_stat_map(
        image,
        bg_img=template(),
        figure=figure,
        cut_coords=tuple(float(mm) for mm in peak),
        threshold=threshold,
        vmax=top,
        symmetric_cbar=True,
        cmap=PALETTE,
        black_bg=False,
        colorbar=True,
        draw_cross=False,
    )
    display.draw_cross(color="black", linewidth=0.6, alpha=0.7)
    _above_the_cross(display)
    tick_evenly(figure.axes[-1], top, units)
    return figure


def _above_the_cross(display: Any) -> None:
    """Put the labels of slices and sides before the cross's lines."""
    for cut in display.axes.values():
        for label in cut.ax.texts:
            label.set_zorder(1_000)
            label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})


def tick_evenly(bar: Axes, top: float, units: str) -> None:
    """Mark a colour bar at even steps from its middle, and say in which unit."""
    ticks = MaxNLocator(4, symmetric=True).tick_values(-top, top)
    bar.set_yticks([tick for tick in ticks if abs(tick) <= top])
    left, low, width, height = bar.get_position().bounds
    bar.set_position((left, low, width, 0.9 * height))
    bar.set_title(
        "a.u." if units in (ARBITRARY, "arbitrary") else units, fontsize=8, pad=3, loc="right"
    )


@lru_cache(maxsize=1)
def inside_brain() -> NDArray[np.bool_]:
    """Return which of the template's voxels are in the brain."""
    values = np.asarray(template().dataobj, dtype=np.float64)
    return np.asarray(values > OUTSIDE * values.max())


@lru_cache(maxsize=1)  # a public constant that takes a tenth of a second
def template() -> Any:
    """Return the brain of the MNI152 template, on voxels of 2 mm: the background of maps."""
    # Importing nilearn costs seconds, which only those who draw should pay.
    from nilearn.datasets import load_mni152_template

    return load_mni152_template(resolution=2)


def finer(image: Any) -> Any:
    """Return a drawn image on voxels of `SMOOTH` mm, interpolated linearly."""
    from nilearn.image import resample_img

    return resample_img(image, np.eye(3) * SMOOTH, interpolation="linear")


def draw_surface(
    mesh: Mesh, values: NDArray[np.floating], threshold: float, name: str, units: str = ""
) -> Picture:
    """Draw one map on four views of the cortex; fsaverage5 inflated, another as it is.

    Parameters
    ----------
    values : array, shape (D,)
    threshold : float
        Values whose size is below it are not drawn.
    name : str
        What to call the map in the text for those who don't see the picture.
    units : str
        Of the values, above the colour bar.
    """
    top = max(float(np.abs(values).max()), threshold * 4.0 / 3.0) or 1.0
    parts = {side.side: (side, side.spread(rows)) for side, rows in mesh.split(values)}
    figure = Figure(figsize=SIZE, dpi=DOTS)
    for place, (side, view) in enumerate(VIEWS):
        axes: Any = figure.add_axes((place * _WIDTH, 0.0, _WIDTH, 0.9), projection="3d")
        hemisphere, shown = parts[side]
        _draw(
            axes,
            side=hemisphere,
            values=shown,
            name=mesh.name,
            view=view,
            threshold=threshold,
            top=top,
        )
        _frame(
            axes, parts[side][0].coordinates if mesh.name != BUILT_IN else _shown_surface(side)[0]
        )
        heading = f"{SIDE_NAMES[side]}, {view}"
        figure.text((place + 0.5) * _WIDTH, 0.92, heading, ha="center", size=8)
    _scale(figure, threshold, top, units)
    return to_picture(figure, f"{name} on both cortices of {mesh.name}, from outside and inside")


def _frame(axes: Any, shape: NDArray[np.floating]) -> None:
    """Give a side the same mm in each direction, which matplotlib does not by itself."""
    low = shape.min(axis=0)
    high = shape.max(axis=0)
    for place, which in enumerate("xyz"):
        getattr(axes, f"set_{which}lim")(low[place], high[place])
    axes.set_box_aspect(high - low, zoom=_ZOOM)


def _scale(figure: Figure, threshold: float, top: float, units: str) -> None:
    """Draw the colour bar, grey where nothing is drawn, with the unit above it."""
    bar = figure.add_axes((0.93, 0.15, 0.015, 0.7))
    figure.colorbar(ScalarMappable(Normalize(-top, top), colormaps[PALETTE]), cax=bar)
    bar.axhspan(-threshold, threshold, color=str(_GREY))
    tick_evenly(bar, top, units)
    bar.tick_params(labelsize=7)


def _draw(
    axes: Any,
    side: Hemisphere,
    values: NDArray[np.floating],
    name: str,
    view: str,
    threshold: float,
    top: float,
) -> None:
    from nilearn.plotting import plot_surf_stat_map  # costs seconds

    shape, folds = _shown_surface(side.side) if name == BUILT_IN else (side.coordinates, None)
    plot_surf_stat_map(
        [shape, side.triangles],
        values,
        bg_map=np.full(len(shape), _GREY) if folds is None else folds,
        hemi=SIDE_NAMES[side.side],
        view=view,
        engine="matplotlib",
        threshold=max(threshold, np.finfo(np.float32).tiny),
        vmin=-top,
        vmax=top,
        cmap=PALETTE,
        colorbar=False,
        axes=axes,
        figure=axes.figure,
    )


@lru_cache(maxsize=2)
def _shown_surface(side: str) -> tuple[Any, Any]:
    """Return the inflated surface of fsaverage5, and its folds, from nilearn."""
    from nilearn.datasets import load_fsaverage, load_fsaverage_data

    half = SIDE_NAMES[side]
    folds = load_fsaverage_data(mesh=BUILT_IN, data_type="sulcal").data.parts[half]
    return load_fsaverage(BUILT_IN)["inflated"].parts[half].coordinates, folds
