"""Loadings on a table's columns: bars, and a table."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from consortium.base.array import Array
from consortium.report.finished import Finished
from consortium.report.pictures import BLUE, DOTS, INK, RED, SIZE, Drawing, plain_axes, to_picture
from consortium.report.tables import write_loading_rows, write_loading_table
from consortium.space.study_space import Space, ViewSpace
from consortium.views.column import Column
from consortium.views.table import TableView

READING = ""
MOST_BARS = 12


def draw(space: Space, view: ViewSpace[TableView], values: Array, name: str) -> Drawing:
    """Show the largest entries as bars; those that are zero have none."""
    del space
    labels = view.labels
    largest = np.argsort(-np.abs(values), kind="stable")[: min(MOST_BARS, np.count_nonzero(values))]
    width = SIZE[0]
    height = max(1.2, 0.5 + 0.26 * len(largest))
    figure = Figure(figsize=(width, height), dpi=DOTS, layout="constrained")
    axes = figure.subplots()
    shown = values[largest][::-1]
    axes.barh(range(len(shown)), shown, color=[RED if v > 0 else BLUE for v in shown])
    axes.set_yticks(range(len(shown)), [labels[k][:40] for k in largest][::-1])
    axes.axvline(0, color=INK, linewidth=0.5)
    plain_axes(axes)
    named = ", ".join(labels[k] for k in largest[:5])
    return Drawing((to_picture(figure, f"{name}: largest entries {named}"),))


def person(view: ViewSpace[TableView], values: Array) -> Sequence[tuple[str, str]]:
    """Return each column's value in its own unit, or the nearest level."""
    start = 0
    facts = []
    for name, column in view.view.single_columns:
        many = len(column.labels(name))
        facts.append((name, _in_units(column, values[start : start + many])))
        start += many
    return facts


def _in_units(column: Column, entries: Array) -> str:
    if column.levels:
        place = int(np.argmax(entries)) if len(entries) > 1 else int(entries[0] > 0)
        return column.levels[place]
    low = float(column.low or 0.0)
    high = float(column.high or 0.0)
    return f"{low + (float(entries[0]) + 1.0) / 2.0 * (high - low):.4g}"


def write(folder: Path, run: Finished, view: ViewSpace[TableView], values: Array) -> Path:
    """Write a table with a row for each entry, or of participants with a row for each column."""
    if run.result.captions.persons:
        people = [person(view, column) for column in values.T]
        rows = [(name, *(each[k][1] for each in people)) for k, (name, _) in enumerate(people[0])]
        return write_loading_rows(folder / "tables", run, view, ("column",), rows)
    entries = [(label,) for label in view.labels]
    return write_loading_table(folder / "tables", run, view, (("entry",), entries), values)
