"""Loadings on pairs of regions or networks: a square of colours, and a table."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from consortium.report.finished import Finished
from consortium.report.pictures import DOTS, PALETTE, SIZE, Drawing, to_picture
from consortium.report.tables import write_loading_table
from consortium.report.views.axes import largest_size
from consortium.space.study_space import AnyViewSpace

Array = NDArray[Any]

_NAMED = 5
_TICKS = 32
"""Regions whose numbers fit beside a square."""


def draw_edges(view: AnyViewSpace, values: Array, name: str) -> Drawing:
    """Draw the pairs as a symmetric square, in the order of the regions or maps."""
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
    """Pairs as a symmetric matrix, zero on its diagonal: R(R - 1)/2 to R x R."""
    nodes = round((1 + (1 + 8 * len(values)) ** 0.5) / 2)
    square = np.zeros((nodes, nodes))
    square[np.triu_indices(nodes, 1)] = values
    return np.asarray(square + square.T)


def write_edges(folder: Path, run: Finished, view: AnyViewSpace, values: Array) -> Path:
    """Write a table with a line for each pair."""
    entries = [(label,) for label in view.labels]
    return write_loading_table(folder / "tables", run, view, (("entry",), entries), values)
