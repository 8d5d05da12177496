"""What a site tells its neighbours in a run, and what it hears of them."""

from __future__ import annotations

from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.algorithms.base import Array, Heard
from consortium.engine.hearing import (
    BROADCAST,
    broadcast_limit,
    encode_broadcast,
    hear,
    read_broadcast,
    speaks,
)
from consortium.plan import Plan, Stage
from consortium.secagg import seal
from site_agent.post import Letter, Post


@dataclass(frozen=True)
class _Asked:
    """A past round whose answers are told to neighbours."""

    number: int
    context: bytes
    stage: Stage


class Neighbours:
    """A site's neighbours in one run.

    What was heard is kept in memory only: after a restart it lies on the exchange still.

    Parameters
    ----------
    run : str
    plan : Plan
    site : int
        Index of this site.
    identity : Ed25519PrivateKey
    post : Post
    """

    def __init__(
        self, run: str, plan: Plan, site: int, identity: Ed25519PrivateKey, post: Post
    ) -> None:
        self._run, self._plan, self._site = run, plan, site
        self._identity, self._post = identity, post
        self._asked: list[_Asked] = []
        self._known: dict[tuple[int, int], Array] = {}

    def letter(self, number: int, context: bytes, vector: Array) -> Letter:
        """Make the open copy of this site's answer."""
        name, body = self._name(self._site), encode_broadcast(context, vector)
        message = seal(self._identity, self._run, name, BROADCAST, number, body)
        return self._letter(number, message)

    def kept(self, number: int) -> Letter | None:
        """Return the open copy that was stored before, or None."""
        message = self._post.stored(_stored(number))
        return None if message is None else self._letter(number, message)

    def note(self, number: int, stage: Stage, context: bytes) -> None:
        """Remember that a round was asked."""
        if speaks(stage):
            self._asked.append(_Asked(number, context, stage))

    def heard(self, stage: Stage) -> Heard:
        """Collect what this site and its neighbours answered in all rounds before.

        Whose answer is not there is looked for again the next time.

        Raises
        ------
        ProtocolError
            If an answer is not its site's, or to another question.
        ExchangeError
            If the exchange can't be read.
        """
        within = (self._site, *stage.release.hears[self._site])
        for asked in self._asked:
            for other in within:
                if (asked.number, other) not in self._known:
                    self._fetch(asked, other)
        rounds = [
            {s: self._known[a.number, s] for s in within if (a.number, s) in self._known}
            for a in self._asked
        ]
        return hear(self._plan, stage, self._site, rounds)

    def _fetch(self, asked: _Asked, other: int) -> None:
        limit = broadcast_limit(asked.stage)
        if other == self._site:
            message = self._post.stored(_stored(asked.number))
        else:
            message = self._post.peek(self._place(asked.number, other), limit)
        if message is None:
            return
        name = self._name(other)
        body = self._post.signed(message, BROADCAST, asked.number, limit, sender=name)
        mechanism = asked.stage.mechanism
        self._known[asked.number, other] = read_broadcast(body, asked.context, mechanism, other)

    def _letter(self, number: int, message: bytes) -> Letter:
        return Letter(self._place(number, self._site), _stored(number), message)

    def _place(self, number: int, site: int) -> str:
        return self._post.names.round(number, BROADCAST, self._name(site))

    def _name(self, site: int) -> str:
        return self._plan.study.sites[site]


def _stored(number: int) -> str:
    return f"{number}/{BROADCAST}"
