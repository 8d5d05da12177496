"""Rows of units of privacy: sessions of participants, and families."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.units import Units
from consortium.errors import DataError
from consortium.study.spec import Study
from site_agent.data.survey import SkippedPerson
from site_agent.data.tsv import is_contradiction, person_of, row_of_session, rows_or_errors
from site_agent.data.wording import Wording, is_given
from site_agent.labels import SESSION, Spellings

Vector = NDArray[np.float64]
Found = tuple[Mapping[str, Vector], list[SkippedPerson]]


def sessions_in(folder: Path) -> list[str]:
    """Return the labels of all sessions with a folder of some participant, without ``ses-``."""
    homes = (path for path in folder.glob("sub-*/ses-*") if path.is_dir())
    return sorted({path.name.removeprefix("ses-") for path in homes})


def read_each_session(folder: Path, study: Study, read: Callable[[Study], Found]) -> Found:
    """Read a view of images session by session: vectors by participant and session.

    Raises DataError if no session has any.
    """
    vectors = dict[str, Vector]()
    skipped = list[SkippedPerson]()
    trouble = list[DataError]()
    for session in sessions_in(folder):
        of_session = study.data.model_copy(update={"session": session})
        try:
            found, lacking = read(study.model_copy(update={"data": of_session}))
        except DataError as error:
            trouble.append(error)
            continue
        vectors |= {row_of_session(label, session): each for label, each in found.items()}
        skipped += lacking
    if not vectors and trouble:
        raise trouble[0]
    complete = {person_of(row) for row in vectors}
    return vectors, [each for each in skipped if each.label not in complete]


def single_session_vectors(found: Mapping[str, Vector]) -> Found:
    """Return the vectors by participant, without those who have several sessions."""
    rows = rows_by_person([found])
    several = [person for person, own in rows.items() if len(own) > 1]
    detail = "has several folders of sessions, and a participant must not count as two. Leave one."
    skipped = [SkippedPerson(each, "unusable", f"sub-{each} {detail}") for each in several]
    return {person: found[own[0]] for person, own in rows.items() if len(own) == 1}, skipped


def rows_by_person(views: Sequence[Collection[str]]) -> dict[str, list[str]]:
    """Return the rows that all views have, by participant, in the order of their sessions.

    A view's row of a participant without a session counts for all their sessions.
    """
    by_view = [set(rows) for rows in views]
    found = defaultdict[str, list[str]](list)
    everything = set().union(*by_view)
    of_sessions = {person_of(row) for row in everything if SESSION in row}
    for row in sorted(everything, key=_in_order):
        person = person_of(row)
        alone = row == person and person in of_sessions
        if not alone and all({row, person} & own for own in by_view):
            found[person].append(row)
    return found


def _in_order(row: str) -> list[tuple[int, str]]:
    """Return a key that sorts the sessions 2 and 10 by their numbers, of any number of digits."""
    parts = re.split(r"(\d+)", row)
    plain = [part.lstrip("0") if part.isdecimal() else part for part in parts]
    return [
        (len(own) if part.isdecimal() else 0, own) for part, own in zip(parts, plain, strict=True)
    ]


def families_of(
    folder: Path, units: Units, wording: Wording, persons: Collection[str]
) -> tuple[dict[str, str], list[SkippedPerson]]:
    """Return the unit of each participant, and the participants whose row can't be read.

    Raises TableError if participants.tsv is missing or lacks the column.

    Returns
    -------
    units : dict of str to str
        A family's name, or the participant's own label, by label.
    skipped : list of SkippedPerson
        Their family is unknown, so they can't take part.
    """
    own = {label: f"sub-{label}" for label in persons}
    if units.family is None:
        return own, []
    own_words = wording._replace(missing=())  # a study's codes don't apply to families
    table = wording.tables.participants_of(folder)
    among = Spellings(persons, exact=wording.tables.exact_labels)
    troubled: dict[str, DataError] = {}
    found: set[str] = set()
    ambiguous: set[str] = set()  # participants in two families
    for label, cells in rows_or_errors(table, [units.family], own_words, among=among):
        if isinstance(cells, DataError):
            troubled[label] = cells
            ambiguous |= {label} if is_contradiction(cells) else set()
            continue
        found.add(label)
        family = _as_read(cells[units.family])
        if is_given(family):
            own[label] = f"family {family}"
    return own, [
        SkippedPerson(label, "unusable", str(error))
        for label, error in troubled.items()
        if label not in found or label in ambiguous
    ]


def _as_read(text: str) -> str:
    """Return a name in one normal form, however its letters are typed and coded."""
    shown = "".join(filter(str.isprintable, unicodedata.normalize("NFKC", text).casefold()))
    return " ".join(shown.split())


def group_rows(
    rows: Mapping[str, Sequence[str]], family: Mapping[str, str]
) -> dict[str, list[str]]:
    """Return the rows of every unit, in the order of their labels; units by their first row."""
    units = defaultdict[str, list[str]](list)
    for person in sorted(rows):
        units[family[person]] += rows[person]
    return dict(sorted(units.items(), key=lambda unit: unit[1]))


def stack_rows(
    units: Sequence[Sequence[str]], most: int, vector: Callable[[str], Vector]
) -> Vector:
    """Return the vectors of every unit of privacy's rows, one below the other: K D x U.

    Parameters
    ----------
    units : sequence of sequence of str
        Names of the rows of each of U units.
    most : int
        K. Further rows of a unit are ignored. Rows that a unit lacks are NaN.
    vector : callable
        Returns the vector of a row by its name, length D.
    """
    size = len(vector(units[0][0]))
    table = np.full((most, size, len(units)), np.nan)
    for place, rows in enumerate(units):
        for number, row in enumerate(rows[:most]):
            table[number, :, place] = vector(row)
    return table.reshape(most * size, -1)


def unit_sentences(
    units: Units, members: Sequence[Sequence[str]], persons: int, unused: int
) -> Iterator[str]:
    """Return sentences on the numbers of participants and units, for a site's own staff."""
    used = sum(map(len, members)) - unused
    by = "" if units.family is None else f" by column '{units.family}'"
    yield (
        f"{persons} participants with {used} rows are {len(members)} {units.named}{by}, each of "
        "which is protected, charged and counted as one."
    )
    if unused:
        yield (
            f"{unused} rows are beyond the first {units.most_rows} of their unit and not used "
            "(analysis.units.most_rows)."
        )
