"""The lines of a ledger: values, each bound to the one before it by a digest."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from consortium.errors import LedgerError

START = "0" * 64
"""Placeholder in the first line for the digest of the line before."""


@dataclass(frozen=True)
class Charge:
    """Line of a ledger: the privacy loss of one round."""

    dataset: str
    """Name of the data set in the ledger."""
    study: str
    run: str
    round: int
    stage: str
    statistic: str
    unit: str
    mu: float
    """Loss against the strongest coalition that the study allows for."""
    site: str
    centre: str
    """Public keys of the answering site and of the requesting centre, 64 hexadecimal digits each.
    Two consortia may give their runs the same name, and two agents of one hospital may answer the
    same run. Each pair draws its own noise and is charged separately. Keys are kept whole, because
    an attacker who generates many keys finds two that begin with the same 16 digits."""
    query: str
    """Digest of the question, 64 hexadecimal digits, including the neighbours' earlier answers. So
    the charge of one question does not cover another, also if the stored answer is lost."""
    outsider: float
    """μ against an outsider, who sees only the releases, if as many sites drop out as the study
    allows. For information only, since limits are compared with ``mu``."""
    persons: str = ""
    """Digest of the group of participants who are charged. It is empty in lines that are older than
    groups, which count for all participants."""


@dataclass(frozen=True)
class Head:
    """Head of a ledger: its number of lines, and the last one's digest."""

    seq: int
    digest: str


EMPTY = Head(0, START)


@dataclass(frozen=True)
class LedgerEntry:
    """A line of the ledger, with its kind in ``event`` and the time, for people, in ``at``.

    'reserve', 'spend' and 'void' are about one round. 'hold' is the loss of a whole run, which
    counts until the line 'release'; both have the round 0.
    'state' records a state of the site's folder (`site_agent.ledger.states`) and costs nothing.
    'tell' occurs in ledgers of versions that sent exact numbers of participants. It costs nothing
    and is not used any more.
    """

    seq: int
    charge: Charge
    event: str
    at: str
    previous: str
    digest: str

    @property
    def is_of_round(self) -> bool:
        """Whether the line is about one round of a run."""
        return self.event in ("reserve", "spend", "void")

    @property
    def head(self) -> Head:
        """The ledger's head when this was its last line."""
        return Head(self.seq, self.digest)


def standing_reservations(entries: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """Return the ledger's reservations that count: those that no later line made void."""
    lines = list(entries)
    void = {line.charge for line in lines if line.event == "void"}
    return [line for line in lines if line.event == "reserve" and line.charge not in void]


def next_entry(head: Head, charge: Charge, event: str, at: str) -> LedgerEntry:
    """Return the ledger's line that follows a head."""
    digest = _digest(charge, event, at, head.digest)
    return LedgerEntry(
        seq=head.seq + 1, charge=charge, event=event, at=at, previous=head.digest, digest=digest
    )


def follow(head: Head, entries: Iterable[LedgerEntry], where: str) -> Iterator[LedgerEntry]:
    """Yield a ledger's lines as they follow one another from a head.

    Raises LedgerError if a line was changed, removed or inserted.
    """
    for entry in entries:
        if entry != next_entry(head, entry.charge, entry.event, entry.at):
            raise LedgerError(
                f"{where}: line {head.seq + 1} was altered. Restore the ledger from a backup and "
                "ask who changed it."
            )
        yield entry
        head = entry.head


def _digest(charge: Charge, event: str, at: str, previous: str) -> str:
    """Return SHA-256 of the line as a JSON array: the charge's fields in order, and the rest."""
    # A value that JSON can't represent was not written by a ledger: the line was altered.
    fields = dict(vars(charge))  # in the order of their declaration
    if not charge.persons:  # as in lines of earlier versions
        del fields["persons"]
    content = json.dumps([*fields.values(), event, at, previous], default=str)
    return hashlib.sha256(content.encode()).hexdigest()
