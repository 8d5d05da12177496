"""A site's exchange of answers with its neighbours in a run.

It also contains the public signed manifest of the neighbours' answers that a site received.

A neighbour's answer is listed in the manifest of the round that it was first used for, and again
until such a manifest is released. So a centre that leaves a site out of a round removes none of its
evidence.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.algorithms.base import Array, NeighbourAnswers
from consortium.engine.neighbour_answers import (
    answers_neighbours,
    broadcast_limit,
    collect_answers,
    encode_broadcast,
    read_broadcast,
)
from consortium.errors import OversizedError, ProtocolError
from consortium.secagg import OVERHEAD, contribution, envelope, messages, seal
from consortium.secagg.envelope import read_unchecked
from consortium.secagg.keystream import Ring
from consortium.secagg.messages import BROADCAST, Heard
from consortium.secagg.release import read_release
from consortium.study.plan import Plan, Stage
from site_agent.run.outbox import Outbox, Outgoing
from site_agent.run.setup import JoinedRun

_LATEST = 10
"""Number of rounds in which missing answers are looked for again: each is a read."""


@dataclass(frozen=True)
class _Asked:
    """A past round whose answers are sent to neighbours."""

    number: int
    context: bytes
    stage: Stage


@dataclass(eq=False)
class Neighbours:
    """A site's exchange with its neighbours in one run.

    Received answers are kept in memory only, because after a restart they are still on the
    exchange. A malformed answer counts as a missing one. So its sender can neither mislead the
    others nor delay them more than by sending none.
    """

    plan: Plan
    site: int
    """Index of this site."""
    identity: Ed25519PrivateKey
    outbox: Outbox
    log: Callable[[str], None]
    """Receives a sentence for this site's people."""
    _asked: list[_Asked] = field(default_factory=list, init=False)
    _known: dict[tuple[int, int], Array] = field(default_factory=dict, init=False)
    _heard: dict[tuple[int, str], Heard] = field(default_factory=dict, init=False)
    _unsound: set[tuple[int, int]] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._searched = 0

    def outgoing(self, number: int, context: bytes, vector: Ring, bits: int) -> Outgoing:
        """Make the open copy of this site's answer."""
        name = self._name(self.site)
        body = encode_broadcast(context, vector, bits)
        message = seal(
            key=self.identity,
            run=self.outbox.names.run,
            sender=name,
            kind=BROADCAST,
            round=number,
            body=body,
        )
        return self._outgoing(number, message)

    def kept(self, number: int) -> Outgoing | None:
        """Return the open copy that was stored before, or None."""
        message = self.outbox.stored(_stored(number))
        return None if message is None else self._outgoing(number, message)

    def note(self, number: int, stage: Stage, context: bytes) -> None:
        """Remember a queried round."""
        if answers_neighbours(stage):
            self._asked.append(_Asked(number, context, stage))

    @property
    def heard(self) -> Sequence[Heard]:
        """Every neighbour's answer that was used so far, as its sender signed it."""
        return [self._heard[key] for key in sorted(self._heard)]

    def collect(self, stage: Stage) -> NeighbourAnswers:
        """Collect the answers of this site and its neighbours in all earlier rounds.

        A missing answer is looked for again the next times. Raises ProtocolError if this site's
        stored answer is not the one that it sent. Raises ExchangeError if the exchange can't be
        read.
        """
        within = (self.site, *stage.release.neighbours[self.site])
        for asked in self._asked[max(0, self._searched - _LATEST) :]:
            for other in within:
                if (asked.number, other) not in self._known:
                    self._fetch(asked, other)
        self._searched = len(self._asked)
        rounds = [
            {s: self._known[a.number, s] for s in within if (a.number, s) in self._known}
            for a in self._asked
        ]
        return collect_answers(self.plan, stage, self.site, rounds)

    def _fetch(self, asked: _Asked, other: int) -> None:
        limit = broadcast_limit(asked.stage)
        key = (asked.number, other)
        if other == self.site:
            message = self.outbox.stored(_stored(asked.number))
            if message is not None:
                self._known[key] = self._read(message, asked, other)
            return
        try:
            message = self.outbox.peek(self._place(asked.number, other), limit + OVERHEAD)
            if message is not None:
                self._known[key] = self._read(message, asked, other)
                answer = read_unchecked(message)
                name = self._name(other)
                digest = hashlib.sha256(answer.body).digest()
                heard = Heard(name, asked.number, digest, answer.signature)
                self._heard[asked.number, name] = heard
        except (ProtocolError, OversizedError) as error:
            if key not in self._unsound:
                self._unsound.add(key)
                self.log(
                    f"The message on the exchange as {self._name(other)}'s answer to round "
                    f"{asked.number} is ignored: {error}"
                )

    def _read(self, message: bytes, asked: _Asked, other: int) -> Array:
        limit = broadcast_limit(asked.stage)
        name = self._name(other)
        body = self.outbox.signed(message, BROADCAST, asked.number, limit, sender=name)
        return read_broadcast(body, asked.context, asked.stage.mechanism, other)

    def _outgoing(self, number: int, message: bytes) -> Outgoing:
        return Outgoing(self._place(number, self.site), _stored(number), message)

    def _place(self, number: int, site: int) -> str:
        return self.outbox.names.round(number, BROADCAST, self._name(site))

    def _name(self, site: int) -> str:
        return self.plan.study.sites[site]


def _stored(number: int) -> str:
    return f"{number}/{BROADCAST}"


@dataclass(eq=False)
class NeighbourEvidence:
    """The manifests of one site in one run that concern its neighbours."""

    name: str
    """The site's."""
    joined: JoinedRun
    outbox: Outbox
    _released: set[Heard] = field(default_factory=set, init=False)
    _last: tuple[int, Stage, tuple[Heard, ...]] | None = field(default=None, init=False)

    def due(self, stage: Stage, heard: Sequence[Heard]) -> tuple[Heard, ...]:
        """Return the entries of the next manifest, of all answers ever ``heard``, the oldest first.

        Raises ExchangeError if the exchange can't be read.
        """
        self._settle()
        fresh = [each for each in heard if each not in self._released]
        return tuple(fresh[: stage.heard])

    def listed(self, number: int, stage: Stage, message: bytes | memoryview) -> None:
        """Remember the entries of the manifest of a contribution to a round."""
        self._settle()
        signed = contribution.split_message(message, len(message)).manifest
        body = messages.decode(messages.Manifest, envelope.read_unchecked(signed).body, self.name)
        if body.heard:
            self._last = number, stage, body.heard

    def _settle(self) -> None:
        """Check whether the centre's release contains the last list."""
        if self._last is None:
            return
        number, stage, heard = self._last
        if self._is_released(number, stage):
            self._released |= set(heard)
        self._last = None

    def _is_released(self, number: int, stage: Stage) -> bool:
        sizes = self.joined.sizes
        sites = len(self.joined.context.study.sites)
        limit = sizes.release(stage.released_bytes(sites), stage.heard)
        try:
            place = self.outbox.names.round(number, messages.RELEASE)
            message = self.outbox.peek(place, limit)
            if message is None:
                return False
            release = read_release(self.joined.party.session, number, message)
        except (ProtocolError, OversizedError):  # not the centre's: it is ignored
            return False
        return self.name in release.survivors
