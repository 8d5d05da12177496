"""The page of a feature study: what was found in each view, with its tables and its privacy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from consortium.algorithms.base import Result, Table
from consortium.files.atomic import write_text
from consortium.report.brain_figures import draw, template_background
from consortium.report.cells import cell_text
from consortium.report.components import robust_z
from consortium.report.entry_figures import Picture, draw_entries
from consortium.report.feature_prose import (
    feature_methods,
    feature_reading,
    feature_verdict,
    view_heading,
)
from consortium.report.page import NAME, THRESHOLD, environment, frame, inline
from consortium.report.privacy_report import PrivacyReport
from consortium.report.tables import paint_view, split_views
from consortium.space.study_space import Space, ViewSpace
from consortium.study.spec import Study
from consortium.views.fmri import FmriView

Array = NDArray[Any]


@dataclass(frozen=True)
class ShownPicture:
    """A picture as the page holds it."""

    source: str
    text: str
    height: int


@dataclass(frozen=True)
class ShownView:
    """A view of one column."""

    heading: str
    pictures: tuple[ShownPicture, ...]
    note: str


@dataclass(frozen=True)
class Card:
    """One column of the loadings."""

    number: int
    name: str
    facts: tuple[tuple[str, str], ...]
    views: tuple[ShownView, ...]


@dataclass(frozen=True)
class ShownTable:
    """A table with its numbers written out; ``numeric`` are the columns that hold them."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...]


def write_feature_page(
    folder: Path,
    study: Study,
    space: Space,
    result: Result,
    report: PrivacyReport,
    *,
    files: Sequence[Path],
    day: date,
) -> Path:
    """Write `report.html` of a feature study, whatever its algorithm.

    Parameters
    ----------
    folder : Path
        Output folder; an earlier page is replaced.
    study : Study
    space : Space
    result : Result
        Loadings (or maps) over all views' entries are drawn view by view; tables are shown.
    report : PrivacyReport
    files : sequence of Path
        What `loadings.write_results` wrote.
    day : date
        Date that the page carries.

    Raises
    ------
    OutputError
        If the folder can't be written.
    """
    page = (
        environment()
        .get_template("features.html.j2")
        .render(
            **frame(study, report, day),
            grid=space,
            views=len(space.views),
            sources=", ".join(view.name for view in space.views),
            parameters=_parameters(study),
            numbers=result.numbers,
            verdict=feature_verdict(study, result, report),
            methods=feature_methods(study, space, report),
            reading=feature_reading(space, result, THRESHOLD),
            tables=[_shown_table(table) for table in result.tables.values()],
            cards=_cards(space, result),
            column=result.captions.column,
            files=[str(path) for path in files],
        )
    )
    return write_text(folder / NAME, page)


def _parameters(study: Study) -> dict[str, str]:
    """Parameters of the analysis that are set, with what belongs to views written out."""
    given = study.analysis.model_dump(mode="json", exclude_none=True)
    return {
        name: ", ".join(f"{view} {cell_text(each)}" for view, each in value.items())
        if isinstance(value, dict)
        else cell_text(value)
        for name, value in given.items()
        if value != {}
    }


def _cards(space: Space, result: Result) -> list[Card]:
    name = result.loadings or result.maps
    if not name:
        return []
    values = result.arrays[name]
    background = template_background() if _has_images(space) else None
    many, what = values.shape[1], result.captions.column
    cards = []
    for k in range(many):
        title = f"{what.capitalize()} {k + 1}" if many > 1 else what.capitalize()
        views = tuple(
            _view(space, view, part[:, k], title, background)
            for view, part in split_views(space, values)
        )
        cards.append(Card(k + 1, title, _facts(result, k + 1), views))
    return cards


def _has_images(space: Space) -> bool:
    return any(isinstance(view.view, FmriView) for view in space.views)


def _facts(result: Result, column: int) -> tuple[tuple[str, str], ...]:
    """What tables say of one column of the loadings."""
    found: list[tuple[str, str]] = []
    for table in result.tables.values():
        if table.columns[0] == result.captions.column:
            rows = [row for row in table.rows if row[0] == column]
            if len(rows) == 1:
                found += zip(table.columns[1:], map(cell_text, rows[0][1:]), strict=True)
    return tuple(found)


def _view(space: Space, view: ViewSpace, values: Array, title: str, background: Any) -> ShownView:
    name, heading = f"{title}, {view.name}", view_heading(view)
    if not isinstance(view.view, FmriView):
        pictures = draw_entries(view, values, name)
        return ShownView(heading, tuple(_shown(each) for each in pictures), "")
    scores, _ = robust_z(paint_view(space, view, values[:, None])[:, 0].astype(np.float64))
    peak = space.grid.coordinates[np.abs(scores).argmax()]
    drawn = draw(space.grid, scores, peak, THRESHOLD, background, name)
    pictures = [Picture(drawn.glass, drawn.glass_text), Picture(drawn.slices, drawn.slices_text)]
    beyond = int(np.count_nonzero(np.abs(scores) >= THRESHOLD))
    note = "" if beyond else f"No voxel of this map passes |z| = {THRESHOLD:g}."
    return ShownView(heading, tuple(_shown(each) for each in pictures), note)


def _shown(picture: Picture) -> ShownPicture:
    with Image.open(BytesIO(picture.png)) as image:
        height = round(image.height * 990 / image.width)
    return ShownPicture(inline(picture.png), picture.text, height)


def _shown_table(table: Table) -> ShownTable:
    rows = tuple(tuple(cell_text(cell) for cell in row) for row in table.rows)
    numeric = tuple(
        k
        for k in range(len(table.columns))
        if k and all(not isinstance(row[k], str) for row in table.rows)
    )
    return ShownTable(table.caption, table.columns, rows, numeric)
