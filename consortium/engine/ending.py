"""The end of a run: the centre's last word, made and read in one place."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from consortium.engine.names import END, MOST_NOTICE, Names
from consortium.engine.queries import read_announcement
from consortium.errors import (
    ConsortiumError,
    PrivacyError,
    ProtocolError,
    RunCancelledError,
    SiteError,
    StudyError,
    printable,
)
from consortium.exchange.base import Exchange
from consortium.secagg import CENTRE, unseal

_COMPLETE, _ABORTED = "complete", "aborted"
_MOST_REASON = 2000
_TOLD = SiteError | ProtocolError | PrivacyError | StudyError | RunCancelledError
"""Errors whose sentence is public; of others, sites are told the code."""


@dataclass(frozen=True)
class Ended:
    """How a run ended."""

    outcome: str
    reason: str = ""
    """As the centre wrote them, fit to be printed."""

    @property
    def complete(self) -> bool:
        """Whether the run came to its result."""
        return self.outcome == _COMPLETE


def end_notice(error: ConsortiumError | None = None) -> bytes:
    """Make the body of the centre's last word; says nothing of anybody's data.

    Parameters
    ----------
    error : ConsortiumError, optional
        Why the run is given up; without it, it is complete.
    """
    if error is None:
        return json.dumps({"outcome": _COMPLETE}).encode()
    named = isinstance(error, _TOLD)
    reason = str(error)[:_MOST_REASON] if named else "the centre can't go on; its own log says why"
    return json.dumps({"outcome": _ABORTED, "code": error.code, "reason": reason}).encode()


def read_end(exchange: Exchange, run: str, keys: Mapping[str, bytes]) -> Ended | None:
    """Return how a run ended; None if it has not.

    Raises ProtocolError if what lies there is not the centre's last word. Raises ExchangeError if
    the exchange can't be read.

    Parameters
    ----------
    keys : mapping of str to bytes
        Public keys, the centre's among them.
    """
    message = exchange.get(Names(run).end(), MOST_NOTICE)
    if message is None:
        return None
    notice = unseal(message, keys, run=run, kind=END, limit=MOST_NOTICE, sender=CENTRE, round=0)
    said = read_announcement(notice.body)
    return Ended(printable(said.get("outcome")), printable(said.get("reason")))


def seems_complete(exchange: Exchange, run: str) -> bool:
    """Whether the centre's last word speaks of a result, unchecked: for people at the centre."""
    return b'"complete"' in (exchange.get(Names(run).end(), MOST_NOTICE) or b"")
