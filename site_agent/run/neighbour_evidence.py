"""What a site signs, for everybody, of what its neighbours told it.

A neighbour's answer is listed in the manifest of the round that it was first used for, and again
until such a manifest is released: a centre that leaves a site out of a round takes none of its
evidence away.
"""

from collections.abc import Sequence

from consortium.errors import OversizedError, ProtocolError
from consortium.secagg import contribution, envelope, messages
from consortium.secagg.messages import Heard
from consortium.secagg.release import read_release
from consortium.study.plan import Stage
from site_agent.run.outbox import Outbox
from site_agent.run.setup import JoinedRun


class NeighbourEvidence:
    """The manifests of one site in one run, as far as they tell of its neighbours.

    Parameters
    ----------
    name : str
        The site's.
    """

    def __init__(self, name: str, joined: JoinedRun, outbox: Outbox) -> None:
        self._name, self._joined, self._outbox = name, joined, outbox
        self._released: set[Heard] = set()
        self._last: tuple[int, Stage, tuple[Heard, ...]] | None = None

    def due(self, stage: Stage, heard: Sequence[Heard]) -> tuple[Heard, ...]:
        """What the next manifest lists, of all that was ever ``heard``; the oldest first.

        Raises
        ------
        ExchangeError
            If the exchange can't be read.
        """
        self._settle()
        fresh = [each for each in heard if each not in self._released]
        return tuple(fresh[: stage.heard])

    def listed(self, number: int, stage: Stage, message: bytes | memoryview) -> None:
        """Remember what the manifest of a contribution to a round lists."""
        self._settle()
        signed = contribution.split_message(message, len(message)).manifest
        body = messages.decode(messages.Manifest, envelope.read_unchecked(signed).body, self._name)
        if body.heard:
            self._last = number, stage, body.heard

    def _settle(self) -> None:
        """Look whether the last list stands in what the centre released."""
        if self._last is None:
            return
        number, stage, heard = self._last
        if self._is_released(number, stage):
            self._released |= set(heard)
        self._last = None

    def _is_released(self, number: int, stage: Stage) -> bool:
        sizes, sites = self._joined.sizes, len(self._joined.context.study.sites)
        limit = sizes.release(stage.released_bytes(sites), stage.heard)
        try:
            place = self._outbox.names.round(number, messages.RELEASE)
            message = self._outbox.peek(place, limit)
            if message is None:
                return False
            release = read_release(self._joined.party.session, number, message)
        except (ProtocolError, OversizedError):  # not the centre's: it tells nothing
            return False
        return self._name in release.survivors
