"""The end of a run: its last messages, and the centre's last word.

The last messages hold digests and names only, and follow from messages that are on the exchange
anyway: what the centre released in all, what sites found, what is published.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

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
from consortium.secagg.messages import Bytes32

_COMPLETE, _ABORTED = "complete", "aborted"
_MOST_REASON = 2000
_TOLD = SiteError | ProtocolError | PrivacyError | StudyError | RunCancelledError
"""Errors whose sentence is public; of others, sites are told the code."""
DIGEST = 64  # bytes that one digest takes in a message, at most
MOST_PUBLISHED = 8 << 20


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


class _Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of a message, in MessagePack."""


class Closing(_Body, frozen=True, forbid_unknown_fields=True):
    """What the centre says after the last round.

    ``announcement`` is the SHA-256 of the announcement's body, ``keys`` that of the bundle of
    keys, ``plan`` the digest of the plan, and ``records`` the SHA-256 of each round's release.
    ``platform`` says where the analysis was computed.
    """

    announcement: Bytes32
    keys: Bytes32
    plan: Bytes32
    records: tuple[Bytes32, ...]
    platform: dict[str, str]


class Attestation(_Body, frozen=True, forbid_unknown_fields=True):
    """What a site says of a run that it took part in; of its data it says nothing.

    The first fields are the closing's, as the site itself has them. ``checked`` are the rounds
    that it added again and found as released, ``refuted`` those that are not what was signed,
    each with a code, ``missed`` those that it contributed to and that list it as lost.
    ``earlier`` are the study's other runs in its ledger.
    """

    announcement: Bytes32
    keys: Bytes32
    plan: Bytes32
    records: tuple[Bytes32, ...]
    checked: tuple[int, ...]
    refuted: tuple[tuple[int, str], ...]
    missed: tuple[int, ...]
    earlier: tuple[str, ...]


class Published(_Body, frozen=True, forbid_unknown_fields=True):
    """Every file of the output folder with its SHA-256."""

    files: dict[str, Bytes32]


_BodyType = TypeVar("_BodyType", bound=_Body)


def encode_closing(body: _Body) -> bytes:
    """Encode a body; the same value always gives the same bytes."""
    return msgspec.msgpack.encode(body, order="sorted")


def decode_closing(kind: type[_BodyType], data: bytes, sender: str) -> _BodyType:
    """Decode a body; raises ProtocolError if it is malformed; it names the ``sender``."""
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        what = kind.__name__.lower()
        raise ProtocolError(f"The {what} of {sender} can't be read; update it.") from error


def most_closing(rounds: int) -> int:
    """Most bytes of the closing, or of an attestation, of a run of so many rounds."""
    return (1 << 16) + 2 * rounds * DIGEST


def release_record(release: bytes) -> bytes:
    """ρ: SHA-256 of a round's release as it was posted."""
    return hashlib.sha256(release).digest()


def attesting(sites: Sequence[str], colluding: int, answers: int) -> int:
    """Attestations that no second result of a run can have beside these.

    Of two sets of so many sites one honest site is in both, and a site attests once.

    Parameters
    ----------
    colluding : int
        S_C.
    answers : int
        `Participants.answers`; 0 in a run without masks.
    """
    return max(answers, (len(sites) + colluding) // 2 + 1)


def round_checkers(sites: Sequence[str], count: int, number: int) -> tuple[str, ...]:
    """Sites that add a round again, which moves on through the roster from round to round."""
    return tuple(sites[(number * count + place) % len(sites)] for place in range(count))
