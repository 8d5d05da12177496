"""Pictures of a map on the cortex, seen from both sides of both hemispheres.

Drawn by nilearn into figures of their own, as `brain_figures` are.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from consortium.report.brain_figures import tick_evenly
from consortium.report.pictures import DOTS, PALETTE, SIZE, Picture, to_picture
from consortium.space.mesh import SIDE_NAMES, Hemisphere, Mesh, Side
from consortium.views.meshes import BUILT_IN

VIEWS: tuple[tuple[Side, str], ...] = (
    ("L", "lateral"),
    ("L", "medial"),
    ("R", "medial"),
    ("R", "lateral"),
)
_WIDTH, _ZOOM = 0.23, 1.2
_GREY = 0.5


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
        _draw(axes, *parts[side], mesh.name, view, threshold, top)
        _frame(
            axes, parts[side][0].coordinates if mesh.name != BUILT_IN else _shown_surface(side)[0]
        )
        heading = f"{SIDE_NAMES[side]}, {view}"
        figure.text((place + 0.5) * _WIDTH, 0.92, heading, ha="center", size=8)
    _scale(figure, threshold, top, units)
    return to_picture(figure, f"{name} on both cortices of {mesh.name}, from outside and inside")


def _frame(axes: Any, shape: NDArray[np.floating]) -> None:
    """Give a side the same mm in each direction, which matplotlib does not by itself."""
    low, high = shape.min(axis=0), shape.max(axis=0)
    for place, which in enumerate("xyz"):
        getattr(axes, f"set_{which}lim")(low[place], high[place])
    axes.set_box_aspect(high - low, zoom=_ZOOM)


def _scale(figure: Figure, threshold: float, top: float, units: str) -> None:
    """Draw the colour bar, grey where nothing is drawn, with the unit above it."""
    beside = figure.add_axes((0.93, 0.15, 0.015, 0.7))
    figure.colorbar(ScalarMappable(Normalize(-top, top), colormaps[PALETTE]), cax=beside)
    beside.axhspan(-threshold, threshold, color=str(_GREY))
    tick_evenly(beside, top, units)
    beside.tick_params(labelsize=7)


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
    """Inflated surface of fsaverage5, and its folds, which nilearn carries."""
    from nilearn.datasets import load_fsaverage, load_fsaverage_data

    half = SIDE_NAMES[side]
    folds = load_fsaverage_data(mesh=BUILT_IN, data_type="sulcal").data.parts[half]
    return load_fsaverage(BUILT_IN)["inflated"].parts[half].coordinates, folds
