"""Whom a study takes of a data set: by the study's rules, and by the hospital's own table.

Each person is judged by their own record alone; who is left out, and why, stays at the site.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from consortium.errors import DataError
from consortium.study.data_section import DataSection, PersonRule
from site_agent.config import SiteConfig
from site_agent.data.bids import labels_in
from site_agent.data.survey import SkippedPerson, Without, excludes_nobody, in_turn
from site_agent.data.tsv import Row, person_of, person_rows
from site_agent.data.wording import NO_ALIASES, Aliases, Wording

PARTICIPANTS = "participants.tsv"
REASON = "reason"


def chosen_by(
    source: Path | Sequence[Path],
    data: DataSection,
    aliases: Aliases = NO_ALIASES,
    *,
    by_session: bool = False,
) -> Without:
    """Leave out whom a study does not take: with ``by_session`` who has no session that fits.

    Raises DataError when asked: if there is no participants.tsv, or it lacks a column.
    """
    if not data.persons:
        return excludes_nobody
    return partial(_not_chosen, source, data.persons, Wording(data.missing, aliases), by_session)


def rows_that_fit(
    table: Path,
    rules: Mapping[str, PersonRule],
    wording: Wording,
    labels: Iterable[str],
    *,
    by_session: bool,
) -> dict[str, bool]:
    """Whether each line of some persons fits a study's rules, by person, or person and session.

    Raises DataError as `chosen_by`.
    """
    lines = person_rows(table, rules, wording, among=set(labels), by_session=by_session)
    return {row: meets_rules(cells, rules) for row, cells in lines}


def left_out_here(table: Path | None) -> Without:
    """Leave out whom the hospital's own table names, with the reason that stands there.

    Raises DataError when asked: if the table is not there, or a line lacks its person or reason.
    """
    return excludes_nobody if table is None else partial(_named_in, table)


def candidates(config: SiteConfig, data: DataSection) -> list[str]:
    """Labels of who has a folder and is in a study by its rules and the hospital's own table.

    Raises DataError as `chosen_by` and `left_out_here`.
    """
    labels = labels_in(config.dataset)
    chosen = chosen_by(config.dataset, data, config.aliases)
    hook = in_turn(chosen, left_out_here(config.left_out))
    out = {each.label for each in hook(labels)}
    return [label for label in labels if label not in out]


def everybody_in(folder: Path) -> set[str]:
    """Labels of who has a folder in a data set, or a line in its table of persons.

    A study may name another table, of few: that they are few is its choice.
    """
    found = set(labels_in(folder))
    with suppress(DataError):  # a table that can't be read adds nobody
        found.update(label for label, _ in person_rows(folder / PARTICIPANTS, ()))
    return found


def read_left_out(table: Path) -> dict[str, str]:
    """Read the hospital's own table: reasons, by label without ``sub-``.

    Raises DataError as `left_out_here`.
    """
    reasons = {label: (row[REASON] or "").strip() for label, row in person_rows(table, [REASON])}
    for label, reason in reasons.items():
        if reason in ("", "n/a"):
            raise DataError(f"{table}: sub-{label} has no reason; write why they are left out.")
    return reasons


def meets_rules(row: Row, rules: Mapping[str, PersonRule]) -> bool:
    """Whether a person's line fits all of a study's rules."""
    return all(rule.takes((row[name] or "").strip()) for name, rule in rules.items())


def participants_path(source: Path | Sequence[Path]) -> Path:
    """Where a data set keeps its table of persons; raises DataError if it is a list of images."""
    if isinstance(source, Path):
        return source / PARTICIPANTS
    raise DataError(
        f"A list of images has no {PARTICIPANTS}, by which the study chooses participants; give a "
        "BIDS data set."
    )


def _not_chosen(
    source: Path | Sequence[Path],
    rules: Mapping[str, PersonRule],
    wording: Wording,
    by_session: bool,
    labels: Sequence[str],
) -> Iterable[SkippedPerson]:
    table, fits = participants_path(source), dict[str, bool]()
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


def _named_in(table: Path, labels: Sequence[str]) -> Iterable[SkippedPerson]:
    reasons = read_left_out(table)
    for label in labels:
        if label in reasons:
            detail = f"sub-{label} is left out by {table}: {reasons[label]}"
            yield SkippedPerson(label, "left-out-here", detail)
