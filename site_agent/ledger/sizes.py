"""Whether the number of persons that a site is about to tell would tell of a few of them.

Numbers of persons are public. Two of them tell of one person if the persons behind them differ by
that person only, whatever made them differ: a study's rules, a missing value, too few volumes, a
budget that an earlier study used up, a patient who came or went. So the site keeps the set behind
every number that it told, and compares.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from consortium.errors import PrivacyError
from site_agent.ledger.persons import Ids
from site_agent.policy.policy import refusal_sentence


@dataclass(frozen=True)
class Sizes:
    """Who is behind the numbers that a site would tell."""

    persons: tuple[str, ...]
    """Labels of who takes part."""
    whole: tuple[str, ...]
    """Labels of who would but for the study's rules and used-up budgets."""
    recordings: tuple[str, ...] = ()
    """Of unit timepoint, whose numbers of volumes are told, too: label and volumes of each."""
    chosen: bool = False
    """Whether the study leaves anybody out, or takes persons or recordings by rules."""
    samples: int = 0
    """The number of volumes that is told beside that of persons."""


class ReportedSet(NamedTuple):
    """A set behind a number that was told: of whose study, and its rows in the ledger."""

    study: str
    members: Ids


def check_sizes(sizes: Sizes, rows: Ids, reported: Iterable[ReportedSet], least: int) -> None:
    """Refuse a number of persons that tells of fewer than so many.

    Raises PrivacyError.

    Parameters
    ----------
    rows : array of int
        Rows of ``sizes.persons`` in the ledger; 0 for who is in no set.
    least : int
        The policy's ``fewest_subjects_chosen``.
    """
    here, left = len(sizes.persons), len(sizes.whole) - len(sizes.persons)
    apart = [(count_differing(rows, each.members), each.study) for each in reported]
    if check_apart(apart, least, "persons"):
        return
    if here < least and (left or sizes.chosen or apart):  # who was told of before is not here
        raise _refused(f"{here} participants by its rules", f"no fewer than {least}")
    if 0 < left < least:
        raise _refused(
            f"all but {left} participants by its rules",
            f"leaving out none or no fewer than {least}",
        )


def check_apart(apart: Sequence[tuple[int, str]], least: int, what: str) -> bool:
    """Refuse a set that differs by few from one that was told; whether just this one was told.

    Raises PrivacyError.

    Parameters
    ----------
    apart : sequence of (int, str)
        By how many it differs from each, and whose study that was told for.
    """
    if any(many == 0 for many, _ in apart):
        return True
    for many, study in apart:
        if many < least:
            said = f"a number of {what} that differ by {many} from those reported for '{study}'"
            raise _refused(said, f"none or no fewer than {least}")
    return False


def newcomers(rows: Ids, reported: Iterable[ReportedSet], least: int) -> NDArray[np.bool_]:
    """Who is left out since they are fewer than so many beside a set that was told.

    Then that set is told again, which tells nothing new. Where several sets lie so near nobody is:
    one person could decide which of them takes part.

    Returns
    -------
    array of bool, in the order of ``rows``
    """
    inside = [each.members for each in reported if np.isin(each.members, rows).all()]
    near = [members for members in inside if count_differing(rows, members) < least]
    if len(near) != 1:
        return np.zeros(len(rows), dtype=np.bool_)
    return np.asarray(~np.isin(rows, near[0]))


def count_differing(rows: Ids, members: Ids) -> int:
    """Return the number of participants that are in one of two sets only.

    Labels of one row, which the ledger charges as one, count once. A label without a row counts.
    """
    known = np.unique(rows[rows > 0])
    both = int(np.count_nonzero(np.isin(known, members)))
    return len(known) + int(np.count_nonzero(rows == 0)) + len(members) - 2 * both


def recordings_differ(rows: Ids, members: Ids) -> int:
    """Of how many persons recordings are in one of two sets only; each has one in either."""
    both = int(np.count_nonzero(np.isin(rows, members)))
    return max(len(rows), len(members)) - both


def _refused(asked: str, allowed: str) -> PrivacyError:
    return refusal_sentence("fewest_subjects_chosen", asked, allowed)
