"""The whole report in a few sentences: the surest findings by name, and figures at a glance."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from consortium.algorithms.base import Table
from consortium.algorithms.findings import WITHHELD, Cell, Finding
from consortium.base.formatting import count, number
from consortium.report.finished import Finished
from consortium.report.privacy_report import PrivacyReport
from consortium.report.sections.base import Facts, PageSection
from consortium.report.statement import UNITS
from consortium.views.column import Column

FEWEST_ROWS = 2
"""Results of which the page states how many are found."""
MOST_ROWS = 1_000
"""Rows from which on a table may list only some of its results."""
_NAMED = 5
"""Outcomes that are named in the first sentence."""
_EFFECTS = {"view", "entry", "effect", "found"}


def section(run: Finished) -> PageSection:
    """State the verdict, and numbers of components or views, sites, units and losses."""
    return PageSection(
        "verdict", {"verdict": verdict(run), "tiles": (*_found(run), *_figures(run))}
    )


def verdict(run: Finished) -> str:
    """Summarize a finished study in a few sentences at the top of its report."""
    report = run.report
    headline = run.result.captions.headline
    many = count(sum(site.units for site in report.sites), UNITS[report.unit])
    found = f"{many} at {count(len(report.sites), 'site')}"
    if run.components:
        found = f"{count(len(run.components.components), 'component')} from about {found}"
    else:
        found = f"About {found}"
    if run.space.views:
        found = f"{found}, described by {', '.join(view.name for view in run.space.views)}"
    named = outcomes_found(run)
    if named:
        headline = headline.replace(f"{run.result.captions.counted} ", "", 1)
    sentences = (*named, headline, f"{found}.", guarantee_text(report))
    return " ".join(filter(None, sentences))


def outcomes_found(run: Finished) -> tuple[str, ...]:
    """Name the outcomes of a contrast that differ, the surest first, with their effects.

    Empty if the run has no contrast, or its outcomes are the voxels of images.
    """
    for table in run.result.tables.values():
        if set(table.columns) >= _EFFECTS:
            rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
            few = len(rows) < MOST_ROWS and not {row["view"] for row in rows} & {*table.voxels_of}
            return (_sentence(run, rows),) if few and rows else ()
    return ()


def _sentence(run: Finished, rows: Sequence[Mapping[str, Cell]]) -> str:
    one, several = _word_for(run, {str(row["view"]) for row in rows})
    found = [row for row in rows if row["found"] == "yes"]
    many = f"{len(found)} of {len(rows):,} {several if len(rows) > 1 else one}"
    column = str(getattr(run.study.analysis, "contrasted", "")).partition("=")[0]
    levels = any(column == name for name, kind in _columns(run) if kind.levels)
    verb = "differ" if levels else f"change with '{column}'"
    if not found:
        return f"{many} {verb} detectably."
    found.sort(key=lambda row: -abs(float(str(row["t"]))))
    named = [f"{row['entry']} ({_signed(row['effect'])})" for row in found]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return f"{many} {verb}: {', '.join(named[:_NAMED])}{more}."


def _columns(run: Finished) -> Iterator[tuple[str, Column]]:
    """Yield all columns of tables that the study reads."""
    return (pair for view in run.study.features for pair in view.single_columns)


def _word_for(run: Finished, views: set[str]) -> tuple[str, str]:
    """Return what outcomes of these views are called, one and several of them."""
    spaces = [view for view in run.space.views if view.name in views]
    if not all(view.view.maps_file for view in spaces):
        return "outcome", "outcomes"
    if any(view.view.is_of_edges for view in spaces):
        return "pair of networks", "pairs of networks"
    return "network", "networks"


def _signed(value: Cell) -> str:
    text = number(float(str(value)))
    return text.replace("-", "−") if text.startswith("-") else f"+{text}"


def guarantee_text(report: PrivacyReport) -> str:
    """State the run's guarantees in one sentence of the report."""
    unit = UNITS[report.unit]
    if report.scheme == "none":
        return f"Nothing protects the {unit}s: this run added no noise."
    guarantees = report.guarantees
    many = report.colluding_sites
    helpers = f" with {count(many, 'colluding site')}" if many else ""
    promised = number(report.promised.epsilon)
    more = f" A ledger may contain up to ε = {promised}, as stated in the study."
    return (
        f"One {unit}'s privacy loss is at most "
        f"ε = {number(guarantees.coalition.epsilon)} against the centre{helpers}, and "
        f"ε = {number(guarantees.outsider.epsilon)} against an outsider."
        f"{more if promised != number(guarantees.coalition.epsilon) else ''}"
    )


def _found(run: Finished) -> Facts:
    """State how many results the page shows."""
    facts = []
    if run.components:
        many = len(run.components.components)
        seen = sum(map(run.components.is_found, range(many)))
        many_text = str(many) if seen == many else f"{seen} of {many} found"
        facts.append(("Components", many_text))
    drawn = [images for images in run.result.images.values() if images.drawn]
    maps = [images.is_found(k) for images in drawn for k in range(len(images.labels))]
    if len(maps) > 1:
        (word, *others) = {images.word for images in drawn}
        facts.append((f"Maps {'found' if others else word}", f"{sum(maps)} of {len(maps)}"))
    return tuple(facts) or rows_found(run.result.tables.values())


def rows_found(tables: Iterable[Table]) -> Facts:
    """Count the rows of tables whose result is found, or is reported where none is sought."""
    whole = [
        table
        for table in tables
        if not table.voxels_of and table.curve is None and len(table.rows) < MOST_ROWS
    ]
    states = [state for table in whole for row in table.rows if (state := _state(table, row))]
    if len(states) < FEWEST_ROWS:
        return ()
    if set(states) <= {"found", WITHHELD}:
        return (("Results reported", f"{states.count('found'):,} of {len(states):,}"),)
    return (("Results found", f"{states.count('found'):,} of {len(states):,}"),)


def _state(table: Table, row: tuple[Cell, ...]) -> str:
    """Return the state of a row's result; empty for a row without one."""
    if "found" in table.columns:
        return {"yes": "found", "no": "not found"}.get(
            str(row[table.columns.index("found")]), WITHHELD
        )
    return next((cell.state for cell in row if isinstance(cell, Finding)), "")


def _figures(run: Finished) -> Facts:
    report = run.report
    units = sum(site.units for site in report.sites)
    return (
        ("Sites", str(len(report.sites))),
        (f"{UNITS[report.unit].capitalize()}s", f"{units:,}"),
        ("ε against coalition", number(report.guarantees.coalition.epsilon)),
        ("ε against outsider", number(report.guarantees.outsider.epsilon)),
    )
