"""A site's checks of the released rounds, and its attestation at the end of a run.

A checker recomputes a round's sum from the messages on the exchange, and compares every number. It
works while the site is idle, and no round waits for it.
"""

from dataclasses import dataclass, field

from consortium.engine.closing import (
    Attestation,
    Closing,
    decode_closing,
    encode_closing,
    most_closing,
    release_record,
    round_checkers,
)
from consortium.engine.names import ATTESTATION, CLOSING
from consortium.errors import (
    AlteredError,
    ExchangeError,
    ProtocolError,
    ReleaseError,
)
from consortium.secagg import CENTRE, messages, seal
from consortium.secagg.keystream import Ring
from consortium.secagg.release import (
    add_again,
    added,
    agrees,
    check_answered,
    check_seeds,
    read_release,
    signed_manifests,
)
from consortium.study.plan import Stage, plan_digest
from site_agent.run.outbox import Outbox
from site_agent.run.setup import JoinedRun, Site

_DIFFERS = "sum-differs"
_REQUEST = "another-request"
_UNSOUND = "unsound"


@dataclass(frozen=True)
class Question:
    """A queried round that a site checks: its number, its stage, and the digest of its query."""

    number: int
    stage: Stage
    digest: bytes


@dataclass
class Checks:
    """A site as the checker of a run's releases."""

    site: Site
    joined: JoinedRun
    outbox: Outbox
    _asked: list[Question] = field(default_factory=list)
    _due: list[Question] = field(default_factory=list)
    _blocked: list[Question] = field(default_factory=list)  # tried again at the end
    _told: dict[int, tuple[bytes, bool]] = field(default_factory=dict)
    _sent: bool = False

    @property
    def attested(self) -> bool:
        """Whether this site has signed its attestation, after which it answers nothing new."""
        return self._sent or self.outbox.stored(ATTESTATION) is not None

    def note(self, number: int, stage: Stage, digest: bytes) -> None:
        """Remember a queried round; recompute its sum later if this site is its checker."""
        question = Question(number, stage, digest)
        self._asked.append(question)
        study = self.joined.context.study
        falls_here = self.site.name in round_checkers(study.sites, study.checkers, number)
        if falls_here and stage.mechanism.shown and self.outbox.stored(_checked(number)) is None:
            self._due.append(question)

    def advance(self) -> bool:
        """Check a round or attest the run, if that is possible now.

        Raises ReleaseError, after attesting it, if a release does not match the sites' signed
        messages.
        """
        if not self.joined.context.study.checkers or self._sent:
            return False
        if self._due and self._release(self._due[0]) is not None:
            question = self._due.pop(0)
            if not self._check(question):
                self._blocked.append(question)
            return True
        return self._attest()

    # -- one round ------------------------------------------------------------------------

    def _check(self, question: Question) -> bool:
        """Recompute a round's sum; False if a message is missing, or differs from its signature."""
        found = self._release(question)
        request = self._request(question)
        if found is None or request is None:
            return False
        number = question.number
        release, message = found
        session = self.joined.party.session
        directory = self.joined.party.directory
        mechanism = question.stage.mechanism
        entries = mechanism.entries
        bits = mechanism.lattice.bits
        clear = mechanism.public
        try:
            answered = check_answered(session, number, release, request)
            manifests = signed_manifests(session, number, answered, entries, bits, clear=clear)
            check_seeds(session, directory, number, release)
            if release.bits != bits:
                raise ProtocolError(f"it has {release.bits} bits a number where {bits} are planned")
        except ProtocolError as error:
            raise self._refute(number, _UNSOUND, str(error)) from error
        try:
            vectors = (self._vector(question, site, body) for site, body in manifests.items())
            total = add_again(
                session=session,
                directory=directory,
                number=number,
                release=release,
                vectors=vectors,
                entries=entries,
                clear=clear,
            )
        except (
            AlteredError,
            ExchangeError,
        ) as error:  # the exchange may answer again later
            self.site.log.line(f"round {number} can't be recomputed now: {error}")
            return False
        except ProtocolError as error:  # signed, but not a vector of this round
            raise self._refute(number, _UNSOUND, str(error)) from error
        if not agrees(total, release):
            raise self._refute(
                number, _DIFFERS, "its numbers are not the sum of the sites' messages"
            )
        self.outbox.keep(_checked(number), release_record(message))
        return True

    def _release(self, question: Question) -> tuple[messages.Release, bytes] | None:
        """Return the centre's release of a round, if any; this site's own answer must match it."""
        number = question.number
        stage = question.stage
        nbytes = stage.released_bytes(len(self.joined.context.study.sites))
        limit = self.joined.sizes.release(nbytes, stage.heard)
        place = self.outbox.names.round(number, messages.RELEASE)
        message = self.outbox.peek(place, limit)
        if message is None:
            return None
        release = read_release(self.joined.party.session, number, message)
        answered = self.outbox.stored(f"{number}/unmask")
        if answered is not None and release_record(answered) != release.request:
            raise self._refute(number, _REQUEST, "it names another request than this site answered")
        if release.context != question.digest:
            raise self._refute(number, _UNSOUND, "it answers another question than this site's")
        self._told[number] = release_record(message), self.site.name in release.lost
        return release, message

    def _request(self, question: Question) -> bytes | None:
        """Return the answered unmask request, from this site's store or from the exchange.

        A file that the centre did not sign is ignored, because any party can have put it there.
        """
        number = question.number
        stored = self.outbox.stored(f"{number}/unmask")
        if stored is not None:
            return stored
        stage = question.stage
        limit = self.joined.sizes.request(stage.message_bytes, stage.heard)
        found = self.outbox.peek(self.outbox.names.round(number, messages.UNMASK), limit)
        try:
            if found is not None:
                self.outbox.signed(found, messages.UNMASK, number, limit)
        except ProtocolError:
            return None
        return found

    def _vector(self, question: Question, site: str, manifest: messages.Manifest) -> Ring:
        number = question.number
        limit = self.joined.sizes.contribution(manifest.size, len(manifest.heard))
        place = self.outbox.names.round(number, messages.CONTRIBUTION, site)
        found = self.outbox.peek(place, limit)
        if found is None:
            raise ExchangeError(f"{place} is gone. Have the exchange's owner restore it.")
        mechanism = question.stage.mechanism
        return added(site, number, manifest, found, mechanism.entries, clear=mechanism.public)

    # -- the whole run --------------------------------------------------------------------

    def _attest(self) -> bool:
        """Sign the findings once the centre has closed the run. This is done only once."""
        stored = self.outbox.stored(ATTESTATION)
        if stored is not None:
            self.outbox.send(self.outbox.names.attestation(self.site.name), ATTESTATION, stored)
            self._sent = True
            return True
        closing = self._closing()
        if closing is None or not self._heard(len(closing.records)):
            return False
        for question in self._blocked:
            self._check(question)
        own = self._attestation()
        statement = (closing.announcement, closing.keys, closing.plan, closing.records)
        if statement != (own.announcement, own.keys, own.plan, own.records):
            raise self._refute(0, _UNSOUND, "its closing message belongs to another run")
        self._send(own)
        return True

    def _closing(self) -> Closing | None:
        limit = most_closing(self.joined.plan.rounds)
        message = self.outbox.peek(self.outbox.names.closing(), limit)
        if message is None:
            return None
        return decode_closing(Closing, self.outbox.signed(message, CLOSING, 0, limit), CENTRE)

    def _heard(self, rounds: int) -> bool:
        """Return whether this site has received the releases of all rounds."""
        known = all(self._release(question) is not None for question in self._asked)
        return known and len(self._asked) == rounds

    def _attestation(self, refuted: tuple[tuple[int, str], ...] = ()) -> Attestation:
        joined = self.joined
        stored = self.outbox.stored
        study = joined.context.study.study
        run = joined.context.run
        earlier = self.site.ledger.runs(study, [joined.context.keys[CENTRE].hex()])
        records = dict(sorted(self._told.items()))
        return Attestation(
            announcement=joined.announced,
            keys=release_record(stored("keys") or b""),
            plan=plan_digest(joined.plan),
            records=tuple(record for record, _ in records.values()),
            checked=tuple(n for n, (record, _) in records.items() if stored(_checked(n)) == record),
            refuted=refuted,
            missed=tuple(
                n for n, (_, lost) in records.items() if lost and stored(f"{n}/contribution")
            ),
            earlier=tuple(sorted(other for _, other in earlier if other != run)),
        )

    def _refute(self, number: int, code: str, why: str) -> ReleaseError:
        """Sign that a release is wrong, and return the error that ends participation."""
        if self.outbox.stored(ATTESTATION) is None:
            self._send(self._attestation(((number, code),)))
        what = f"Round {number}" if number else "The run"
        why = why.rstrip(".")  # of another error
        return ReleaseError(
            f"{what} of {self.joined.context.run} does not match the sites' signed messages: "
            f"{why}. This site stops answering. Ask the coordinator, and show this line to the "
            "others."
        )

    def _send(self, body: Attestation) -> None:
        name = self.site.name
        run = self.joined.context.run
        message = seal(
            key=self.site.identity.key,
            run=run,
            sender=name,
            kind=ATTESTATION,
            round=0,
            body=encode_closing(body),
        )
        self.outbox.send(self.outbox.names.attestation(name), ATTESTATION, message)
        self._sent = True


def _checked(number: int) -> str:
    return f"{number}/checked"
