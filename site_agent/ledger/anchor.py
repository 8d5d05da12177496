"""A site's signed ledger heads on the exchange.

A ledger that is restored from a backup lacks the later losses, and nothing in the file shows it. So
the site puts the ledger's head, signed by its own key, on the exchange, which a backup of its disk
does not include, and compares before it answers.

An agent that has answered and finds none of its heads there also stops, until the site's staff have
accepted the ledger as it is (`LedgerAnchor.accept`).

Limits: the operator of the exchange can delete the newest of these messages or bury them under
others. If several agents share a ledger, each guards it only up to its own last message. An agent
that finds an older ledger closes it for all agents.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from consortium.base.formatting import count
from consortium.errors import (
    ExchangeError,
    LedgerError,
    OversizedError,
    ProtocolError,
    TakenError,
)
from consortium.exchange.base import Exchange
from consortium.membership.keys import Identity
from consortium.secagg import OVERHEAD, seal, unseal
from site_agent.ledger.entries import EMPTY, Head
from site_agent.ledger.ledger import Ledger

RUN = "(ledger)"
KIND = "ledger head"
"""No run has such a name, so no message of a run is a head, and no head is a run's message."""
MOST_READ = 16
"""Maximum number of messages that are read on either side of the ledger's head."""
_MOST_BYTES = 256
_SEQ = re.compile(r"[0-9]{9}")


class Answers(Protocol):
    """Answers in a site's store of messages, which the ledger's heads are compared with."""

    def answered(self) -> list[str]:
        """Return the runs that were answered here, without those that the staff accounted for."""

    def account_for(self, runs: Sequence[str]) -> None:
        """Record that the staff have accounted for runs that the ledger does not have."""


