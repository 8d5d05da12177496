"""Sums, lines and their order in a site's ledger, read as a file that others share."""

import math
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np

from consortium.errors import LedgerError
from site_agent.ledger.entries import (
    EMPTY,
    Charge,
    Head,
    LedgerEntry,
    follow,
    standing_reservations,
)
from site_agent.ledger.file import LedgerFile
from site_agent.ledger.limits import OneStudy, Sums, counted
from site_agent.ledger.persons import PersonSums, exact_root, exact_square
from site_agent.ledger.states import STATE, Kind, State

_SETTLE_EVERY = 1.0  # s between two updates of the main file


class LedgerReader:
    """Reader of a ledger, which is safe to share among threads and processes.

    The reader of a sum keeps SQLite's write lock meanwhile. So nothing is added between. Raises
    LedgerError if it can't be opened or has another layout. Altered lines show at the first use.

    Parameters
    ----------
    path : Path
        The database; made if missing, readable by its owner only.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._file: LedgerFile | None = None
        self._settled = -math.inf
        try:
            path.touch(mode=0o600)
        except OSError as error:
            raise LedgerError(
                f"{path} can't be opened ({error.strerror}). Check its folder and rights."
            ) from error
        with self._using() as file, _transaction(file):
            file.lay_out()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._file = None

    def total(self, dataset: str, unit: str, labels: Sequence[str] | None = None) -> float:
        """Return μ of everything reserved or spent that counts for the most charged participant.

        The account of single volumes also counts studies that protect whole participants.

        Parameters
        ----------
        labels : sequence of str, optional
            The participants (default: all who were ever charged).
        """
        with self._writing() as file:
            return file.sums.total(dataset, unit, None if labels is None else file.rows(labels))

    def most_charged(self, unit: str) -> float:
        """Return μ of the same for the most charged of all participants, over all data sets."""
        with self._writing() as file:
            return file.sums.total("", unit, file.sums.everybody)

    def course(self, unit: str) -> list[tuple[str, float]]:
        """Return the time of each run's last line, and μ of the most charged participant by then.

        The most charged participant may be another one each time, which is not revealed.
        """
        with self._writing() as file:  # no longer than copying takes: an agent may wait meanwhile
            lines = list(file.read())
            groups = {line.charge.persons for line in lines if line.charge.persons}
            members = {group: file.members(group).copy() for group in groups}
        sums = Sums(members.__getitem__)
        found = []
        charged = (each for each in enumerate(lines) if each[1].event != STATE)
        last = {line.charge.run: place for place, line in charged}
        for place, line in enumerate(lines):
            sums.add(line)
            if last.get(line.charge.run) == place:
                found.append((line.at, sums.total("", unit, sums.everybody)))
        return found

    def outsider_total(self, unit: str, labels: Sequence[str] | None = None) -> float:
        """Return μ of the same against a party that sees only the studies' releases.

        Parameters
        ----------
        labels : sequence of str, optional
            The participants (default: all who were ever charged).
        """
        return self._most_of_rounds(unit, lambda charge: charge.outsider, labels)

    def charged_total(self, unit: str) -> float:
        """Return the μ of the charged rounds, without holds, for the most charged participant."""
        return self._most_of_rounds(unit, lambda charge: charge.mu, None)

    def _most_of_rounds(
        self, unit: str, loss: Callable[[Charge], float], labels: Sequence[str] | None
    ) -> float:
        with self._writing() as file:
            persons = PersonSums(file.members)
            before = 0
            for charge in (line.charge for line in standing_reservations(file.read())):
                if charge.unit in counted(unit):
                    square = exact_square(loss(charge))
                    if charge.persons:
                        persons.add(unit, charge.persons, square)
                    else:  # from before losses were kept by participant
                        before += square
            ids = persons.everybody if labels is None else file.rows(labels)
            return exact_root(before + persons.most([unit], ids))

    def over_limit(
        self,
        labels: Sequence[str],
        totals: Mapping[str, float],
        unit: str,
        price: float,
        study: OneStudy | None = None,
    ) -> list[str]:
        """Return the participants who have no budget left for another loss.

        It depends only on labels and earlier charges, never on participants' data.

        Parameters
        ----------
        totals : mapping of str to float
            μ by unit, as in `LedgerLimits`.
        unit : str
            Unit of the loss.
        price : float
            μ.
        study : OneStudy, optional
            The study, with its own limit.
        """
        with self._writing() as file:
            return file.over_limit(labels, totals, unit, price, study)

    def study_total(
        self,
        dataset: str,
        unit: str,
        study: str,
        centres: Collection[str],
        labels: Sequence[str] | None = None,
    ) -> float:
        """Return μ of one consortium's study for the most charged participant, over all its runs.

        Parameters
        ----------
        centres : collection of str
            Public keys that the consortium has or had, in hexadecimal.
        labels : sequence of str, optional
            The participants (default: all who were ever charged).
        """
        with self._writing() as file:
            persons = None if labels is None else file.rows(labels)
            return file.sums.study(dataset, unit, study, centres, persons)

    def used(self, study: str, centres: Collection[str]) -> int:
        """Return the number of runs of a study that were charged; parameters as `study_total`."""
        with self._writing() as file:
            return file.sums.used(study, centres)

    def runs(self, study: str, centres: Collection[str]) -> set[tuple[str, str]]:
        """Return the runs of a study that have reservations, on any data set.

        Each is the consortium's key at that time and the run's name; the parameters are those
        of `study_total`.
        """
        with self._writing() as file:
            return file.sums.runs(study, centres)

    def under_way(self, study: str, centres: Collection[str]) -> set[tuple[str, str]]:
        """Return the runs of a study that were charged or have a hold, as `runs`."""
        with self._writing() as file:
            return file.sums.under_way(study, centres)

    def charged_rounds(self, run: str, site: str, centre: str) -> list[int]:
        """Return the rounds of one site's run that are charged: reserved, and not void.

        Parameters
        ----------
        run : str
            Name of the run.
        site : str
            Public key of the site, in hexadecimal.
        centre : str
            Public key of the coordinator, in hexadecimal.
        """
        with self._writing() as file:
            lines = standing_reservations(file.read())
        charges = (line.charge for line in lines)
        return sorted(c.round for c in charges if (c.run, c.site, c.centre) == (run, site, centre))

    def states(self, kind: Kind, sites: Collection[str]) -> list[State]:
        """Return the states of a kind that some sites have recorded, oldest first.

        Parameters
        ----------
        kind : str
            As in `State`.
        sites : collection of str
            Public keys of the sites, in hexadecimal.
        """
        with self._writing() as file:
            return file.states(kind, sites)

    def count_missing(self, group: str, labels: Sequence[str]) -> int:
        """Count the participants of a group who are not among some labels.

        Parameters
        ----------
        group : str
            Digest of the group; empty for an empty group.
        labels : sequence of str
            Labels in any spelling.
        """
        with self._writing() as file:
            rows = file.rows(labels)  # first, since it joins spellings
            return int(np.setdiff1d(file.members(group), rows).size) if group else 0

    def holds_of(self, sites: Collection[str]) -> list[Charge]:
        """Return the held losses of the runs of some sites.

        Parameters
        ----------
        sites : collection of str
            Public keys of the sites, in hexadecimal.
        """
        with self._writing() as file:
            return [charge for charge in file.sums.holds if charge.site in sites]

    def members(self, group: str, labels: Sequence[str]) -> list[str]:
        """Return those of some labels, in any spelling, who are in a group.

        Parameters
        ----------
        group : str
            Digest of the group; empty for an empty group.
        """
        with self._writing() as file:
            return file.named_in(group, labels) if group else []

    def knows_any(self, labels: Sequence[str]) -> bool:
        """Return whether any of these participants was charged, or no participant at all was."""
        with self._writing() as file:
            rows = file.rows(labels)
            charged = file.sums.everybody
            return not len(charged) or bool(np.isin(rows, charged).any())

    def has_answered(self, sites: Collection[str]) -> bool:
        """Return whether an agent with one of these public keys (hexadecimal) answered a round."""
        with self._using() as file:
            rows = file.connection.execute("SELECT DISTINCT site FROM entries WHERE event='spend'")
            return any(site in sites for (site,) in rows)

    def lacks(self, runs: Collection[str]) -> list[str]:
        """Return those of the given runs that have no entry in the ledger."""
        with self._using() as file:
            known = {run for (run,) in file.connection.execute("SELECT DISTINCT run FROM entries")}
        return sorted({*runs} - known)

    def head(self) -> Head:
        """Return the number of lines and the last one's digest."""
        with self._writing() as file:
            return file.head

    def digest_at(self, seq: int) -> str | None:
        """Return the digest of a line, or None if the ledger is shorter."""
        with self._using() as file:
            return file.digest_at(seq)

    def entries(self) -> list[LedgerEntry]:
        """Return all lines, oldest first.

        Raises LedgerError if a line was changed, removed or inserted.
        """
        with self._using() as file:
            return list(follow(EMPTY, file.read(), str(self.path)))

    def after(self, seq: int, most: int) -> list[LedgerEntry]:
        """Return the first lines after a number, unchecked."""
        with self._using() as file:
            return list(islice(file.read(seq), most))

    def verify(self) -> None:
        """Check every line again, at the start and before a run, since it takes 20 µs a line.

        Raises LedgerError if a line was altered, or the ledger was closed.
        """
        self.entries()
        with self._writing() as file:
            file.check_halt()

    @contextmanager
    def _writing(self) -> Iterator[LedgerFile]:
        """Hold the write lock; lines that others added since the last time are checked first."""
        with self._using() as file:
            try:
                with _transaction(file):
                    file.catch_up()
                    yield file
            except BaseException:  # lines that were read may be undone: all is read again
                self.close()
                raise
            file.catch_up()  # the line that was just written must also be present the next time
            if time.monotonic() - self._settled > _SETTLE_EVERY:
                file.settle()
                self._settled = time.monotonic()

    @contextmanager
    def _using(self) -> Iterator[LedgerFile]:
        with self._lock:
            try:
                self._file = LedgerFile(self.path) if self._file is None else self._file.current()
                yield self._file
            except sqlite3.Error as error:
                advice = (
                    "Another program has it open for changes. Try again when that has ended."
                    if getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")
                    else "Check the disk and restore a backup."
                )
                raise LedgerError(f"{self.path} can't be used ({error}). {advice}") from error


@contextmanager
def _transaction(file: LedgerFile) -> Iterator[None]:
    """Open a transaction: all or nothing is written, and no other process writes meanwhile."""
    file.connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        file.connection.execute("COMMIT")
    finally:
        if file.connection.in_transaction:
            file.connection.execute("ROLLBACK")
