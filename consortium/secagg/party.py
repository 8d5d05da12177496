"""A site's side of secure aggregation: bytes in, bytes out.

Bonawitz et al., Practical secure aggregation for privacy-preserving machine learning, CCS 2017,
with the set-up messages of all rounds sent at once. Every round has its own key pair and its own
self-mask seed, so seeds that are recovered in one round open no other.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.errors import ProtocolError
from consortium.secagg import contribution, crypto, keystream, messages, seed_shares
from consortium.secagg.key_directory import Directory, KeySession, Member
from consortium.secagg.key_schedule import mask_private
from consortium.secagg.keystream import Ring, pair_masks
from consortium.secagg.participants import CENTRE, Participants
from consortium.secagg.party_setup import PartySetup
from consortium.secagg.states import PARTY, PARTY_ROUND, PartyRound, advance
from consortium.secagg.unmasking import check_request


@dataclass(frozen=True)
class _Round:
    """A site's state of a round; ``request`` is the digest of the request that it answered."""

    state: PartyRound = PartyRound.WAITING
    context: bytes = b""
    request: bytes = b""


class Party:
    """One site in one run: a pure function of its arguments and of the messages it received.

    Every message is derived from ``secret``. So a party that is built again after a crash, and fed
    the stored bundles, sends the same messages. The caller stores each contribution before it is
    sent, and calls `restore` for it on a rebuilt party: two contributions to one round would carry
    the same masks, and their difference would be readable. Raises ProtocolError if the identity
    isn't the roster's, or the secret has another length.

    Parameters
    ----------
    run : str
        Name of the run, unique for ever.
    name : str
        The site's name on the roster.
    rounds : int
        J, rounds that the run may have. They are numbered 1 ... J.
    identity : Ed25519PrivateKey
        Must belong to the roster's key.
    secret : bytes
        32 bytes from the system's random generator, drawn once for this run.
    """

    def __init__(
        self,
        *,
        run: str,
        name: str,
        roster: Participants,
        rounds: int,
        identity: Ed25519PrivateKey,
        secret: bytes,
    ) -> None:
        self._member = Member.enter(
            run=run, name=name, roster=roster, rounds=rounds, identity=identity, secret=secret
        )
        self.setup = PartySetup(self._member)
        self._rounds: dict[int, _Round] = {}

    @property
    def name(self) -> str:
        """The site's name."""
        return self._member.name

    @property
    def session(self) -> KeySession:
        """What hub and sites have in common."""
        return self._member.session

    @property
    def directory(self) -> Directory:
        """Everybody's public keys; raises as `PartySetup.keys`."""
        return self.setup.keys.directory

    def contribute(
        self,
        number: int,
        context: bytes,
        masked: Ring,
        opened: Ring | None = None,
        *,
        bits: int = 0,
        released: bool = False,
        heard: Sequence[messages.Heard] = (),
        clear: bool = False,
    ) -> memoryview:
        """Return a message from which the hub learns only the sum of ``masked``, and ``opened``.

        Raises ProtocolError if the round was contributed to before, or an argument is malformed.

        Parameters
        ----------
        number : int
            Round.
        context : bytes
            32-byte digest of the hub's question; sites that were asked different questions
            share no mask.
        masked : array of a type of `RINGS`, shape (entries,)
            Not changed. No entries, for a round that needs no secret sum.
        opened : array of the same type, shape (opened entries,), optional
            Only the hub can read it, unless it is ``clear``.
        bits : int
            Both vectors are over the integers modulo 2^bits (default: the bits of their type).
        released : bool
            Whether ``opened`` becomes public as it is: the site then signs for it.
        heard : sequence of Heard
            Answers of neighbours, which the site also signs.
        clear : bool
            Whether all parties may read ``opened``.
        """
        after = self._after(number, "contribute")
        bits = bits or 8 * masked.itemsize
        messages.check_vectors(context, masked, opened, bits, self.name)
        message = contribution.SealedVectors(masked.size, bits, opened, heard, clear=clear)
        if masked.size:
            self._mask(message.masked, number, context, masked)
        body = message.load(self._key(messages.VECTORS, number), context)
        envelope = self._to_centre(messages.CONTRIBUTION, number, body)
        self._rounds[number] = replace(after, context=context)
        return message.close(
            envelope,
            context,
            lambda body: self._member.seal(messages.MANIFEST, number, messages.encode(body)),
            released=released,
        )

    def unmask(self, number: int, request: bytes) -> bytes:
        """Answer the hub's lists of survivors and lost sites; once a round.

        Raises ProtocolError if the lists are not sound (see `check_request`), if this site has
        contributed nothing, or has answered another request of this round.
        """
        after = self._after(number, "unmask")
        near = self.directory.graph.neighbours(self.name)
        body = check_request(
            session=self.session,
            number=number,
            context=after.context,
            name=self.name,
            data=request,
            neighbours=near,
        )
        digest = hashlib.sha256(request).digest()
        if after.request not in (b"", digest):
            raise ProtocolError(
                f"{self.name} has answered another unmask request of round {number}. "
                "Give up the round, because a site answers only one."
            )
        held = self.setup.keys.held
        answer = messages.Unmasking(
            digest,
            tuple(seed_shares.self_share(held[s], number) for s in body.survivors if s in held),
            tuple(seed_shares.mask_share(held[s], number) for s in body.lost if s in held),
        )
        message = self._to_centre(messages.UNMASKING, number, answer)
        self._rounds[number] = replace(after, request=digest)
        return message

    def restore(
        self,
        number: int,
        context: bytes,
        contributed: bool,
        answered_request: bytes | None = None,
    ) -> None:
        """Restore the state of a round in a rebuilt party, once its set-up is complete.

        Raises ProtocolError if the round has a state already, or no such history is possible.

        Parameters
        ----------
        number, context
            As in `contribute`.
        contributed : bool
            Whether a contribution was stored, sent or not.
        answered_request : bytes, optional
            The unmask request that was answered.
        """
        after = self._after(number, "restore")
        if not contributed and answered_request is not None:
            raise ProtocolError(
                f"{self.name} can't have answered in round {number} without a contribution. "
                "Restore the site's stored messages."
            )
        if contributed:
            self._rounds[number] = replace(after, context=context)
        if answered_request is not None:
            try:
                self.unmask(number, answered_request)
            except ProtocolError:
                del self._rounds[number]
                raise

    def _after(self, number: int, event: str) -> _Round:
        """Return the state of a round after an event, if the event is legal."""
        advance(PARTY, self.setup.state, event, self.name)
        self.session.check_round(number)
        now = self._rounds.get(number, _Round())
        where = f"{self.name} in round {number}"
        return replace(now, state=advance(PARTY_ROUND, now.state, event, where))

    def _mask(self, total: Ring, number: int, context: bytes, source: Ring) -> None:
        """Make ``total`` a vector under this site's own mask and all its pair masks."""
        roster = self.session.roster
        digest = self.session.digest
        if not roster.masked:
            raise ProtocolError(
                "This run was set up without masks. Give its roster a threshold to sum secretly."
            )
        private = mask_private(digest, self.name, number, self._member.own.mask_seed(number))
        peers = self.directory.graph.neighbours(self.name)
        added, subtracted = pair_masks(
            directory=self.directory,
            roster=roster,
            private=private,
            site=self.name,
            peers=peers,
            number=number,
            context=context,
        )
        seed = self._member.own.self_seed(number)
        added.append(self.directory.keys.self_mask(seed, number, context, self.name))
        keystream.add_streams(total, added, subtracted, source)

    def _to_centre(self, kind: str, number: int, body: messages.Body) -> bytes:
        """Encrypt a body to the hub and sign it."""
        sealed = crypto.encrypt(self._key(kind, number), messages.encode(body))
        return self._member.seal(kind, number, sealed)

    def _key(self, kind: str, number: int) -> bytes:
        """Return the key under which this site encrypts to the hub."""
        shared = self.setup.keys.channels[CENTRE]
        return self.directory.keys.channel(shared, self.name, CENTRE, kind, number)