class LedgerAnchor:
    """Signed heads of one site's ledger on one exchange.

    Parameters
    ----------
    exchange : Exchange
        Not trusted: only messages that verify under the site's own key count.
    name : str
        The site's.
    earlier : bytes or None
        The site's public key before its last change, whose heads also count.
    answers : Answers or None
        The site's store of messages.
    """

    def __init__(
        self,
        exchange: Exchange,
        identity: Identity,
        name: str,
        ledger: Ledger,
        earlier: bytes | None = None,
        answers: Answers | None = None,
    ) -> None:
        self._answers = answers
        self._exchange = exchange
        self._identity = identity
        self._name = name
        self._keys = (identity.public,) if earlier is None else (identity.public, earlier)
        self._ledger = ledger
        self._place = f"ledgers/{name}"

    def post(self) -> ExchangeError | None:
        """Put the ledger's head on the exchange; the same head again changes nothing.

        Raises LedgerError if the ledger can't be read, or this site signed another line of this
        number before: as in `check`.

        Returns
        -------
        ExchangeError or None
            Error that prevented it. It is for the log only: the next head contains the same
            information, and no answer waits for it.
        """
        head = self._ledger.head()
        if head == EMPTY:
            return None
        first = self._ledger.digest_at(1)
        body = json.dumps([first, head.digest]).encode()
        message = seal(
            key=self._identity.key, run=RUN, sender=self._name, kind=KIND, round=head.seq, body=body
        )
        try:
            self._exchange.put(f"{self._place}/{head.seq:09d}", message)
        except ExchangeError as error:
            said = self._read(head.seq) if isinstance(error, TakenError | OversizedError) else None
            if said is not None and said[1] != head:
                raise self._refusal(*said, head.digest) from error
            # This site may have signed the same, with its key before the last change.
            return None if said == (first, head) else error
        return None

    def check(self) -> int:
        """Check the ledger's chain, and compare it with the site's signed heads.

        Names are chosen without reading anything: the `MOST_READ` nearest to the ledger's head on
        either side. More names would be a flood, which hides no more than deletion does. Raises
        LedgerError if the ledger was altered or closed, is behind one of the heads, or has another
        line in its place. Unless it is another ledger altogether, it is then closed for every agent
        that shares it. Raises LedgerError also if this site's store of messages has answers that
        the ledger lacks, or if the site has answered and none of its heads is found. Raises
        ExchangeError if the exchange can't be read.

        Returns
        -------
        int
            Number of the site's own heads that were found and agree.
        """
        agreeing = self._agreeing()
        self._check_store()
        if not agreeing:
            self._check_new()
        return agreeing

    def accept(self) -> Head:
        """Put the ledger's head on an exchange without one, after the staff confirmed it as newest.

        Raises LedgerError as `check`, but not for missing heads. Raises ExchangeError if the
        exchange can't be used.
        """
        self._agreeing()
        if self._answers is not None:
            self._answers.account_for(self._answers.answered())
        trouble = self.post()
        if trouble is not None:
            raise trouble
        return self._ledger.head()

    def _agreeing(self) -> int:
        """Count the site's own heads, which must all agree."""
        self._ledger.verify()
        agreeing = 0
        for first, signed in self._signed(self._ledger.head().seq):
            digest = self._ledger.digest_at(signed.seq)
            if digest != signed.digest:
                raise self._refusal(first, signed, digest)
            agreeing += 1
        return agreeing

    def _check_new(self) -> None:
        """Reject a ledger without heads, unless this site has answered nothing in it.

        A head is put there before an answer is given. Other agents may have written lines, and
        a crash may have come between a first charge and its head.
        """
        if self._ledger.has_answered({key.hex() for key in self._keys}):
            raise LedgerError(
                f"{self._ledger.path} has {count(self._ledger.head().seq, 'line')}, and the "
                "exchange has none of this site's signed heads, so the ledger may not be the "
                "newest. If you are sure that it is, accept it with 'site-agent ledger --accept'."
            )

    def _check_store(self) -> None:
        """Check that the ledger contains every answer in the store of messages."""
        answered = self._answers.answered() if self._answers is not None else []
        missing = self._ledger.lacks(answered)
        if missing:
            raise LedgerError(
                f"{self._ledger.path} has no line of {missing[0]}, although the site's store of "
                "messages has answers to that run: the ledger is lost, older or another one. "
                "Restore the newest copy. If there is none, lower the totals in policy.yaml by the "
                "cost of such studies, and accept the ledger with 'site-agent ledger --accept'."
            )

    def _refusal(self, first: str, signed: Head, digest: str | None) -> LedgerError:
        path = self._ledger.path
        seq = signed.seq
        if first != self._ledger.digest_at(1):  # not a copy of this one, so others may continue
            return LedgerError(
                f"{path} is not the ledger that this site signed for, with {count(seq, 'line')}. "
                "Restore that one, since its losses were spent."
            )
        what = (
            f"has {count(self._ledger.head().seq, 'line')} where this site signed for {seq}: it "
            "is a backup from before the last losses"
            if digest is None
            else f"has another line {seq} than this site signed for: two copies were written to"
        )
        remedy = "Restore the newest copy. If there is none, count the data set's budget as spent"
        self._ledger.halt(f"{path} {what}. {remedy}.")
        return LedgerError(f"{path} {what}. {remedy}.")

    def _signed(self, seq: int) -> Iterator[tuple[str, Head]]:
        """Yield the site's own heads nearest to a number of lines; others are skipped."""
        names = self._exchange.children(self._place)
        numbers = sorted(int(name) for name in names if _SEQ.fullmatch(name))
        above = [number for number in numbers if number > seq][:MOST_READ]
        below = [number for number in numbers if number <= seq][-MOST_READ:]
        for number in above + below[::-1]:
            found = self._read(number)
            if found is not None:
                yield found

    def _read(self, seq: int) -> tuple[str, Head] | None:
        """Fetch the first digest and head; None if it is not this site's head at this length."""
        limit = _MOST_BYTES + OVERHEAD
        try:
            message = self._exchange.get(f"{self._place}/{seq:09d}", limit)
        except ExchangeError:
            return None
        for key in self._keys if message is not None else ():
            keys = {self._name: key}
            try:
                body = unseal(message or b"", keys, run=RUN, kind=KIND, limit=limit, round=seq).body
            except ProtocolError:  # any party can put anything there
                continue
            first, digest = json.loads(body)  # the site's own, by its signature
            return str(first), Head(seq, str(digest))
        return None
