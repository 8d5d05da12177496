"""Loadings on a table's columns: bars, and a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from consortium.report.finished import Finished
from consortium.report.pictures import DOTS, SIZE, Drawing, to_picture
from consortium.report.tables import write_loading_table
from consortium.report.views.axes import BLUE, INK, RED, plain_axes
from consortium.space.study_space import Space, ViewSpace
from consortium.views.table import TableView

Array = NDArray[Any]

READING = ""
MOST_BARS = 12


def draw(space: Space, view: ViewSpace[TableView], values: Array, name: str) -> Drawing:
    """Show the largest entries as bars; those that are zero have none."""
    del space
    labels = view.labels
    largest = np.argsort(-np.abs(values), kind="stable")[: min(MOST_BARS, np.count_nonzero(values))]
    width, height = SIZE[0], max(1.2, 0.5 + 0.26 * len(largest))
    figure = Figure(figsize=(width, height), dpi=DOTS, layout="constrained")
    axes = figure.subplots()
    shown = values[largest][::-1]
    axes.barh(range(len(shown)), shown, color=[RED if v > 0 else BLUE for v in shown])
    axes.set_yticks(range(len(shown)), [labels[k][:40] for k in largest][::-1])
    axes.axvline(0, color=INK, linewidth=0.5)
    plain_axes(axes)
    named = ", ".join(labels[k] for k in largest[:5])
    return Drawing((to_picture(figure, f"{name}: largest entries {named}"),))


def write(folder: Path, run: Finished, view: ViewSpace[TableView], values: Array) -> Path:
    """Write a table with a line for each entry."""
    entries = [(label,) for label in view.labels]
    return write_loading_table(folder / "tables", run, view, (("entry",), entries), values)
