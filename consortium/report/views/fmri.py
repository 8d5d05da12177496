"""Loadings on images: brains, and an image file; on pairs a square, and a table."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from consortium.base.array import Array
from consortium.base.atomic import write_json
from consortium.report.bids import about_image, map_stem, write_image
from consortium.report.brain_figures import THRESHOLD, draw_map
from consortium.report.finished import Finished, robust_z
from consortium.report.image_sets import about_map
from consortium.report.pictures import DOTS, PALETTE, SIZE, Drawing, largest_size, to_picture
from consortium.report.tables import about_loadings, write_loading_table
from consortium.space.study_space import AnyViewSpace, Space, ViewSpace
from consortium.views.fmri import FmriView

READING = (
    "Maps are drawn as robust z-scores: distance from the map's median in units of 1.4826 times "
    f"the median absolute deviation. Voxels with |z| below {THRESHOLD:g} are not drawn. These are "
    "not test statistics over participants. The image files contain the original values."
)


def draw(space: Space, view: ViewSpace[FmriView], values: Array, name: str) -> Drawing:
    """Draw a map as robust z-scores, at its peak; pairs of regions as a square."""
    if view.view.is_of_edges:
        return draw_edges(view, values, name)
    scores, _ = robust_z(space.paint_view(view, values[:, None])[:, 0].astype(np.float64))
    peak = space.grid.coordinates[np.abs(scores).argmax()]
    beyond = np.count_nonzero(np.abs(scores) >= THRESHOLD)
    note = "" if beyond else f"No voxel of this map passes |z| = {THRESHOLD:g}."
    return Drawing(
        draw_map(
            grid=space.grid, values=scores, peak=peak, threshold=THRESHOLD, name=name, units="z"
        ),
        note,
    )


def person(view: ViewSpace[FmriView], values: Array) -> Sequence[tuple[str, str]]:
    """Return nothing, because it is drawn."""
    del view, values
    return ()


def write(folder: Path, run: Finished, view: ViewSpace[FmriView], values: Array) -> Path:
    """Write an image with a volume for each column; of pairs of regions a table."""
    if view.view.is_of_edges:
        return write_edges(folder, run, view, values)
    study = run.study
    space = run.space
    stem = folder / f"tpl-{study.data.space}" / "func" / map_stem(study, space.grid, view.name)
    about = {
        **about_loadings(run, view),
        **about_map(run, space.grid, view=view.name),
        **about_image(study, space.grid),
        "FourthDimension": run.result.captions.column,
    }
    write_json(stem.with_name(f"{stem.name}_loadings.json"), about)
    painted = space.paint_view(view, values).astype(np.float32)
    return write_image(stem, "loadings", space.grid, painted)


_NAMED = 5
_TICKS = 32
"""Maximum number of regions whose numbers fit next to a square."""


def draw_edges(view: AnyViewSpace, values: Array, name: str) -> Drawing:
    """Draw loadings on pairs as a symmetric square, in the order of the regions or maps."""
    square = edge_matrix(values)
    figure = Figure(figsize=(SIZE[0], SIZE[0] * 0.6), dpi=DOTS, layout="constrained")
    axes = figure.subplots()
    top = largest_size(values)
    drawn = axes.imshow(square, cmap=PALETTE, vmin=-top, vmax=top)
    nodes = len(square)
    if nodes <= _TICKS:
        axes.set_xticks(range(nodes), [str(k + 1) for k in range(nodes)])
        axes.set_yticks(range(nodes), [str(k + 1) for k in range(nodes)])
    axes.tick_params(labelsize=8, length=0)
    figure.colorbar(drawn, ax=axes, shrink=0.8)
    largest = np.argsort(-np.abs(values), kind="stable")[:_NAMED]
    named = ", ".join(view.labels[k] for k in largest)
    return Drawing((to_picture(figure, f"{name}: largest pairs {named}"),), f"Largest: {named}.")


def edge_matrix(values: Array) -> Array:
    """Return pairs as a symmetric matrix, zero on its diagonal: R(R - 1)/2 to R x R."""
    nodes = round((1 + (1 + 8 * len(values)) ** 0.5) / 2)
    square = np.zeros((nodes, nodes))
    square[np.triu_indices(nodes, 1)] = values
    return np.asarray(square + square.T)


def write_edges(folder: Path, run: Finished, view: AnyViewSpace, values: Array) -> Path:
    """Write a table with a line for each pair."""
    entries = [(label,) for label in view.labels]
    return write_loading_table(folder / "tables", run, view, (("entry",), entries), values)
