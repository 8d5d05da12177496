"""The hub's side of secure aggregation: it learns the sum of each round, and nothing else."""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.errors import ProtocolError
from consortium.secagg import contribution, crypto, messages
from consortium.secagg.hub_round import Tally
from consortium.secagg.hub_setup import HubSetup
from consortium.secagg.key_directory import Member
from consortium.secagg.packing import MOST_BITS
from consortium.secagg.participants import CENTRE, Participants
from consortium.secagg.states import HUB, HUB_ROUND, HubRound, advance
from consortium.secagg.unmasking import Opener, RoundSum, opened_vectors, read_unmask_request


class Hub:
    """The centre's half of the secure sums of a run: a pure function of the messages it received.

    After a crash it is built again and fed the stored messages in any order within a step. If the
    unmask request of a round was posted, call `restore` before its contributions. Raises
    ProtocolError if the identity isn't the roster's, or the secret has another length.

    Parameters
    ----------
    run : str
        Name of the run, unique for ever.
    rounds : int
        J, rounds that the run may have. They are numbered 1 ... J.
    identity : Ed25519PrivateKey
        Must belong to the roster's key of the centre.
    secret : bytes
        32 bytes from the system's random generator, drawn once for this run.
    """

    def __init__(
        self,
        *,
        run: str,
        roster: Participants,
        rounds: int,
        identity: Ed25519PrivateKey,
        secret: bytes,
    ) -> None:
        member = Member.enter(
            run=run, name=CENTRE, roster=roster, rounds=rounds, identity=identity, secret=secret
        )
        self.session = member.session
        self._member = member
        self.setup = HubSetup(member)
        self._tallies: dict[int, Tally] = {}
        self._finished: dict[int, HubRound] = {}

    def open(
        self,
        number: int,
        context: bytes,
        entries: int,
        bits: int,
        opened_entries: int = 0,
        *,
        released: bool = False,
        heard: int = 0,
        clear: bool = False,
    ) -> None:
        """Open a round for contributions.

        Raises ProtocolError if the round was opened before, is not of this run, or an argument is
        out of range.

        Parameters
        ----------
        number : int
            Round, 1 ... J, in any order, each once.
        context : bytes
            32-byte digest of the question that the sites were asked.
        entries : int
            Length of the vectors to be summed secretly; 0 for a round without masks.
        bits : int
            1 to 64: both vectors are over the integers modulo 2^bits.
        opened_entries : int
            Length of the vectors sent openly to the hub; 0 for none.
        released : bool
            Whether these become public as they are. Each site must then have signed for its own.
        heard : int
            Maximum number of neighbours' answers in a site's manifest.
        clear : bool
            Whether the open vectors are sent unencrypted.
        """
        advance(HUB, self.setup.state, "open", "The centre")
        self.session.check_round(number)
        known = self._tallies.get(number)
        before = self._finished.get(number, known.state if known else HubRound.UNOPENED)
        advance(HUB_ROUND, before, "open", f"The centre's round {number}")
        sizes = min(entries, opened_entries) >= 0 and entries + opened_entries > 0
        sound = sizes and 1 <= bits <= MOST_BITS and len(context) == crypto.KEY_BYTES
        if not sound or (entries and not self.session.roster.masked):
            raise ProtocolError(
                f"Round {number} can't be opened with {entries} masked and {opened_entries} open "
                f"entries of {bits} bits. Use 1 to {MOST_BITS} bits, a context of "
                f"{crypto.KEY_BYTES} bytes, and masks only in a run that has a threshold."
            )
        roster = self.session.roster
        self._tallies[number] = Tally(
            roster=roster,
            number=number,
            context=context,
            entries=entries,
            bits=bits,
            opened_entries=opened_entries,
            released=released,
            heard=heard,
            clear=clear,
        )

    def restore(self, number: int, request: bytes) -> None:
        """Restore the request that was posted for a round, before its contributions are fed again.

        Contributions of sites that were posted as lost are then refused as before, and so are
        contributions that differ from the posted manifests. Raises ProtocolError if the request is
        not this hub's for this round, or contributions were fed before.
        """
        tally = self._tally(number)
        after = tally.after("restore")
        body = read_unmask_request(self.session, number, tally.context, request)
        if tally.contributed:
            raise ProtocolError(
                f"Round {number} has contributions already. Restore its request before them."
            )
        tally.survivors = body.survivors
        tally.state = after
        tally.posted = dict(zip(body.survivors, body.manifests, strict=True))

    def receive_contribution(self, data: bytes | memoryview) -> str:
        """Take a site's contribution and return the site's name.

        Raises ProtocolError if it is unsound, late, not of an open round, or the site's second.
        """
        largest = max((tally.nbytes for tally in self._tallies.values()), default=0)
        heard = max((tally.heard for tally in self._tallies.values()), default=0)
        limit = self.session.limits.contribution(largest, heard)
        parts = contribution.split_message(data, limit)
        opened = self.session.unseal(messages.CONTRIBUTION, parts.envelope, limit)
        tally = self._tally(opened.round)
        after = tally.after("contribution")
        tally.add(
            opened.sender,
            self.setup.known.unload(opened, parts, released=tally.released, clear=tally.clear),
            parts.manifest,
        )
        tally.state = after
        return opened.sender

    def contributed(self, number: int) -> tuple[str, ...]:
        """Return the sites whose contribution to an open round has arrived, in roster order."""
        tally = self._tally(number)
        return tally.roster.ordered(tally.contributed)

    def request(self, number: int) -> bytes:
        """Close a round's contributions, and ask the survivors to unmask their sum.

        Asked again, it returns the same bytes. Raises ThresholdError if fewer sites than the
        minimum have contributed; the round stays open. Raises ProtocolError if the round is not
        open or has no masks.
        """
        tally = self._tally(number)
        if not tally.entries:
            raise ProtocolError(f"Round {number} has no masks to remove. Call sum at once.")
        after, survivors = tally.close("request")
        if not tally.request:
            manifests = tuple(tally.manifests[site] for site in survivors)
            body = messages.Request(tally.context, survivors, tally.lost(), manifests)
            tally.request = self._member.seal(messages.UNMASK, number, messages.encode(body))
            tally.survivors = survivors
            tally.state = after
        return tally.request

    def receive_unmasking(self, data: bytes) -> str:
        """Take a site's answer to the unmask request and return the site's name.

        Raises ProtocolError if it is unsound, not due, or an answer to another request.
        """
        opened = self.session.unseal(messages.UNMASKING, data, self.session.limits.unmasking)
        tally = self._tally(opened.round)
        after = tally.after("unmasking")
        body = self.setup.known.decrypt(messages.Unmasking, opened)
        tally.answer(opened.sender, body, self.setup.known.directory.graph.owners(opened.sender))
        tally.state = after
        return opened.sender

    def answered(self, number: int) -> tuple[str, ...]:
        """Return the sites that have answered an open round's unmask request, in roster order."""
        tally = self._tally(number)
        return tally.roster.ordered(tally.answers)

    def sum(self, number: int) -> RoundSum:
        """Compute a round's sum, finish the round and free its memory.

        Raises ThresholdError if too few sites have contributed or answered, or too many shares are
        wrong. The message names the sites, and the round stays open for more answers.
        """
        tally = self._tally(number)
        if tally.entries:
            after = tally.after("sum")
            result = Opener(self.session, self.setup.known.directory, tally).open()
        else:
            after, survivors = tally.close("sum open")
            opened = opened_vectors(tally)
            lost = tally.lost()
            manifests = tuple(tally.manifests[site] for site in survivors)
            result = RoundSum(
                number, tally.total, survivors, opened, lost=lost, manifests=manifests
            )
        self._finish(number, after)
        return result

    def abandon(self, number: int) -> None:
        """Give up a round; other rounds are not touched.

        Raises ProtocolError if the round is not open.
        """
        self._finish(number, self._tally(number).after("abandon"))

    def _finish(self, number: int, state: HubRound) -> None:
        self._finished[number] = state
        del self._tallies[number]

    def _tally(self, number: int) -> Tally:
        if number not in self._tallies:
            state = self._finished.get(number, HubRound.UNOPENED)
            raise ProtocolError(
                f"The centre's round {number} is {state.value}, and only an open round continues."
            )
        return self._tallies[number]
