"""Runs of a study on the exchange, and those that this centre announced and did not end.

A centre that has lost its output folder finds them here. No other run is opened meanwhile.
"""

import re
from collections.abc import Mapping
from typing import Any

from consortium.engine.closing import end_notice, read_end
from consortium.engine.names import ANNOUNCEMENT, END, MOST_ANNOUNCEMENT, Names
from consortium.engine.queries import read_announcement
from consortium.errors import (
    OpenRunError,
    OversizedError,
    ProtocolError,
    RunCancelledError,
    StudyError,
)
from consortium.exchange.base import Exchange
from consortium.membership.keys import Identity
from consortium.secagg import CENTRE, OVERHEAD, seal, unseal


def runs_of(exchange: Exchange, study: str) -> list[str]:
    """Return the names of a study's runs on the exchange, in order."""
    found = (re.fullmatch(r"(.+)-[0-9]{4,9}", run) for run in exchange.children("runs"))
    return sorted((m[0] for m in found if m and m[1] == study), key=run_number)


def run_number(run: str) -> int:
    """Return the number at the end of a run's name on the exchange."""
    return int(run.rpartition("-")[2])


def read_announced(
    exchange: Exchange, run: str, keys: Mapping[str, bytes]
) -> Mapping[str, Any] | None:
    """Return a run's announcement; None if there is none that the centre signed with its key.

    Raises ExchangeError if the exchange can't be read.
    """
    most = MOST_ANNOUNCEMENT + OVERHEAD
    try:
        data = exchange.get(Names(run).study(), most)
        if data is None:
            return None
        opened = unseal(data, keys, run=run, kind=ANNOUNCEMENT, limit=most, sender=CENTRE, round=0)
        return read_announcement(opened.body)
    except (ProtocolError, OversizedError):  # another party wrote that
        return None


def open_runs(exchange: Exchange, study: str, keys: Mapping[str, bytes]) -> list[str]:
    """Return the runs of a study that this centre announced and that have not ended, in order.

    Raises ExchangeError if the exchange can't be read.
    """
    return [
        run
        for run in runs_of(exchange, study)
        if not _has_ended(exchange, run, keys) and read_announced(exchange, run, keys) is not None
    ]


def _has_ended(exchange: Exchange, run: str, keys: Mapping[str, bytes]) -> bool:
    try:
        return read_end(exchange, run, keys) is not None
    except (ProtocolError, OversizedError):  # signed by an earlier key or another party
        return True


def check_none_open(exchange: Exchange, study: str, keys: Mapping[str, bytes]) -> None:
    """Require that no run of a study is open on the exchange, before another is opened.

    Raises OpenRunError with a sentence that contains only public names.
    """
    found = open_runs(exchange, study, keys)
    if found:
        raise OpenRunError(
            f"{', '.join(found)} of the study '{study}' is open on the exchange. Give its output "
            f"folder, or resume it with 'consortium run --resume {found[-1]}' if that is lost, or "
            "end it with 'consortium end'."
        )


def end_run(exchange: Exchange, study: str, run: str, identity: Identity) -> None:
    """Announce to the sites that a run of a study is given up.

    Raises StudyError if it is not an open run of the study. Raises ExchangeError if the exchange
    can't be used.
    """
    found = open_runs(exchange, study, {CENTRE: identity.public})
    if run not in found:
        known = f"open is {', '.join(found)}" if found else "no run of it is open"
        raise StudyError(f"{run[:80]!r} is not an open run of the study '{study}': {known}.")
    message = seal(
        key=identity.key,
        run=run,
        sender=CENTRE,
        kind=END,
        round=0,
        body=end_notice(RunCancelledError("The coordinator ended this run.")),
    )
    exchange.put(Names(run).end(), message)
