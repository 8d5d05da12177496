"""The end of a run: its last messages, and the centre's final message.

The last messages contain only digests and names, and follow from messages that are on the exchange
anyway: the centre's releases, the sites' findings, the published files.
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

_COMPLETE = "complete"
_ABORTED = "aborted"
_MOST_REASON = 2000
_TOLD = SiteError | ProtocolError | PrivacyError | StudyError | RunCancelledError
"""Errors whose sentence is public; of others, sites receive the code."""
DIGEST = 64  # bytes that one digest takes in a message, at most
MOST_PUBLISHED = 8 << 20


@dataclass(frozen=True)
class Ended:
    """How a run ended: published, failed or cancelled."""

    outcome: str
    reason: str = ""
    """As the centre wrote them, fit to be printed."""

    @property
    def complete(self) -> bool:
        """Whether the run came to its result."""
        return self.outcome == _COMPLETE


def end_notice(error: ConsortiumError | None = None) -> bytes:
    """Make the body of the centre's final message, without any site's data.

    Parameters
    ----------
    error : ConsortiumError, optional
        Why the run is aborted. Without it, the run is complete.
    """
    if error is None:
        return json.dumps({"outcome": _COMPLETE}).encode()
    named = isinstance(error, _TOLD)
    reason = (
        str(error)[:_MOST_REASON] if named else ("the centre can't continue; its own log says why")
    )
    return json.dumps({"outcome": _ABORTED, "code": error.code, "reason": reason}).encode()


def read_end(exchange: Exchange, run: str, keys: Mapping[str, bytes]) -> Ended | None:
    """Return how a run ended, from its messages; None if it has not.

    Raises ProtocolError if the message is not the centre's final one. Raises ExchangeError if the
    exchange can't be read.

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
    """Return whether the centre's final message announces a result, unchecked, for its users."""
    return b'"complete"' in (exchange.get(Names(run).end(), MOST_NOTICE) or b"")


class _Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of a message, in MessagePack."""


class Closing(_Body, frozen=True, forbid_unknown_fields=True):
    """The centre's message after the last round.

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
    """A site's attestation of a run in which it took part, without its data.

    The first fields are the closing's, as the site itself has them. ``checked`` are the rounds
    whose sums it confirmed, ``refuted`` those that differ from the signed contributions, each with
    a code, ``missed`` those that it contributed to and that list it as lost. ``earlier`` are the
    study's other runs in its ledger.
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
    """Message of a run's end: every file of the output folder with its SHA-256."""

    files: dict[str, Bytes32]


_BodyType = TypeVar("_BodyType", bound=_Body)


def encode_closing(body: _Body) -> bytes:
    """Encode a body; the same value always gives the same bytes."""
    return msgspec.msgpack.encode(body, order="sorted")


def decode_closing(kind: type[_BodyType], data: bytes, sender: str) -> _BodyType:
    """Decode a body; raises ProtocolError if it is malformed. It names the ``sender``."""
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        what = kind.__name__.lower()
        raise ProtocolError(f"The {what} of {sender} can't be read. Update {sender}.") from error


def most_closing(rounds: int) -> int:
    """Return the maximum bytes of the closing, or of an attestation, of a run."""
    return (1 << 16) + 2 * rounds * DIGEST


def release_record(release: bytes) -> bytes:
    """Return ρ, the SHA-256 of a round's release as it was posted."""
    return hashlib.sha256(release).digest()


def attesting(sites: Sequence[str], colluding: int, answers: int) -> int:
    """Return the number of attestations that excludes a second result of the run.

    Two sets of this number of sites have an honest site in common, and a site attests once.

    Parameters
    ----------
    colluding : int
        S_C.
    answers : int
        `Participants.answers`; 0 in a run without masks.
    """
    return max(answers, (len(sites) + colluding) // 2 + 1)


def round_checkers(sites: Sequence[str], count: int, number: int) -> tuple[str, ...]:
    """Return the sites that add a round again, in turn through the roster."""
    return tuple(sites[(number * count + place) % len(sites)] for place in range(count))
