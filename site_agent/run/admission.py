"""A site's choice of announced runs: approved, signed, and within policy and ledger.

When it takes no further part in a run, it sends only a code, and nothing about its data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path

from consortium import __version__
from consortium.engine.names import ANNOUNCEMENT, MOST_ANNOUNCEMENT, REFUSAL, Names
from consortium.engine.queries import read_announcement
from consortium.errors import (
    ConfigurationError,
    ConsortiumError,
    CopyError,
    DataError,
    DisagreementError,
    LedgerError,
    PrivacyError,
    ReleaseError,
    SignatureError,
    SoftwareError,
    StudyError,
    WithdrawnError,
)
from consortium.opened_study import OpenedStudy, open_signed
from consortium.secagg import CENTRE, seal, unseal
from site_agent.approval.approval import Approval, approvals
from site_agent.approval.folder_states import FolderStates
from site_agent.approval.permission import Permission, permit
from site_agent.config import SiteConfig
from site_agent.data.cap import Cap
from site_agent.data.people import left_out_here, site_tables
from site_agent.data.survey import in_turn
from site_agent.engines.base import Engine
from site_agent.layout import ENDED, LEFT_OUT, REFUSED
from site_agent.loading.open import open_dataset
from site_agent.loading.progress import Data, Drive, Loading
from site_agent.policy.policy import StudyRequest, refuse_by_policy
from site_agent.run.participation import Participation
from site_agent.run.setup import Site


@dataclass(eq=False)
class Admission:
    """A site's decisions on runs that a centre announces."""

    folder: Path
    """The site's."""
    config: SiteConfig
    site: Site
    engine: Engine
    """Engine that prepares data and computes sums over participants."""
    drive: Drive
    """Loads data in parallel with the agent's other work."""
    today: Callable[[], date]
    """The day, for approvals that expire."""
    _unfit: ConfigurationError | None = field(default=None, init=False)

    def refusing(self, why: ConfigurationError) -> Admission:
        """Return a copy that refuses every run that this site has a part in."""
        other = copy(self)
        other._unfit = why
        return other

    def admit(self, run: str, message: bytes) -> Participation | None:
        """Begin to take part in an announced run; None if this site has no part in it.

        Raises SignatureError if a run of an approved study is not announced by its centre. Raises
        ConfigurationError if the site's own settings are invalid. Raises ConsortiumError if the
        study is not as it was approved, or a rule of this site forbids the run.

        Parameters
        ----------
        message : bytes
            The announcement, from any sender.
        """
        seen = self.site.passed()
        tell = self.site.log.line_once
        signed = False
        approved = approvals(self.folder, self.site.identity, tell)
        for approval in approved:
            announced = _opened(run, message, approval)
            if announced is not None:
                signed = True
                if _agreed(read_announcement(announced), approval):
                    return self._attend(run, approval, announced, seen)
        if study_of(run) in {approval.study.study for approval in approved}:
            if not signed:  # another party may have written it, and the centre's may follow
                raise SignatureError(
                    "the announcement is not signed with an approved key of the consortium; the "
                    "site waits for a signed one. If this lasts, compare the roster with the "
                    "coordinator's."
                )
            raise StudyError(
                "the announced study or roster is not the one that was approved here. Compare the "
                "files and approve the new ones if you agree."
            )
        known = ", ".join(sorted(approval.study.study for approval in approved)) or "none"
        self.site.log.line_once(
            f"{run} is not approved here; it is ignored until its study is approved. Approved "
            f"studies: {known}."
        )
        return None

    def ready(self) -> list[Approval]:
        """Return the approved studies of which approval and policy allow a new run, now.

        Nothing of any data is read. There are none while the site's settings are invalid.
        """
        found: list[Approval] = []
        if self._unfit is not None:
            return found
        try:
            tell = self.site.log.line_once
            approved = approvals(self.folder, self.site.identity, tell)
        except ConsortiumError as error:
            self.site.log.line_once(str(error))
            return found
        for approval in approved:
            with suppress(ConsortiumError):  # reported in words when a run is announced
                self._check_rules(approval)
                found.append(approval)
        return found

    def open_data(self, opened: OpenedStudy) -> Data:
        """Return the data set of an approved study, unread."""
        config = self.config
        tables = site_tables(config)
        hook = in_turn(left_out_here(config.left_out, tables), self._states.left_out_before)
        cap = Cap.of(opened.study, self.site.name, self.site.identity)
        return open_dataset(
            source=config.dataset,
            opened=opened,
            cache=config.cache,
            engine=self.engine,
            without=hook,
            tables=tables,
            cap=cap,
        )

    def _attend(
        self, run: str, approval: Approval, announced: bytes, seen: float
    ) -> Participation | None:
        study = approval.study
        site = self.site
        if site.name not in study.sites or self._is_past(run):
            return None
        if self._unfit is not None:
            raise self._unfit
        site.anchor.check()
        self.settle_folder()
        if site.store.load(run, LEFT_OUT) is None:  # the run has no hold yet
            self._tell(self._states.settle_left_out(site.now()))
        permission = partial(self._permission, approval)
        centre = approval.keys[CENTRE].hex()
        permission()
        if (centre, run) not in site.ledger.runs(study.study, [centre]):
            self._check_rules(approval)
        opened = open_signed(approval)
        context = opened.context(run)
        if context.announcement != announced:
            raise StudyError(
                "the centre runs another version or another mask than this site "
                f"({__version__}). Install the same version and study folder."
            )
        loading = Loading(self.open_data(opened))
        self.drive(loading.steps())
        return Participation(site, context, loading, permission, seen)

    def settle_folder(self) -> None:
        """Compare the site's folder with its ledger. Raises errors as `FolderStates.settle`.

        The hold of a run that ended or was refused here is released, also if the agent was
        stopped before it did so and the run is no longer on the exchange.
        """
        site = self.site
        for charge in site.ledger.holds_of([site.identity.public.hex()]):
            if any(site.store.load(charge.run, end) is not None for end in (ENDED, REFUSED)):
                release(site, charge.run)
        self._tell(self._states.settle(self.site.now()))

    def _tell(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.site.log.line_once(line)

    @property
    def _states(self) -> FolderStates:
        return FolderStates(self.folder, self.config, self.site.identity, self.site.ledger)

    def _is_past(self, run: str) -> bool:
        """Return whether a run was refused here, or ended with this site or without it."""
        site = self.site
        refused = site.store.load(run, REFUSED)
        if refused is not None:
            post_refusal(site, run, refused)
            return True
        if site.store.load(run, ENDED) is not None:
            return True
        joined = site.store.load(run, "present") is not None
        if joined or "end" not in site.exchange.children(f"runs/{run}"):
            return False
        release(site, run)  # if the agent was stopped between the hold and its first message
        return True

    def _check_rules(self, approval: Approval) -> None:
        """Refuse a new run that approval or policy don't cover; nothing of any data is read."""
        site = self.site
        self._permission(approval).check_new_run(site.ledger)
        refuse_by_policy(site.policy, approval.study, None, StudyRequest(site.name))

    def _permission(self, approval: Approval) -> Permission:
        return permit(self.folder, self.site.identity, approval, self.today())


def study_of(run: str) -> str:
    """Return the name of the study in the name of an announced run."""
    return run.rsplit("-", 1)[0]


def _opened(run: str, message: bytes, approval: Approval) -> bytes | None:
    """Return the content of an announcement, if the approved centre signed it."""
    with suppress(SignatureError):
        return unseal(
            message,
            approval.keys,
            run=run,
            kind=ANNOUNCEMENT,
            limit=MOST_ANNOUNCEMENT,
            sender=CENTRE,
        ).body
    return None


def _agreed(announced: Mapping[str, object], approval: Approval) -> bool:
    """Return whether the study and the roster are those that the site's staff approved."""
    keys = {name: key.hex() for name, key in approval.keys.items()}
    ours = (approval.study.model_dump(mode="json"), approval.file, keys)
    return (announced.get("study"), announced.get("file"), announced.get("keys")) == ours


def send_refusal(site: Site, run: str, error: ConsortiumError) -> None:
    """Send the centre a refusal of further participation, with a code as the only reason.

    Raises ConsortiumError if it can't be stored or put on the exchange.
    """
    notice = json.dumps({"code": error.code, "reason": public_reason(error)}).encode()
    site.store.save(run, REFUSED, notice)
    with suppress(LedgerError):  # which may be the cause of the refusal
        release(site, run)
    post_refusal(site, run, notice)


def release(site: Site, run: str) -> None:
    """Release a run's hold in the ledger, if the site does not take part."""
    site.ledger.release(run, site.identity.public.hex(), site.now())


def post_refusal(site: Site, run: str, notice: bytes) -> None:
    """Send a site's signed refusal of a run to the exchange."""
    message = seal(
        key=site.identity.key, run=run, sender=site.name, kind=REFUSAL, round=0, body=notice
    )
    site.exchange.put(Names(run).refusal(site.name), message)


def public_reason(error: Exception) -> str:
    """Return the public reason of an error: no data, no file name and no label."""
    if isinstance(error, DataError):
        return "its data set can't be used. See the site's log"
    if isinstance(error, CopyError):
        return "another copy of its folder has answered in its name. See the site's log"
    if isinstance(error, LedgerError):
        return "its ledger can't be used. See the site's log"
    if isinstance(error, DisagreementError):
        return "its plan differs from the others'. Compare the versions of software and libraries"
    if isinstance(error, ReleaseError):
        return "a release does not match the sites' signed messages. See the site's log"
    if isinstance(error, WithdrawnError):
        return "its staff withdrew or replaced their approval"
    if isinstance(error, PrivacyError | StudyError):
        return "its own rules refuse the study. See the site's log"
    if isinstance(error, SoftwareError):
        return "its software has a fault; this is not a refusal. See the site's log"
    return "its machine or its settings have a fault; this is not a refusal. See the site's log"
