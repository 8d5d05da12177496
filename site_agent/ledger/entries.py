"""The lines of a ledger: values, each bound to the one before it by a digest."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from consortium.errors import LedgerError

START = "0" * 64
"""What stands in the first line for the digest of the line before."""


@dataclass(frozen=True)
class Charge:
    """One round's price."""

    dataset: str
    """Name of the data set in the ledger."""
    study: str
    run: str
    round: int
    stage: str
    statistic: str
    unit: str
    mu: float
    """Loss against the worst coalition that the study allows for."""
    site: str
    centre: str
    """Public keys of who answers and of who asks, 64 hexadecimal digits each. Two consortia may
    give their runs the same name, and two agents of one hospital may answer the same run; each pair
    draws its own noise and pays for itself. Keys are kept whole: somebody who can make keys at will
    finds two that begin with the same 16 digits."""
    query: str
    """Digest of the question, 64 hexadecimal digits, with what neighbours had said before it was
    answered: what was paid for one question does not pay for another, whatever became of the stored
    answer."""
    outsider: float
    """μ against who sees only what is released, if as many sites drop out as the study allows; for
    people's information, since limits are held against ``mu``."""
    persons: str = ""
    """Digest of the group of persons who are charged; empty in lines of before there were any,
    which count for everybody."""


@dataclass(frozen=True)
class Head:
    """How far a ledger has come: its number of lines, and the last one's digest."""

    seq: int
    digest: str


EMPTY = Head(0, START)


@dataclass(frozen=True)
class LedgerEntry:
    """A line of the ledger, with its kind in ``event`` and the time, for people, in ``at``.

    'reserve', 'spend' and 'void' are about one round. 'hold' is the loss of a whole run, which
    counts until the line 'release'; both have the round 0.
    'state' records a state of the site's folder (`site_agent.ledger.states`) and costs nothing.
    'tell' stands in ledgers of versions that sent exact numbers of participants; it costs nothing
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
    """Reservations that count: those that no later line made void."""
    lines = list(entries)
    void = {line.charge for line in lines if line.event == "void"}
    return [line for line in lines if line.event == "reserve" and line.charge not in void]


def next_entry(head: Head, charge: Charge, event: str, at: str) -> LedgerEntry:
    """Make the line that follows a head."""
    digest = _digest(charge, event, at, head.digest)
    return LedgerEntry(head.seq + 1, charge, event, at, head.digest, digest)


def follow(head: Head, entries: Iterable[LedgerEntry], where: str) -> Iterator[LedgerEntry]:
    """Yield lines as they follow one another from a head.

    Raises LedgerError if a line was changed, removed or put in.
    """
    for entry in entries:
        if entry != next_entry(head, entry.charge, entry.event, entry.at):
            raise LedgerError(
                f"{where}: line {head.seq + 1} was altered; restore the ledger from a backup and "
                "ask who changed it."
            )
        yield entry
        head = entry.head


def _digest(charge: Charge, event: str, at: str, previous: str) -> str:
    """SHA-256 of the line as a JSON array: the charge's fields in their order, and the rest."""
    # What no JSON holds was not written by a ledger, and must end as an altered line.
    fields = dict(vars(charge))  # in the order of their declaration
    if not charge.persons:  # as lines were before
        del fields["persons"]
    content = json.dumps([*fields.values(), event, at, previous], default=str)
    return hashlib.sha256(content.encode()).hexdigest()
