"""A ledger as a file for checks by others: an ethics board, an auditor, another program.

The format, version 3, is a JSON object::

    format, version   "cape-consortium ledger", 3
    how               how to check it, in a sentence
    site, at          whose it is and when it was exported
    head              seq and digest of the last line
    lines             oldest first, each an object with seq, event, at, dataset, study, run, round,
                      stage, statistic, unit, mu, site, centre, query, outsider, persons, previous,
                      digest
    key, signature    the site's Ed25519 key, and its signature of the ASCII text
                      "consortium ledger export 3", a line feed and the JSON array
                      [site, at, head's seq, head's digest], both in hexadecimal

``digest`` of a line is SHA-256, in hexadecimal, of the JSON array [dataset, study, run, round,
stage, statistic, unit, mu, site, centre, query, outsider, persons, event, at, previous], without
``persons`` where it is empty. The array is in ASCII, with a blank after each comma. ``mu`` and
``outsider`` are the shortest decimals that read back as the same doubles, as Python writes them.
``previous`` is the digest of the line before, and 64 zeros in the first.

The square of a data set's account is the sum of the squares of ``mu`` of the lines with event
'reserve'. Lines that a line with event 'void' follows for the same round do not count, because
their answers were never sent. A line with event 'tell' costs nothing; versions that sent exact
numbers of participants wrote it. Lines of unit 'subject' also count in the account of unit
'timepoint'.

A line with event 'hold' reserves the loss of a whole run, with round 0. Until the line 'release' of
the same site, centre and run, its ``mu`` counts instead of the run's lines 'reserve', which it
covers. From 'release' on these lines count, and the hold does not.

A line with event 'state' costs nothing. It records an approval or its withdrawal, the newest
roster, or the group of the participants in the site's left-out table.

The chain reveals an edit to anyone who has a later head. The exchange has signed heads that the
site can't withdraw, as ``ledgers/<site>/<seq>``.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from rich.console import Console
from rich.table import Table

from consortium.base.formatting import number, percent
from consortium.errors import LedgerError, printable
from consortium.membership.roster import fingerprint, verifies
from consortium.privacy.gdp import ADDS_UP, TWO_READERS
from site_agent.config import SiteConfig
from site_agent.ledger.entries import EMPTY, Charge, Head, LedgerEntry, follow
from site_agent.ledger.held_runs import held_runs
from site_agent.ledger.ledger import Ledger, accounts, studies
from site_agent.policy.policy import Policy

FORMAT = "cape-consortium ledger"
VERSION = 3
_HOW = (
    "digest = SHA-256 of the JSON array [dataset, study, run, round, stage, statistic, unit, mu, "
    "site, centre, query, outsider, persons, event, at, previous], without persons where it is "
    "empty, with ', ' between items and escapes for all but ASCII; previous = digest of the line "
    "before, 64 zeros in the first; signature = Ed25519 by key of 'consortium ledger export 3', a "
    "line feed and the JSON array [site, at, head.seq, head.digest]."
)


def print_accounts(ledger: Ledger, policy: Policy, out: Console) -> None:
    """Show every study's loss and the remaining budget of the most charged participant."""
    heads = ("study", "unit", "runs", "rounds", "ε", "of the budget", "last")
    table = Table(*heads)
    allowed = {account.unit: account.allowed.mu for account in accounts(ledger, policy)}
    for row in studies(ledger.entries(), policy):
        share = (row.cost.mu / allowed[row.unit]) ** 2 if row.reserved else 0.0
        counts = (str(row.runs), str(row.reserved))
        cost = (number(row.cost.epsilon), percent(share))
        table.add_row(row.study, row.unit, *counts, *cost, row.last)
    out.print(table)
    for line in budget(ledger, policy):
        out.print(line, soft_wrap=True)


def budget(ledger: Ledger, policy: Policy) -> tuple[str, ...]:
    """State the loss that is spent and left in each unit, and the loss that each run reserves.

    The last sentence states δ, and why ε do not add up and are two.
    """
    sentences = [account.sentence for account in accounts(ledger, policy)]
    sentences += [each.sentence for each in held_runs(ledger.entries(), policy)]
    return (*sentences, f"All ε are at δ = {policy.delta:g}. {ADDS_UP} {TWO_READERS}")


def budget_sentences(folder: Path) -> tuple[str, ...]:
    """Return the same of a site's folder, or the error if its ledger can't be read."""
    try:
        ledger = _ledger_of(folder)
        return ("nothing is spent yet",) if ledger is None else budget(ledger, Policy.load(folder))
    except LedgerError as error:
        return (str(error),)


def budget_json(folder: Path) -> list[dict[str, object]] | None:
    """Return the same for a script; empty without a ledger, None if it can't be read."""
    try:
        ledger = _ledger_of(folder)
        found = accounts(ledger, Policy.load(folder)) if ledger else []
    except LedgerError:
        return None
    return [
        {
            "unit": each.unit,
            "epsilon_allowed": each.allowed.epsilon,
            "epsilon_spent": each.spent.epsilon,
            "epsilon_charged": each.charged.epsilon,
            "epsilon_left": each.left.epsilon,
            "used": each.used,
            "more_like_the_last": each.more,
        }
        for each in found
    ]


