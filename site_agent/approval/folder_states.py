"""The states of a site's folder, compared with the lines of its ledger.

Three states of the folder decide which questions a site answers: each study's newest approval or
withdrawal, the newest roster that was seen, and the participants in the hospital's left-out table.
A restored backup has older ones. Each is recorded in the ledger, and compared with it before a run
begins and whenever a command changes it.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from consortium.base.formatting import count
from consortium.errors import ConfigurationError, DataError, StudyError
from consortium.membership.keys import Identity
from site_agent.approval.approval import approvals, newest_serials, raise_serials
from site_agent.config import SiteConfig
from site_agent.data.people import read_left_out, reasons_left_out, site_tables
from site_agent.data.survey import SkippedPerson
from site_agent.enrolment.pinned_consortium import PinnedConsortium, read_pinned
from site_agent.enrolment.request import earlier_key
from site_agent.layout import APPROVED, CONFIG, PINNED
from site_agent.ledger.ledger import Ledger
from site_agent.ledger.states import State


@dataclass(frozen=True)
class FolderStates:
    """The states of one site's folder, and their lines in its ledger."""

    folder: Path
    config: SiteConfig
    identity: Identity
    ledger: Ledger

    def settle(self, at: str) -> list[str]:
        """Compare the folder with the ledger, and record the newer states of the folder.

        An approval that is older than the ledger's newest line of its study does not count from now
        on. Raises StudyError if the roster is older than the ledger's. Raises LedgerError if the
        ledger can't be used.

        Parameters
        ----------
        at : str
            Time, for people.

        Returns
        -------
        list of str
            A sentence for each approval that does not count any more.
        """
        lines = self.settle_approvals(at)
        self.settle_roster(at)
        return lines

    def verify(self) -> None:
        """Compare roster and left-out table with the ledger, read-only; raises errors as `settle`.

        An approval that is older than the ledger's newest line of its study is a StudyError.
        """
        for sentence in self.older_approvals().values():
            raise StudyError(sentence)
        self.check_roster(read_pinned(self.folder))
        self.check_left_out()

    # -- approvals --------------------------------------------------------------------------

    def settle_approvals(self, at: str) -> list[str]:
        """Reject approvals that are older than their newest line, and record newer ones.

        Holds are released if the run's study is no longer approved.
        """
        lines = [*self.older_approvals().values()]
        recorded = self._recorded_serials()
        raise_serials(self.folder, self.identity, recorded)
        for study, (serial, is_approved) in newest_serials(self.folder, self.identity).items():
            if serial > recorded.get(study, 0):
                word = "approved" if is_approved else "withdrawn"
                state = State("approval", self._key, study=study, serial=serial, word=word)
                self.ledger.record(state, at)
        self._release_withdrawn(at)
        return lines

    def _release_withdrawn(self, at: str) -> None:
        """Release every hold of a run without approval or with an earlier key.

        Such a run can't continue here. Its end may never be received, since its coordinator may
        remove the run from the exchange. Nothing is released while a record can't be read.
        """
        unread: list[str] = []
        found = approvals(self.folder, self.identity, unread.append)
        approved = {each.study.study for each in found}
        for charge in () if unread else self.ledger.holds_of(self._keys):
            if charge.site != self._key or charge.study not in approved:
                self.ledger.release(charge.run, charge.site, at)

    def _recorded_serials(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for state in self.ledger.states("approval", [self._key]):
            found[state.study] = max(state.serial, found.get(state.study, 0))
        return found

    def older_approvals(self) -> dict[str, str]:
        """Return a sentence for each study whose approval is older than its newest line."""
        recorded = self._recorded_serials()
        found = dict[str, str]()
        for study, (serial, is_approved) in newest_serials(self.folder, self.identity).items():
            newest = recorded.get(study, 0)
            if is_approved and serial < newest:
                found[study] = (
                    f"{self.folder / APPROVED / study}.json: an approval must be the newest to "
                    f"count, and the ledger records number {newest} after this number {serial}: "
                    "the file is from a backup. Approve the study again if you agree to it."
                )
        return found

    # -- the roster -------------------------------------------------------------------------

    def settle_roster(self, at: str) -> None:
        """Refuse a roster that is older than the newest recorded one; record a newer one."""
        trust = read_pinned(self.folder)
        self.check_roster(trust)
        if trust is not None and (self._roster is None or not _is_recorded(trust, self._roster)):
            self.accept_roster(trust, at)

    def accept_roster(self, trust: PinnedConsortium, at: str) -> None:
        """Record a consortium and its roster, whatever was recorded before."""
        word = f"number {trust.serial}"
        centre = trust.centre.hex()
        digest = trust.roster
        state = State(
            kind="roster",
            site=self._key,
            centre=centre,
            study="",
            serial=trust.serial,
            word=word,
            digest=digest,
        )
        self.ledger.record(state, at)

    def check_roster(self, trust: PinnedConsortium | None) -> None:
        """Refuse a consortium whose roster is older than the newest recorded one.

        Raises StudyError.

        Parameters
        ----------
        trust : PinnedConsortium or None
            As the folder has it, or as it shall be written.
        """
        newest = self._roster
        if newest is None:
            return
        descends = trust is not None and newest.centre in trust.centres
        if trust is None or not descends or trust.serial < newest.serial:
            found = "there is none" if trust is None else f"this is number {trust.serial}"
            raise StudyError(
                f"{self.folder / PINNED}: the roster must be number {newest.serial} or newer, "
                f"which the ledger records for this site's consortium, and {found}. Restore the "
                "newest file or approve a study with the newest roster. To change the consortium, "
                "remove the file and join again."
            )
        if trust.serial == newest.serial and trust.roster != newest.digest:
            raise StudyError(
                f"{self.folder / PINNED}: the roster with number {newest.serial} must be the one "
                "that the ledger records, and this is another one. Ask the coordinator for a "
                "roster with a new number."
            )

    @property
    def _roster(self) -> State | None:
        found = self.ledger.states("roster", self._keys)
        return found[-1] if found else None

    # -- the left-out table -----------------------------------------------------------------

    def settle_left_out(self, at: str) -> list[str]:
        """Record the excluded participants: those in the table and those recorded before.

        To be called once before each run. A line is written whatever the table contains. So the
        number of lines in the ledger, which is public, doesn't show whether a participant was
        added. A table that lacks participants refuses nothing for the same reason. They stay
        excluded.

        Returns
        -------
        list of str
            A sentence about the participants who are missing in the table, if there are any.
        """
        table = self.config.left_out
        newest = self._listed
        before = newest.persons if newest else ""
        try:
            labels = [*reasons_left_out(table, site_tables(self.config))] if table else []
        except DataError:  # a run then has no data
            labels = []
            missing = 0
        else:
            missing = self.ledger.count_missing(before, labels)
        self._record_left_out(self.ledger.enroll(labels, before), at)
        return [self._missing_sentence(missing)] if missing else []

    def left_out_before(self, labels: Sequence[str]) -> Iterator[SkippedPerson]:
        """Yield participants whom the ledger's newest record of the left-out table excludes."""
        newest = self._listed
        for label in self.ledger.members(newest.persons, labels) if newest else ():
            detail = f"sub-{label} is excluded by the record of the left-out table in the ledger."
            yield SkippedPerson(label, "left-out-here", detail)

    def check_left_out(self) -> None:
        """Refuse a left-out table that lacks a participant of the recorded one.

        A table that can't be read raises nothing here; a run then has no data. Raises
        ConfigurationError.
        """
        newest = self._listed
        with suppress(DataError):
            labels = self._read_left_out()
            missing = self.ledger.count_missing(newest.persons, labels) if newest else 0
            if missing:
                raise ConfigurationError(self._missing_sentence(missing))

    def confirm_left_out(self, at: str) -> None:
        """Record the left-out table as it is now, also if it lacks participants.

        Raises TableError if the table can't be read.
        """
        self._record_left_out(self.ledger.enroll(self._read_left_out()), at)

    def count_left_out(self) -> tuple[int, int]:
        """Count the participants in the left-out table, and those who are missing there.

        Raises TableError if the table can't be read.
        """
        labels = self._read_left_out()
        newest = self._listed
        return len(labels), self.ledger.count_missing(newest.persons, labels) if newest else 0

    def _record_left_out(self, group: str, at: str) -> None:
        self.ledger.record(State("left-out", self._key, word="recorded", persons=group), at)

    def _missing_sentence(self, missing: int) -> str:
        return (
            f"{self.config.left_out or self.folder / CONFIG}: the left-out table must name "
            "everyone whom it named in the last run, and "
            f"{count(missing, 'participant')} {'is' if missing == 1 else 'are'} missing, who "
            f"{'stays' if missing == 1 else 'stay'} left out. Restore the newest table, or confirm "
            "the shorter one with 'site-agent left-out --confirm'."
        )

    def _read_left_out(self) -> list[str]:
        table = self.config.left_out
        return [] if table is None else [*read_left_out(table, site_tables(self.config))]

    @property
    def _listed(self) -> State | None:
        found = self.ledger.states("left-out", self._keys)
        return found[-1] if found else None

    @property
    def _key(self) -> str:
        return self.identity.public.hex()

    @cached_property
    def _keys(self) -> frozenset[str]:
        earlier = earlier_key(self.folder)
        return frozenset({self._key} | ({earlier.hex()} if earlier else set()))


def _is_recorded(trust: PinnedConsortium, state: State) -> bool:
    return (trust.centre.hex(), trust.serial, trust.roster) == (
        state.centre,
        state.serial,
        state.digest,
    )
