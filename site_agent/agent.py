"""The site's service: watches the exchange and takes part in approved runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from consortium import __version__
from consortium.engine.clock import Clock
from consortium.engine.names import ANNOUNCEMENT, MOST_ANNOUNCEMENT, REFUSAL, Names
from consortium.engine.queries import read_announcement
from consortium.engine.run_context import RunContext
from consortium.engine.wait_file import WaitFile
from consortium.errors import (
    ConsortiumError,
    CopyError,
    EngineError,
    ExchangeError,
    ProtocolError,
    SignatureError,
    SiteError,
    StudyError,
)
from consortium.files.lock import only_one
from consortium.membership.consent import post_consent, read_consents
from consortium.membership.keys import load_identity
from consortium.secagg import CENTRE, seal, unseal
from consortium.space.study_space import study_space
from consortium.study.spec import Study
from site_agent.approval.approval import Approval, approvals, post_withdrawn
from site_agent.approval.choosing import choice_here
from site_agent.approval.permission import Permission, permit
from site_agent.config import SiteConfig
from site_agent.data.people import candidates, left_out_here
from site_agent.data.survey import Skipped, Without, in_turn, nobody, over_the_limit
from site_agent.engines.open import open_engine
from site_agent.enrolment.request import earlier_key
from site_agent.layout import CACHE, ENDED, LEFT_OUT, STORE
from site_agent.ledger.anchor import LedgerAnchor
from site_agent.ledger.ledger import Ledger
from site_agent.ledger.totals import left_out, spent_in
from site_agent.loading.open import open_dataset
from site_agent.loading.progress import Data, Drive, Loading, in_thread
from site_agent.page.keeper import PageKeeper
from site_agent.policy.policy import Policy
from site_agent.policy.refusals import Request, check
from site_agent.run.ahead import Ahead
from site_agent.run.message_store import MessageStore
from site_agent.run.participation import Participation, public_reason
from site_agent.run.site import Site
from site_agent.run.told import Told

_LOOK_EVERY = 0.25  # s
_RUN = re.compile(r"[a-z0-9][a-z0-9-]{0,127}")


@dataclass
class Agent:
    """One site's agent.

    Parameters
    ----------
    folder : Path
        The site's own folder, with ``site.yaml`` and keys.
    clock : Clock
    now : callable
        The time of day, with its time zone.
    log : callable
        Receives lines for the site's own log.
    drive : Drive
        Has data loaded, and the page written, beside the agent's other work.
    page : bool
        Whether the site's page is written whenever its state changes, whatever ``site.yaml`` says.
    """

    folder: Path
    clock: Clock
    now: Callable[[], datetime]
    log: Callable[[str], None]
    drive: Drive = in_thread
    page: bool = False
    failures: list[ConsortiumError] = field(default_factory=list)

    def __post_init__(self) -> None:
        config = SiteConfig.load(self.folder)
        self.config = config
        self.policy = Policy.load(self.folder)
        identity = load_identity(self.folder)
        ledger, exchange = Ledger(config.ledger), config.open_exchange()
        self._told = Told(self.folder, self._time)
        self.site = Site(
            config.name,
            identity,
            str(config.dataset.resolve()),
            self.policy,
            ledger,
            LedgerAnchor(exchange, identity, config.name, ledger, earlier_key(self.folder)),
            MessageStore(self.folder / STORE),
            exchange,
            self._time,
            self.log,
            self._tell,
        )
        self._engine = open_engine(config)
        self._runs: dict[str, Participation | None] = {}
        self._logged: set[str] = set()
        self._ahead = Ahead(config.dataset, self._open, self.drive, self.clock, self.log)
        self._wait_file = WaitFile(self.folder, self.clock.wall)
        self._page = PageKeeper(self.folder, self.clock, self.now, self._log_once, self.drive)
        self._begun, self._prepared = False, False
        self._looked = 0.0

    def work(self, *, once: bool, idle: float = float("inf")) -> None:
        """Take part in runs until told to stop.

        Parameters
        ----------
        once : bool
            Return when the first run that this site took part in has ended.
        idle : float
            Give up after so many seconds without anything to do.

        Raises
        ------
        ConsortiumError
            With ``once``: what ended this site's part before its time.
        """
        try:
            with only_one(self.folder, "agent"):
                self._check_halt()
                if not once:
                    self._tell(f"the agent of {self.config.name} is at work; Ctrl-C stops it")
                while True:
                    self._await_work(idle)
                    if once and self._over():
                        return
        finally:
            if self._page.begun:  # and says that the agent is not at work any more
                self._page.write()

    def _await_work(self, idle: float) -> None:
        start = self.clock.now()
        self._begin()
        for _ in self.clock.polls(idle, self.site.exchange.pace):
            if self.round_trip():
                self._wait_file.clear()
                self._keep_page()
                return
            self._show_wait(self.clock.now() - start)
            self._keep_page()
        raise SiteError(
            f"{self.config.name}: nothing to do for {idle:g} s; start the study at the "
            "centre, or look at its state with 'consortium status'."
        )

    def _show_wait(self, waited: float) -> None:
        """Write down what each run waits for, and say so once the centre is overdue."""
        under_way = {r: p for r, p in self._runs.items() if p is not None and p.ended is None}
        if not under_way:
            self._show_ahead(waited)
        for run, participation in under_way.items():
            timing = participation.timing
            ready = timing.ready if participation.starts else 0.0  # others may be loading
            left = timing.join + ready + 2 * timing.answer - waited
            if participation.loads:
                self._wait_file.show(run, waited, left, {"this site": participation.loads})
                continue
            self._wait_file.show(run, waited, left, {"centre": participation.awaited})
            if left < 0:
                self._tell_once(
                    f"{run}: {participation.awaited} is overdue; ask the coordinator whether the "
                    "study goes on."
                )

    def _show_ahead(self, waited: float) -> None:
        """Write down how far data are that are loaded before any run."""
        study, words = self._ahead.study, self._ahead.words
        if words:
            self._wait_file.show(study, waited, 0.0, {"this site": words})
        elif self._prepared:
            self._wait_file.clear()
        self._prepared = bool(words)

    def _keep_page(self) -> None:
        """Write the site's page anew, if it is wanted and anything on it changed."""
        if self.config.page or self.page:
            runs = [p for p in self._runs.values() if p is not None]
            answered = sum(len(p.rounds.sent) for p in runs if p.rounds is not None)
            self._page.look((self._told.many, answered, self._wait_file.shown))

    def _begin(self) -> None:
        """Check the ledger against the exchange, and tell what was approved here; once."""
        if self._begun:
            return
        try:
            self.site.anchor.check()
            trouble = self.site.anchor.post()  # under a key that may be new
            if trouble is not None:
                self._log_once(str(trouble))
            self.post_consents()
            self._begun = True
        except ExchangeError as error:  # it is tried again before anything else is done
            self._log_once(str(error))

    def post_consents(self) -> None:
        """Let the coordinator know what is approved here and what no longer is, unless it knows.

        Raises
        ------
        ExchangeError
            If the exchange can't be used.
        """
        name, exchange = self.config.name, self.site.exchange
        post_withdrawn(self.folder, self.site.identity, name, exchange)
        for approval in approvals(self.folder, self.site.identity):
            if name not in approval.study.sites:
                continue
            keys = {name: self.site.identity.public}
            study = approval.study
            consent = approval.consent(name)
            if read_consents(exchange, study, keys)[name] != consent:
                post_consent(exchange, self.site.identity.key, study.study, consent)

    def _over(self) -> bool:
        if self.failures:
            raise self.failures[0]
        ended = [a.ended for a in self._runs.values() if a is not None and a.ended is not None]
        for end in ended:
            if not end.complete:
                raise SiteError(f"The centre gave the run up: {end.reason}")
        return bool(ended)

    def round_trip(self) -> bool:
        """Look at every run once; True if anything was done.

        Raises
        ------
        CopyError
            If this site takes no further part in anything.
        """
        self._check_halt()
        self._ahead.look(self._may_begin)
        opens = self.policy.opens_at(self.now())
        if opens is not None:
            self._tell_once(f"policy.yaml: field 'hours': nothing is answered before {opens}.")
            return False
        done = False
        for run in self._announced():
            if run not in self._runs:
                done |= self._guarded(run, partial(self._meet, run))
            participation = self._runs.get(run)
            if participation is not None and participation.ended is None:
                done |= self._guarded(run, participation.advance)
                if participation.ended is not None:
                    self._guarded(run, partial(self._note_end, run))
                    outcome = participation.ended.outcome
                    self._tell(f"{run} has ended: {outcome}; {participation.cost}")
        return done

    def _check_halt(self) -> None:
        """Do nothing more once another copy of this folder was found; a restart changes nothing."""
        if self.site.store.halted is not None:
            raise CopyError(self.site.store.halted)

    def _note_end(self, run: str) -> bool:
        self.site.ledger.settle()
        self.site.store.save(run, ENDED, b"")
        return True

    def _announced(self) -> list[str]:
        """Runs on the exchange; none while it can't be read.

        While this site is in a run, others are looked for now and then only.
        """
        now = self.clock.now()
        busy = [run for run, a in self._runs.items() if a is not None and a.ended is None]
        if busy and now - self._looked < _LOOK_EVERY:
            return busy
        self._looked = now
        try:
            found = self.site.exchange.children("runs")
        except ExchangeError as error:
            self._log_once(str(error))
            return []
        return [run for run in found if _RUN.fullmatch(run)]

    def _guarded(self, run: str, act: Callable[[], bool]) -> bool:
        """Wait on trouble that may pass; refuse the run on any other."""
        try:
            return act()
        except (ProtocolError, ExchangeError) as error:
            self._log_once(f"{run}: {error}")
            return False
        except EngineError as error:  # taken up anew, from what is stored
            self._log_once(f"{run}: {error}")
            self._runs.pop(run, None)
            return False
        except CopyError as error:
            self.site.store.halt(str(error))
            self._give_up(run, error)
            raise
        except ConsortiumError as error:
            self._give_up(run, error)
        except Exception as error:  # nothing that a centre sends may end the agent
            trouble = f"{type(error).__name__}: {error}"
            self._give_up(run, SiteError(f"{trouble}; this is a fault of the software, report it."))
        return True

    def _give_up(self, run: str, error: ConsortiumError) -> None:
        self._log_once(f"{run}: {error}")
        self._keep(f"{run} goes on without this site: {public_reason(error)}")
        self.failures.append(error)
        self._runs[run] = None
        self._refuse(run, error)

    def _meet(self, run: str) -> bool:
        """Take up a newly announced run, if it is an approved one."""
        message = self.site.exchange.get(Names(run).study(), MOST_ANNOUNCEMENT)
        if message is None:
            return False
        approved = approvals(self.folder, self.site.identity)
        signed = False
        for approval in approved:
            try:
                body = unseal(
                    message,
                    approval.keys,
                    run=run,
                    kind=ANNOUNCEMENT,
                    limit=MOST_ANNOUNCEMENT,
                    sender="centre",
                ).body
            except SignatureError:
                continue
            signed = True
            if _agreed(read_announcement(body), approval):
                self._runs[run] = self._attend(run, approval, body)
                return True
        if run.rsplit("-", 1)[0] in {approval.study.study for approval in approved}:
            if not signed:  # whoever wrote that, it need not be the last word
                raise SignatureError(
                    "the announcement is not signed with an approved key of the consortium; it is "
                    "waited for, so compare the roster with the coordinator's if that lasts."
                )
            raise StudyError(
                "the announced study or roster is not the one that was approved here; compare the "
                "files and approve the new ones if you agree."
            )
        self._tell_once(f"{run} is not approved here; it is left alone.")
        self._runs[run] = None
        return False

    def _attend(self, run: str, approval: Approval, announced: bytes) -> Participation | None:
        study = approval.study
        if self.config.name not in study.sites:
            return None
        refused = self.site.store.load(run, "refused")
        if refused is not None:
            self._post_refusal(run, refused)
            return None
        if self._is_past(run):
            return None
        self.site.anchor.check()
        permission, centre = partial(self._permission, approval), approval.keys[CENTRE].hex()
        permission()
        if (centre, run) not in self.site.ledger.runs(study.study, [centre]):
            self._check_begin(approval)
        space = study_space(study, approval.folder)
        context = RunContext(run, study, approval.keys, space.digest, space.extent, approval.file)
        if context.announcement != announced:
            raise StudyError(
                "the centre runs another version or another mask than this site "
                f"({__version__}); install the same version and study folder."
            )
        loading = Loading(self._open(approval, partial(self._left_out, run, study)))
        self.drive(loading.steps())
        return Participation(self.site, context, loading, permission)

    def _open(self, approval: Approval, without: Without = nobody) -> Data:
        study, config = approval.study, self.config
        space, cache = study_space(study, approval.folder), self.folder / CACHE
        hook = in_turn(left_out_here(config.left_out), without)
        return open_dataset(config.dataset, study, space, cache, self._engine, hook)

    def _left_out(self, run: str, study: Study, labels: Sequence[str]) -> Iterable[Skipped]:
        """Who is left out of a run; settled once, since the run's own charges count later."""
        stored = self.site.store.load(run, LEFT_OUT)
        if stored is None:
            stored = json.dumps(left_out(self.site.ledger, self.policy, study, labels)).encode()
            self.site.store.save(run, LEFT_OUT, stored)
        return [over_the_limit(str(label)) for label in json.loads(stored)]

    def _may_begin(self) -> list[Approval]:
        """Approved studies that a run may begin of, as far as this site's own rules go."""
        found: list[Approval] = []
        try:
            approved = approvals(self.folder, self.site.identity)
        except ConsortiumError as error:
            self._log_once(str(error))
            return found
        for approval in approved:
            with suppress(ConsortiumError):  # said in words when a run is announced
                self._check_begin(approval)
                found.append(approval)
        return found

    def _check_begin(self, approval: Approval) -> None:
        """Refuse a new run that approval, policy or ledger don't cover, before anything is read."""
        site, study, permission = self.site, approval.study, self._permission(approval)
        permission.check_new_run(site.ledger, site.dataset)
        people = candidates(self.config, study.data)
        out = set(left_out(site.ledger, site.policy, study, people))
        stay = [label for label in people if label not in out]
        spent = spent_in(site.ledger, site.dataset, study, permission.centres, stay)
        choice = choice_here(self.folder, self.config, site.identity, study)
        check(site.policy, study, None, Request(site.name, spent, choice=choice))

    def _permission(self, approval: Approval) -> Permission:
        return permit(self.folder, self.site.identity, approval, self.now().date())

    def _is_past(self, run: str) -> bool:
        """Whether a run ended with this site, or without it."""
        if self.site.store.load(run, ENDED) is not None:
            return True
        joined = self.site.store.load(run, "present") is not None
        return not joined and "end" in self.site.exchange.children(f"runs/{run}")

    def _refuse(self, run: str, error: ConsortiumError) -> None:
        """Tell the centre that this site takes no further part; nothing of why but a code."""
        notice = json.dumps({"code": error.code, "reason": public_reason(error)}).encode()
        try:
            self.site.store.save(run, "refused", notice)
            self._post_refusal(run, notice)
        except ConsortiumError as trouble:
            self._log_once(f"{run}: {trouble}")

    def _post_refusal(self, run: str, notice: bytes) -> None:
        name = self.config.name
        message = seal(self.site.identity.key, run, name, REFUSAL, 0, notice)
        self.site.exchange.put(Names(run).refusal(name), message)

    def _log_once(self, line: str) -> None:
        if line not in self._logged:
            self._logged.add(line)
            self.log(line)

    def _tell_once(self, line: str) -> None:
        if line not in self._logged:
            self._logged.add(line)
            self._tell(line)

    def _tell(self, line: str) -> None:
        """Log a line that names no person, and keep it for the site's page."""
        self.log(line)
        self._keep(line)

    def _keep(self, line: str) -> None:
        try:
            self._told.keep(line)
        except ConsortiumError as error:  # a run does not end for want of a line on a page
            self._log_once(str(error))

    def _time(self) -> str:
        return self.now().isoformat(timespec="seconds")


def _agreed(announced: Mapping[str, object], approval: Approval) -> bool:
    """Whether study and roster are those that the site's people said yes to."""
    keys = {name: key.hex() for name, key in approval.keys.items()}
    ours = (approval.study.model_dump(mode="json"), approval.file, keys)
    return (announced.get("study"), announced.get("file"), announced.get("keys")) == ours
