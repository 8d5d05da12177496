"""Tables that have a curve, drawn with the diagonal: ROC curves and calibration."""

import math

from matplotlib.figure import Figure

from consortium.algorithms.base import Table
from consortium.algorithms.findings import Cell, Finding
from consortium.report.finished import Finished
from consortium.report.pictures import BLUE, DOTS, SOFT, Drawing, Picture, plain_axes, to_picture
from consortium.report.sections.base import Card, PageSection, cards_section

_SIZE = (6.6, 3.3)
"""Width and height in inches."""
_MOST = 2
"""Curves of a picture."""


def section(run: Finished) -> PageSection | None:
    """Draw the curves of all tables that have one, with the points that are reported."""
    tables = [table for table in run.result.tables.values() if table.curve is not None]
    cards = [
        _card(number, tables[start : start + _MOST])
        for number, start in enumerate(range(0, len(tables), _MOST), 1)
    ]
    return cards_section(tuple(cards))


def _card(number: int, tables: list[Table]) -> Card:
    names = [curve_name(table) for table in tables]
    heading = " and ".join(names)
    picture = draw_table_curves(tables)
    note = "Lines are intervals. The dashed diagonal is prediction by chance in a ROC curve, and "
    note += "perfect calibration of predicted probabilities."
    return Card(
        f"curves-{number}", heading[:1].upper() + heading[1:], (), (Drawing((picture,), note),)
    )


def curve_name(table: Table) -> str:
    """Return the name of a table's curve."""
    assert table.curve is not None  # noqa: S101 - for the type checker
    return f"{table.curve[1]} by {table.curve[0]}"


def curve_points(table: Table) -> list[tuple[Finding, Finding]]:
    """Return x and y of the rows in which both are reported, each with its interval."""
    assert table.curve is not None  # noqa: S101 - for the type checker
    across, up = (table.columns.index(name) for name in table.curve)
    pairs = ((_finding(row[across]), _finding(row[up])) for row in table.rows)
    return [(x, y) for x, y in pairs if x.reported and y.reported]


def draw_table_curves(tables: list[Table]) -> Picture:
    """Draw the points of tables with their intervals, each next to the diagonal."""
    figure = Figure(figsize=_SIZE, dpi=DOTS, layout="constrained")
    texts = []
    for place, table in enumerate(tables, 1):
        points = sorted(curve_points(table), key=lambda pair: (pair[0].value, pair[1].value))
        axes = figure.add_subplot(1, _MOST, place)
        axes.plot((0, 1), (0, 1), color=SOFT, linewidth=1, linestyle="--")
        for x, y in points:
            if y.bounded:
                axes.plot((x.value, x.value), (y.low, y.high), color=SOFT, linewidth=1)
            if x.bounded:
                axes.plot((x.low, x.high), (y.value, y.value), color=SOFT, linewidth=1)
        values = [(x.value, y.value) for x, y in points]
        axes.plot([x for x, _ in values], [y for _, y in values], "o-", color=BLUE, markersize=3)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        assert table.curve is not None  # noqa: S101 - for the type checker
        axes.set_xlabel(table.curve[0], fontsize=8)
        axes.set_ylabel(table.curve[1], fontsize=8)
        plain_axes(axes)
        texts.append(f"{curve_name(table)}: {len(points)} points next to the diagonal")
    return to_picture(figure, "; ".join(texts))


def _finding(cell: Cell) -> Finding:
    if isinstance(cell, Finding):
        return cell
    return Finding(float(cell) if isinstance(cell, float | int) else math.nan)
