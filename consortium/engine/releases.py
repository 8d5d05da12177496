"""The centre's statements about its releases, and the check of its own disk against them."""

from collections.abc import Sequence
from dataclasses import dataclass

from consortium.algorithms.base import Array
from consortium.engine.closing import (
    Attestation,
    Closing,
    decode_closing,
    encode_closing,
    most_closing,
    release_record,
)
from consortium.engine.kept_round import Kept
from consortium.engine.mailbox import Mailbox, foreign_message
from consortium.engine.names import ATTESTATION, CLOSING, Names
from consortium.engine.run_context import RunContext
from consortium.errors import ExchangeError, OutputError, ProtocolError, TakenError
from consortium.secagg import OVERHEAD, RoundSum, messages, seal, unseal
from consortium.secagg.key_directory import KeySession
from consortium.secagg.participants import CENTRE
from consortium.secagg.release import read_release, release_message, ring_digests
from consortium.study.plan import Stage


@dataclass(frozen=True)
class Releases:
    """The centre's releases in one run, as they are on the exchange."""

    context: RunContext
    session: KeySession
    mail: Mailbox
    sizes: messages.Limits

    def post(self, total: RoundSum, context: bytes, released: Array, stage: Stage) -> bytes:
        """Post the release of a round for all parties; returns its record ρ.

        Raises TakenError if another release of the round was posted before.
        """
        shown = stage.mechanism.shown
        bits = stage.mechanism.lattice.bits
        body = messages.encode(release_message(total, context, released, bits, shown=shown))
        run = self.context.run
        number = total.number
        message = seal(
            key=self.mail.identity,
            run=run,
            sender=CENTRE,
            kind=messages.RELEASE,
            round=number,
            body=body,
        )
        self.mail.put(self._name(number), message)
        return release_record(message)

    def survivors(self, number: int, stage: Stage) -> Sequence[str] | None:
        """Return the sites in a round that was released before a crash, or None."""
        posted = self._posted(number, stage)
        return None if posted is None else posted[0].survivors

    def check_kept(self, kept: Kept, stage: Stage) -> bytes:
        """Compare a round of the transcript with its posted release; returns its record ρ.

        Raises OutputError if the transcript has another release, which means that it was changed.
        Raises ExchangeError if the release is missing on the exchange.
        """
        posted = self._posted(kept.number, stage)
        if posted is None:
            raise ExchangeError(
                f"{self._name(kept.number)} is gone, so the transcript can't be compared with it. "
                "Have the exchange's owner restore it."
            )
        body, record = posted
        sites = tuple(self.context.study.sites[site] for site in kept.survivors)
        found = (kept.query, sites, stage.mechanism.lattice.bits, ring_digests(kept.ring))
        if not _same(found, (body.context, body.survivors, body.bits, body.chunks)):
            raise OutputError(
                f"Round {kept.number} of the transcript differs from the release: it was changed. "
                "Restore it from a backup, or remove the files of this and all later rounds from "
                "the transcript, which are then opened again from the exchange."
            )
        return record

    def close(self, closing: Closing) -> None:
        """Post the closing, unless an equal one was posted before a crash.

        Raises TakenError if another was posted.
        """
        name = Names(self.context.run).closing()
        stored = self.mail.get(name, most_closing(len(closing.records)) + OVERHEAD)
        if stored is None:
            self.mail.post(name, CLOSING, 0, encode_closing(closing))
            return
        before = decode_closing(Closing, self.mail.own(name, stored, CLOSING, 0), CENTRE)
        statements = [(c.announcement, c.keys, c.plan, c.records) for c in (before, closing)]
        if statements[0] != statements[1]:
            raise TakenError(
                f"{name} is of another run than this transcript. Start the study again in a new "
                "output folder."
            )

    def receive_attestation(self, data: bytes) -> str:
        """Record a site's attestation of the run; returns the site's name.

        Raises ProtocolError if the message is not a site's attestation.
        """
        keys = self.context.keys
        run = self.context.run
        opened = unseal(data, keys, run=run, kind=ATTESTATION, limit=len(data), round=0)
        body = decode_closing(Attestation, opened.body, opened.sender)
        for number, code in body.refuted:
            self.mail.log_once(f"{opened.sender} disputes round {number} ({code[:40]})")
        return opened.sender

    def _posted(self, number: int, stage: Stage) -> tuple[messages.Release, bytes] | None:
        name = self._name(number)
        nbytes = stage.released_bytes(len(self.context.study.sites))
        stored = self.mail.get(name, self.sizes.release(nbytes, stage.heard))
        if stored is None:
            return None
        try:
            return read_release(self.session, number, stored), release_record(stored)
        except ProtocolError as error:
            raise foreign_message(name, error) from error

    def _name(self, number: int) -> str:
        return Names(self.context.run).round(number, messages.RELEASE)


def _same(found: object, posted: object) -> bool:
    """Return whether the transcript equals the posted release."""
    return found == posted
