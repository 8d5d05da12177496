"""A ledger as a file that somebody else can check: an ethics board, an auditor, another program.

The format, version 1, is a JSON object::

    format, version   "cape-consortium ledger", 1
    how               how to check it, in a sentence
    site, at          whose it is and when it was exported
    head              seq and digest of the last line
    lines             oldest first, each an object with seq, event, at, dataset, study, run, round,
                      stage, statistic, unit, mu, site, centre, query, outsider, previous,
                      digest

``digest`` of a line is SHA-256, in hexadecimal, of the JSON array [dataset, study, run, round,
stage, statistic, unit, mu, site, centre, query, outsider, event, at, previous] in ASCII with a
blank after each comma; ``mu`` and ``outsider`` as the shortest decimal that reads back as the same
double, written as Python writes it. ``previous`` is the digest of the line before, and 64 zeros in
the first.

To add up: the squares of ``mu`` of the lines with event 'reserve' make the square of what a data
set's account holds. Lines of unit 'subject' count in the account of unit 'timepoint', too.

The chain shows an edit to whoever knows a later head. One that the site can't take back lies on
the exchange, signed, as ``ledgers/<site>/<seq>``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import msgspec

from consortium.errors import LedgerError
from site_agent.chain import EMPTY, Charge, Entry, Head, follow
from site_agent.ledger import Ledger

FORMAT, VERSION = "cape-consortium ledger", 1
_HOW = (
    "digest = SHA-256 of the JSON array [dataset, study, run, round, stage, statistic, unit, mu, "
    "site, centre, query, outsider, event, at, previous] with ', ' between items and escapes for "
    "all but ASCII; previous = digest of the line before, 64 zeros in the first."
)


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
    previous: str
    digest: str

    @property
    def entry(self) -> Entry:
        """The line as the ledger has it."""
        charge = Charge(**{name: getattr(self, name) for name in Charge.__dataclass_fields__})
        return Entry(self.seq, charge, self.event, self.at, self.previous, self.digest)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    version: int
    how: str
    site: str
    at: str
    head: Head
    lines: list[_Line]


@dataclass(frozen=True)
class Export:
    """What an exported ledger says, once its chain was found sound."""

    site: str
    at: str
    entries: tuple[Entry, ...]
    head: Head


def export_json(ledger: Ledger, *, site: str, at: str) -> bytes:
    """Write a ledger as JSON, in the format that the module describes.

    Parameters
    ----------
    ledger : Ledger
    site : str
        The site's name.
    at : str
        Time of the export, for people.

    Raises
    ------
    LedgerError
        If the ledger was altered.
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
    file = _File(FORMAT, VERSION, _HOW, site, at, head, lines)
    return msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"


def verify_export(data: bytes) -> Export:
    """Read an exported ledger and check its chain.

    Compare ``head`` with one that was seen elsewhere: somebody who may write the whole file can
    make another sound one.

    Raises
    ------
    LedgerError
        If it is not such a file, or a line was changed, removed or put in.
    """
    try:
        file = msgspec.json.decode(data, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LedgerError("The export can't be read; ask the site for it again.") from error
    if (file.format, file.version) != (FORMAT, VERSION):
        raise LedgerError(
            f"The export is a '{file.format[:40]}' of version {file.version}, and this version "
            f"reads {VERSION}; install the version that wrote it."
        )
    entries = tuple(follow(EMPTY, (line.entry for line in file.lines), "The export"))
    if file.head != (entries[-1].head if entries else EMPTY):
        raise LedgerError("The export ends before its head; ask the site for it again.")
    return Export(file.site, file.at, entries, file.head)
