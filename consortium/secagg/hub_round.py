"""One round at the hub: its running sum, and the sites that contributed and answered."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from consortium.errors import ProtocolError, ThresholdError
from consortium.secagg import messages
from consortium.secagg.contribution import Vectors
from consortium.secagg.keystream import Ring
from consortium.secagg.packing import packed_bytes, ring_type, unpack
from consortium.secagg.participants import Participants
from consortium.secagg.states import HUB_ROUND, HubRound, advance


@dataclass
class Tally:
    """Mutable record of a round. A method that raises has changed nothing."""

    roster: Participants
    number: int
    """Round."""
    context: bytes
    """Digest of the round's question, 32 bytes."""
    entries: int
    """Length of the vectors that sites send to be added; 0 for none."""
    bits: int
    """Bits of a number: both vectors are over the integers modulo 2^bits."""
    opened_entries: int
    """Length of the vectors that sites send open; 0 for none."""
    released: bool = False
    """Whether the open vectors become public as they are. Otherwise only their sum is kept."""
    heard: int = 0
    """Most neighbours' answers that a manifest lists."""
    clear: bool = False
    """Whether the open vectors are sent unencrypted."""
    state: HubRound = HubRound.GATHERING
    contributed: set[str] = field(default_factory=set)
    opened: dict[str, Ring] = field(default_factory=dict)
    """Single open vectors, where they are released."""
    survivors: tuple[str, ...] | None = None
    """Sites of the request that was posted, once it is known."""
    manifests: dict[str, bytes] = field(default_factory=dict)
    """Manifest that each site signed for its contribution."""
    posted: dict[str, bytes] | None = None
    """The survivors' manifests that were posted before a crash."""
    request: bytes = b""
    answers: dict[str, messages.Unmasking] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.total: Ring = np.zeros(self.entries, ring_type(self.bits))
        kept = 0 if self.released else self.opened_entries
        self.open_total: Ring = np.zeros(kept, ring_type(self.bits))

    @property
    def nbytes(self) -> int:
        """Size of one site's vectors."""
        return sum(packed_bytes(n, self.bits) for n in (self.entries, self.opened_entries))

    def after(self, event: str) -> HubRound:
        """Return the next state if the event is legal now."""
        return advance(HUB_ROUND, self.state, event, f"The centre's round {self.number}")

    def lost(self) -> tuple[str, ...]:
        """Return the sites that have contributed nothing."""
        return self.roster.ordered(set(self.roster.sites) - self.contributed)

    def add(self, sender: str, body: Vectors, manifest: bytes) -> None:
        """Count a contribution.

        Raises ProtocolError if the sender is counted already or was posted as lost, or the vectors
        are not those of this round.

        Parameters
        ----------
        manifest : bytes
            Signed by the sender.
        """
        if sender in self.contributed:
            raise ProtocolError(
                f"The contribution of {sender} to round {self.number} has arrived before. "
                "Discard this one."
            )
        if self.survivors is not None and sender not in self.survivors:
            raise ProtocolError(
                f"{sender} was posted as lost in round {self.number}. Discard its contribution."
            )
        if self.posted is not None and self.posted[sender] != manifest:
            raise ProtocolError(
                f"The contribution of {sender} to round {self.number} is not the one whose "
                "manifest was posted. Discard it."
            )
        masked, opened = self._vectors(sender, body)
        self.total += masked
        if opened is not None and self.released:
            self.opened[sender] = opened
        elif opened is not None:
            self.open_total += opened
        self.contributed.add(sender)
        self.manifests[sender] = manifest

    def _vectors(self, sender: str, body: Vectors) -> tuple[Ring, Ring | None]:
        what = f"The contribution of {sender} to round {self.number}"
        if body.context != self.context or body.bits != self.bits:
            raise ProtocolError(
                f"{what} answers another question or has {body.bits} bits instead of {self.bits}. "
                "Discard it."
            )
        if (body.opened is None) != (self.opened_entries == 0):
            raise ProtocolError(
                f"{what} must have {self.opened_entries} opened entries. Discard it."
            )
        masked = unpack(body.masked, self.bits, self.entries, what)
        if body.opened is None:
            return masked, None
        return masked, unpack(body.opened, self.bits, self.opened_entries, what)

    def close(self, event: str) -> tuple[HubRound, tuple[str, ...]]:
        """Return the survivors with which the round can continue, and its next state.

        Raises ThresholdError if they are fewer than the minimum, or than those posted before a
        crash.
        """
        after = self.after(event)
        survivors = self.roster.ordered(self.contributed)
        due = self.survivors or ()
        if len(survivors) < self.roster.minimum or not set(due) <= set(survivors):
            raise ThresholdError(
                f"Round {self.number} has the vectors of {len(survivors)} sites and needs "
                f"{max(self.roster.minimum, len(due))}; missing: {', '.join(self.lost())}. "
                "Wait for them or give up the round."
            )
        return after, survivors

    def answer(
        self, sender: str, body: messages.Unmasking, owners: Sequence[str] | None = None
    ) -> None:
        """Store a site's answer to the request.

        Raises ProtocolError if the sender isn't a survivor, has answered before, or answers another
        request.

        Parameters
        ----------
        owners : sequence of str, optional
            Sites whose shares the sender has, in roster order (default: all).
        """
        survivors = self.survivors or ()
        if sender not in survivors or sender in self.answers:
            raise ProtocolError(
                f"No answer of {sender} to the unmask request of round {self.number} is due. "
                "Discard it."
            )
        due = tuple(map(len, self.held(self.roster.sites if owners is None else owners)))
        same = body.request == hashlib.sha256(self.request).digest()
        if not same or due != (len(body.survivors), len(body.lost)):
            raise ProtocolError(
                f"{sender} answers another unmask request of round {self.number}. Discard it."
            )
        self.answers[sender] = body

    def held(self, owners: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the survivors and the lost sites among those whose shares a site has."""
        alive = set(self.survivors or ())
        survivors = tuple(site for site in owners if site in alive)
        return survivors, tuple(site for site in owners if site not in alive)
