"""The analysis once more, from what was released: same questions, same result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from consortium.algorithms.base import Query, Result
from consortium.engine.closing import own_platform
from consortium.engine.names import QUERY
from consortium.engine.queries import decode_query, encode_query
from consortium.engine.session import Session
from consortium.errors import ConsortiumError, ContradictionError
from consortium.verification.agreement import Agreement
from consortium.verification.record import place, round_file
from consortium.verification.rounds import Released
from consortium.verification.verdict import Verdict

SLACK = 1e-6
"""Of the norm: what libraries and processors may differ by."""


def replay(
    agreement: Agreement,
    rounds: Sequence[Released],
    fetch: Callable[[str, int], bytes],
    platform: Mapping[str, str],
    verdict: Verdict,
) -> tuple[Session, Result | None]:
    """Feed the releases to the analysis.

    Parameters
    ----------
    agreement : Agreement
    rounds : sequence of Released
    fetch : callable
        Returns a public array, given its digest and size.
    platform : mapping of str to str
        Where the centre computed.
    verdict : Verdict
        Is told of deviations.

    Returns
    -------
    Session, Result or None
        None if the analysis asks for more rounds.

    Raises
    ------
    ContradictionError
        If a query is not the one that the analysis asks, or a release breaks the promise.
    """
    session = Session(agreement.plan)
    for done in rounds:
        where = place(round_file(done.number, QUERY))
        if session.pending is None:
            raise ContradictionError(where, "the analysis was finished before this round.")
        try:
            _compare(where, session.pending, done.query, fetch, platform, verdict)
            values = done.stage.mechanism.lattice.decode(done.kept.ring)
            session.accept(values, done.kept.survivors)
        except ContradictionError:
            raise
        except ConsortiumError as error:
            raise ContradictionError(where, str(error)) from error
    return session, session.result


def _compare(
    where: str,
    due: Query,
    stored: bytes,
    fetch: Callable[[str, int], bytes],
    platform: Mapping[str, str],
    verdict: Verdict,
) -> None:
    if encode_query(due)[0] == stored:
        return
    asked = decode_query(stored, fetch)
    off = _distance(due, asked)
    if off > SLACK:
        differs(
            where,
            "it doesn't follow from what was released before",
            platform,
            verdict,
        )
    else:
        verdict.tell(where, f"deviates by {off:.1g} of the norm from what this machine computes.")


def differs(where: str, what: str, platform: Mapping[str, str], verdict: Verdict) -> None:
    """Tell of a number that can't be had again: it is false, or another machine's.

    Raises
    ------
    ContradictionError
        On the platform where it was computed.
    """
    if dict(platform) == dict(own_platform()):
        raise ContradictionError(where, f"{what}.")
    at = ", ".join(f"{name} {value}" for name, value in sorted(platform.items()) if value)
    verdict.leave_open(where, f"{what} on this machine; check it where it was computed ({at}).")


def _distance(due: Query, asked: Query) -> float:
    """Largest relative difference of two queries' arguments; infinite if they differ otherwise."""
    same = (due.stage, due.statistic) == (asked.stage, asked.statistic)
    if not same or due.arguments.keys() != asked.arguments.keys():
        return np.inf
    return max((_apart(due.arguments[n], asked.arguments[n]) for n in due.arguments), default=0.0)


def _apart(one: object, other: object) -> float:
    if isinstance(one, str) or isinstance(other, str):
        return 0.0 if one == other else np.inf
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    return relative(first, second)


def relative(first: np.ndarray, second: np.ndarray) -> float:
    """Norm of a difference over the larger norm; infinite for other shapes."""
    if first.shape != second.shape:
        return np.inf
    size = max(float(np.linalg.norm(first)), float(np.linalg.norm(second)))
    gap = float(np.linalg.norm(first - second))
    return gap / size if size else 0.0
