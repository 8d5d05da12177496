"""The site's security log, for syslog, journald and the hospital's monitoring.

Each line has the form of RFC 5424, with its facts as structured data. The lines follow the ledger,
which records charges, approvals, withdrawals, rosters and left-out tables. Refusals and changes of
the site's key are added. No line names a participant.

The ledger keeps what could not be written, so a log that is away for a while misses none of it.
"""

import os
import socket
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from consortium.base.atomic import DAMAGED, write_bytes
from consortium.base.work import work_folder
from consortium.errors import OutputError, printable
from site_agent.ledger.entries import LedgerEntry
from site_agent.ledger.reader import LedgerReader
from site_agent.ledger.states import STATE

DATA = "consortium@32473"
"""Name of the structured data; 32473 is the number that RFC 5612 reserves for documentation."""
_FACILITY = 10  # security and authorization messages
NOTICE = 5
WARNING = 4
_MARK = "security-log.txt"
_MOST_LINES = 1_000  # of one look
_MOST_VALUE = 200  # characters


@dataclass(frozen=True)
class SecurityLog:
    """Security log of one site."""

    target: Path | None
    """A file, or a Unix socket such as /dev/log; nothing is written without it."""
    folder: Path
    """The site's own folder, which keeps how far the ledger was followed."""
    site: str
    """Name of the site."""
    now: Callable[[], str]
    """Returns the time in ISO 8601."""

    def follow(self, ledger: LedgerReader) -> None:
        """Write the ledger's lines that are new since the last call.

        Raises OutputError if the log can't be written; the lines are written the next time. Raises
        LedgerError if the ledger can't be read.
        """
        if self.target is None:
            return
        new = ledger.after(self._followed(ledger), _MOST_LINES)
        sent = 0
        try:
            for entry in new:
                self._write(_ledger_line(self.site, entry))
                sent += 1
        finally:
            if sent:
                last = new[sent - 1]
                write_bytes(work_folder(self.folder) / _MARK, f"{last.seq} {last.digest}".encode())

    def refused(self, run: str, code: str) -> None:
        """Write that this site takes no further part in a run; raises as `follow`."""
        text = f"{self.site} takes no further part in {run}"
        self._event("REFUSAL", {"run": run, "code": code}, text, severity=WARNING)

    def new_key(self, key: str, earlier: str) -> None:
        """Write that this site has another key; raises as `follow`.

        Parameters
        ----------
        key, earlier : str
            Public keys in hexadecimal.
        """
        facts = {"key": key, "earlier": earlier}
        self._event("KEY", facts, f"{self.site} has a new key", severity=WARNING)

    def _event(self, kind: str, facts: Mapping[str, object], text: str, severity: int) -> None:
        if self.target is not None:
            facts = {"site": self.site, **facts}
            self._write(line(self.now(), kind, facts, text, severity))

    def _followed(self, ledger: LedgerReader) -> int:
        """Return the number of the last line that was written, of this very ledger."""
        with suppress(*DAMAGED):
            text = (work_folder(self.folder) / _MARK).read_text(encoding="utf-8")
            seq, digest = text.split()
            if ledger.digest_at(int(seq)) == digest:
                return int(seq)
        return 0

    def _write(self, text: str) -> None:
        assert self.target is not None  # noqa: S101 - asked before
        try:
            if _is_socket(self.target):
                with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
                    log.setblocking(False)  # a log that does not read must not delay a round
                    log.connect(str(self.target))
                    log.send(text.encode())
                return
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
            handle = os.open(self.target, flags, 0o600)
            try:
                os.write(handle, f"{text}\n".encode())
            finally:
                os.close(handle)
        except OSError as error:
            raise OutputError(
                f"{self.target}: the security log can't be written ({error.strerror}). Correct "
                "security_log in site.yaml, or start the log."
            ) from error


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except FileNotFoundError:
        return False


def _ledger_line(site: str, entry: LedgerEntry) -> str:
    charge = entry.charge
    facts = {"site": site, "seq": entry.seq, "digest": entry.digest, "event": entry.event}
    if entry.event == STATE:
        facts |= {"state": charge.statistic, "serial": charge.round}
        kind = charge.stage.upper()
        text = f"{charge.stage} {charge.study or 'of the site'}: {charge.statistic or 'recorded'}"
    else:
        facts |= {"run": charge.run, "round": charge.round, "statistic": charge.statistic}
        facts |= {"unit": charge.unit, "mu": f"{charge.mu:.6g}"}
        kind = "LEDGER"
        text = f"{entry.event} {charge.run} round {charge.round}"
    facts |= {"study": charge.study, "key": charge.site, "centre": charge.centre}
    return line(entry.at, kind, facts, text, NOTICE)


def line(at: str, kind: str, facts: Mapping[str, object], text: str, severity: int) -> str:
    """Return a line of the security log as RFC 5424 has it.

    Parameters
    ----------
    at : str
        Time of the event in ISO 8601 with its zone; another text is written as unknown.
    kind : str
        The message's ID: one word of capital letters.
    facts : mapping
        Names and values of the structured data. Values may contain anything.
    text : str
        For people.
    severity : int
    """
    data = "".join(f' {name}="{escaped(value)}"' for name, value in facts.items() if value != "")
    host = "".join(c for c in socket.gethostname() if "!" <= c <= "~")[:255] or "-"
    head = f"<{8 * _FACILITY + severity}>1 {_time(at)} {host} site-agent {os.getpid()} {kind}"
    return f"{head} [{DATA}{data}] {printable(text, _MOST_VALUE)}"


def escaped(value: object) -> str:
    """Return a value for the security log: unprintable characters replaced, others escaped."""
    text = printable(value, _MOST_VALUE)
    for mark in '\\"]':
        text = text.replace(mark, f"\\{mark}")
    return text


def _time(at: str) -> str:
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return "-"
    return "-" if moment.tzinfo is None else moment.isoformat(timespec="seconds")