def reserved_json(folder: Path) -> list[dict[str, object]] | None:
    """Return the holds of runs that have not ended; None if the ledger can't be read."""
    try:
        ledger = _ledger_of(folder)
        found = held_runs(ledger.entries(), Policy.load(folder)) if ledger else []
    except LedgerError:
        return None
    return [each.as_json() for each in found]


def _ledger_of(folder: Path) -> Ledger | None:
    path = SiteConfig.load(folder).ledger
    return Ledger(path) if path.exists() else None


def verify_file(path: Path) -> str:
    """Check an exported ledger of any site, and return the result in a sentence.

    Raises LedgerError if it can't be read, is not such a file, or was changed.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LedgerError(f"{path} can't be read ({error.strerror}). Check the path.") from error
    return verify_export(data).sentence


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seq: int
    event: str
    at: str
    dataset: str
    study: str
    run: str
    round: int
    stage: str
    statistic: str
    unit: str
    mu: float
    site: str
    centre: str
    query: str
    outsider: float
    persons: str
    previous: str
    digest: str

    @property
    def entry(self) -> LedgerEntry:
        """The line as the ledger has it."""
        charge = Charge(**{name: getattr(self, name) for name in Charge.__dataclass_fields__})
        return LedgerEntry(
            seq=self.seq,
            charge=charge,
            event=self.event,
            at=self.at,
            previous=self.previous,
            digest=self.digest,
        )


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    version: int
    how: str
    site: str
    at: str
    head: Head
    lines: list[_Line]
    key: str
    signature: str


@dataclass(frozen=True)
class Export:
    """Content of an exported ledger whose chain was found valid."""

    site: str
    at: str
    entries: tuple[LedgerEntry, ...]
    head: Head
    key: bytes

    @property
    def sentence(self) -> str:
        """Result of the check, with the signing key."""
        lines = f"{self.head.seq} line{'' if self.head.seq == 1 else 's'}"
        return (
            f"The ledger of {printable(self.site, 64)} as of {printable(self.at, 64)} is "
            f"complete: its {lines} follow one another from the first to the head "
            f"{self.head.digest[:16]}…, which is signed with the key of fingerprint "
            f"{fingerprint(self.key)}. Compare that with the site's own."
        )


def export_json(ledger: Ledger, *, site: str, at: str, key: Ed25519PrivateKey) -> bytes:
    """Write a ledger as JSON, in the format that the module describes.

    Raises LedgerError if the ledger was altered.

    Parameters
    ----------
    site : str
        The site's name.
    at : str
        Time of the export, for people.
    key : Ed25519PrivateKey
        The site's.
    """
    entries = ledger.entries()
    lines = [
        _Line(
            seq=entry.seq,
            event=entry.event,
            at=entry.at,
            previous=entry.previous,
            digest=entry.digest,
            **asdict(entry.charge),
        )
        for entry in entries
    ]
    head = entries[-1].head if entries else EMPTY
    signature = key.sign(_signed(site, at, head)).hex()
    public = key.public_key().public_bytes_raw().hex()
    file = _File(
        format=FORMAT,
        version=VERSION,
        how=_HOW,
        site=site,
        at=at,
        head=head,
        lines=lines,
        key=public,
        signature=signature,
    )
    return msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"


def verify_export(data: bytes) -> Export:
    """Read an exported ledger, and check its chain and its signature.

    Compare ``key`` with the site's, and ``head`` with one from another source: the owner of the
    site's key can make another valid file. Raises LedgerError if it is not such a file, a line was
    changed, removed or inserted, or the key that the file names did not sign it.
    """
    try:
        file = msgspec.json.decode(data, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LedgerError("The export can't be read. Ask the site for it again.") from error
    if (file.format, file.version) != (FORMAT, VERSION):
        raise LedgerError(
            f"The export is a '{file.format[:40]}' of version {file.version}, and this version "
            f"reads {VERSION}. Install the version that wrote it."
        )
    entries = tuple(follow(EMPTY, (line.entry for line in file.lines), "The export"))
    if file.head != (entries[-1].head if entries else EMPTY):
        raise LedgerError("The export ends before its head. Ask the site for it again.")
    if not _is_signed(file):
        raise LedgerError(
            "The export is not signed with the key that it names. Ask the site for it again."
        )
    return Export(file.site, file.at, entries, file.head, bytes.fromhex(file.key))


def _signed(site: str, at: str, head: Head) -> bytes:
    content = json.dumps([site, at, head.seq, head.digest])
    return f"consortium ledger export 3\n{content}".encode("ascii")


def _is_signed(file: _File) -> bool:
    try:
        key = bytes.fromhex(file.key)
    except ValueError:
        return False
    return len(key) == 32 and verifies(key, file.signature, _signed(file.site, file.at, file.head))
