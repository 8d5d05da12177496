"""The hospital's table of participants, and selection by the study's rules.

Each participant is judged only by their own record. The excluded participants and the reasons stay
at the site.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from consortium.errors import DataError, TableError
from consortium.study.data_section import DataSection, PersonRule
from site_agent.config import SiteConfig
from site_agent.data.bids import labels_in
from site_agent.data.survey import SkippedPerson, Without, excludes_nobody, in_turn
from site_agent.data.tsv import (
    Row,
    is_contradiction,
    is_nobodys,
    person_of,
    person_rows,
    rows_or_errors,
)
from site_agent.data.wording import PARTICIPANTS, PLAIN_TABLES, SiteTables, Wording, is_given
from site_agent.labels import Spellings

REASON = "reason"


def chosen_by(
    source: Path | Sequence[Path],
    data: DataSection,
    tables: SiteTables = PLAIN_TABLES,
    *,
    by_session: bool = False,
) -> Without:
    """Exclude participants who do not fit; with ``by_session`` those without a fitting session.

    Raises DataError when called if participants.tsv is missing or lacks a column.
    """
    if not data.persons:
        return excludes_nobody
    return partial(_not_chosen, source, data.persons, Wording(data.missing, tables), by_session)


def rows_that_fit(
    table: Path,
    rules: Mapping[str, PersonRule],
    wording: Wording,
    labels: Iterable[str],
    *,
    by_session: bool,
) -> dict[str, bool]:
    """Return whether each participant's line, or each session's, fits a study's rules.

    Raises DataError as `chosen_by`.
    """
    among = Spellings(labels, exact=wording.tables.exact_labels)
    lines = rows_or_errors(table, rules, wording, among=among, by_session=by_session)
    fits: dict[str, bool] = {}
    ambiguous: set[str] = set()
    for row, cells in lines:  # a damaged row with another's label excludes no participant
        if isinstance(cells, DataError):
            ambiguous |= {row} if is_contradiction(cells) else set()
        fit = not isinstance(cells, DataError) and meets_rules(cells, rules)
        fits[row] = fit or fits.get(row, False)
    return {row: fit and person_of(row) not in ambiguous for row, fit in fits.items()}


def left_out_here(table: Path | None, tables: SiteTables = PLAIN_TABLES) -> Without:
    """Return the function that excludes the participants of the hospital's own left-out table.

    A participant with a row is excluded, also if the row lacks a reason or there are several. It
    raises TableError if the table is missing or can't be read, or it is unclear whose a row is.

    Parameters
    ----------
    table : Path or None
        With columns participant_id and reason.
    tables : SiteTables
        Settings for the comparison of labels.
    """
    return excludes_nobody if table is None else partial(_named_in, table, tables)


def candidates(config: SiteConfig, data: DataSection) -> list[str]:
    """Return the labels of participants with a folder who fit the study and the hospital's table.

    Raises DataError as `chosen_by` and `left_out_here`.
    """
    labels = labels_in(config.dataset)
    tables = site_tables(config)
    chosen = chosen_by(config.dataset, data, tables)
    hook = in_turn(chosen, left_out_here(config.left_out, tables))
    out = {each.label for each in hook(labels)}
    return [label for label in labels if label not in out]


def site_tables(config: SiteConfig) -> SiteTables:
    """Return the settings of a site's own tables."""
    return SiteTables(
        config.aliases, config.participants, config.labels == "exact", config.accept_unoriented
    )


def everybody_in(folder: Path, tables: SiteTables = PLAIN_TABLES) -> Spellings:
    """Return the labels of all participants with a folder or a row in the table of participants.

    A study may choose another table that has only a few of them.
    """
    found = Spellings(labels_in(folder), exact=tables.exact_labels)
    with suppress(DataError):  # a table that can't be read adds no participant
        wording = Wording(tables=tables)
        for label, row in rows_or_errors(tables.participants_of(folder), (), wording):
            if not isinstance(row, DataError):
                found.spelled(label)
    return found


def read_left_out(table: Path, tables: SiteTables = PLAIN_TABLES) -> dict[str, str]:
    """Read the reasons of the hospital's left-out table, by the label as it is written there.

    Raises TableError as `left_out_here`.
    """
    wording = Wording(tables=SiteTables(exact_labels=tables.exact_labels))
    rows = person_rows(table, [REASON], wording, row_names=False)
    reasons = {label: row[REASON] for label, row in rows}
    for label, reason in reasons.items():
        if not is_given(reason):
            raise TableError(
                table,
                "reason",
                f"every row must have a reason, and that of sub-{label} is empty. Write why the "
                "participant is excluded.",
            )
    return reasons


def reasons_left_out(table: Path, tables: SiteTables = PLAIN_TABLES) -> dict[str, str]:
    """Read the hospital's left-out table for a run: participants, and their reasons verbatim.

    An error in the row of one participant excludes this participant. Raises TableError if
    the table is missing or can't be read, or it is unclear whose a row is.
    """
    wording = Wording(tables=SiteTables(exact_labels=tables.exact_labels))
    reasons: dict[str, str] = {}
    for label, row in rows_or_errors(table, [REASON], wording, row_names=False):
        if isinstance(row, DataError):
            if is_nobodys(label):
                raise row
            reasons.setdefault(label, "its row can't be read")
        else:
            reasons[label] = row[REASON] if is_given(row[REASON]) else "no reason is given"
    return reasons


def meets_rules(row: Row, rules: Mapping[str, PersonRule]) -> bool:
    """Return whether a participant's line fits all of a study's rules."""
    return all(rule.takes((row[name] or "").strip()) for name, rule in rules.items())


def participants_path(source: Path | Sequence[Path], tables: SiteTables = PLAIN_TABLES) -> Path:
    """Return the path of a data set's table of participants.

    Raises DataError if the data set is a list of images.
    """
    if isinstance(source, Path):
        return tables.participants_of(source)
    raise DataError(
        f"A list of images has no {PARTICIPANTS}, by which the study chooses participants. Give a "
        "BIDS data set."
    )


def _not_chosen(
    source: Path | Sequence[Path],
    rules: Mapping[str, PersonRule],
    wording: Wording,
    by_session: bool,
    labels: Sequence[str],
) -> Iterable[SkippedPerson]:
    table = participants_path(source, wording.tables)
    fits = dict[str, bool]()
    for row, fit in rows_that_fit(table, rules, wording, labels, by_session=by_session).items():
        fits[person_of(row)] = fit or fits.get(person_of(row), False)
    for label in labels:
        if label not in fits:
            why = f"{table} has no line for sub-{label}"
        elif not fits[label]:
            why = f"sub-{label} does not fit the study's rules for {', '.join(rules)}"
        else:
            continue
        yield SkippedPerson(label, "not-chosen", f"{why}; left out.")


def _named_in(table: Path, tables: SiteTables, labels: Sequence[str]) -> Iterable[SkippedPerson]:
    known = Spellings(exact=tables.exact_labels)
    read = reasons_left_out(table, tables)
    reasons = {known.key(label): reason for label, reason in read.items()}
    for label in labels:
        reason = reasons.get(known.key(label))
        if reason is not None:
            detail = f"sub-{label} is excluded by {table}: {reason}"
            yield SkippedPerson(label, "left-out-here", detail)
