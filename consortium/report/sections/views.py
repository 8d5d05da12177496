"""The findings of a study of participants, column by column, in each of its views."""

from collections.abc import Container

import numpy as np

from consortium.algorithms.base import Array
from consortium.algorithms.findings import NOT_DISTINCT
from consortium.report.finished import Finished
from consortium.report.sections.base import Card, Facts, PageSection, cards_section
from consortium.report.tables import cell_text
from consortium.report.views import REPORTS, split_views

MOST = 12
"""Columns of a table that are shown for a participant."""
SELECTED = "Values that don't exceed noise and chance are not drawn."


def section(run: Finished) -> PageSection | None:
    """Draw each column that was found in every view that has a part in it."""
    if run.loadings is None:
        return None
    loadings = run.loadings
    if run.result.drawn:
        loadings = np.where(run.result.arrays[run.result.drawn], loadings, 0.0)
    sets = {images.view for images in run.result.images.values() if images.drawn}
    if sets:  # they have cards of their own
        cards = (_card(run, loadings, k, sets) for k in range(loadings.shape[1]))
        return cards_section(tuple(card for card in cards if card.drawings))
    return cards_section(tuple(_card(run, loadings, k) for k in range(loadings.shape[1])))


def _card(run: Finished, loadings: Array, k: int, without: Container[str] = ()) -> Card:
    captions = run.result.captions
    what = captions.column
    name = f"{what.capitalize()} {k + 1}" if loadings.shape[1] > 1 else what.capitalize()
    facts = _facts(run, k + 1)
    if not captions.is_found(k):
        return Card(f"{what}-{k + 1}", name, facts, note=NOT_DISTINCT)
    views = [(view, values[:, k]) for view, values in split_views(run.space, loadings)]
    if captions.persons:
        facts_of = [
            tuple(REPORTS[view.view.source].person(view, values))[:MOST] for view, values in views
        ]
        facts += tuple(fact for each in facts_of for fact in each)
        views = [each for each, words in zip(views, facts_of, strict=True) if not words]
    drawings = tuple(
        REPORTS[view.view.source]
        .draw(run.space, view, values, f"{name}, {view.name}")
        ._replace(heading=view.view.heading)
        for view, values in views
        if values.any() and view.name not in without
    )
    nothing = "" if drawings or captions.persons else "It is zero in every view."
    return Card(f"{what}-{k + 1}", name, facts, drawings, SELECTED if run.result.drawn else nothing)


def _facts(run: Finished, column: int) -> Facts:
    """Return the rows of tables about one column of the loadings."""
    found: list[tuple[str, str]] = []
    for table in run.result.tables.values():
        if table.columns[0] == run.result.captions.column:
            rows = [row for row in table.rows if row[0] == column]
            if len(rows) == 1:
                found += zip(table.columns[1:], map(cell_text, rows[0][1:]), strict=True)
    return tuple(found)
