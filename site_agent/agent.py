"""The site's service: watches the exchange and takes part in approved runs."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import partial
from pathlib import Path

from consortium.base.lock import only_one, take_turns
from consortium.engine.clock import SLOWEST_POLL, Clock, EarlierWaits, WaitFile
from consortium.engine.names import MOST_ANNOUNCEMENT, Names
from consortium.errors import (
    ConfigurationError,
    ConsortiumError,
    CopyError,
    EngineError,
    ExchangeError,
    OutputError,
    ProtocolError,
    SiteError,
    SoftwareError,
)
from consortium.membership.consent import post_consent, read_consents
from consortium.membership.keys import load_identity
from site_agent.approval.approval import approvals, approved_names, post_withdrawn
from site_agent.approval.declining import post_declined
from site_agent.config import SiteConfig
from site_agent.engines.base import Engine
from site_agent.engines.open import open_engine
from site_agent.enrolment.request import earlier_key
from site_agent.layout import DECISIONS, ENDED, STORE
from site_agent.ledger.anchor import LedgerAnchor
from site_agent.ledger.ledger import Ledger
from site_agent.loading.progress import Drive, in_thread
from site_agent.page.updater import PageUpdater
from site_agent.run.admission import Admission, public_reason, release, send_refusal, study_of
from site_agent.run.message_store import MessageStore
from site_agent.run.participation import Participation
from site_agent.run.preload import Preload
from site_agent.run.setup import Site
from site_agent.run.site_log import SiteLog
from site_agent.run.waits import WaitLog
from site_agent.security_log import SecurityLog
from site_agent.settings import Settings, SettingsFiles

_LOOK_EVERY = 2.0  # s between two looks for runs, within a run and when nothing happens
_LOOK_PACES = 250  # and within a run at least as many times the exchange's pace
_RUN = re.compile(r"[a-z0-9][a-z0-9-]{0,127}")


@dataclass
class Agent:
    """The service that runs at one site."""

    folder: Path
    """The site's own folder, with ``site.yaml`` and keys."""
    clock: Clock
    now: Callable[[], datetime]
    """The time of day, with its time zone."""
    log: Callable[[str], None]
    """Receives lines for the site's own log."""
    drive: Drive = in_thread
    """Loads data and writes the page in parallel with the agent's other work."""
    page: bool = False
    """Whether the site's page is updated at every change, regardless of ``site.yaml``."""
    failures: list[ConsortiumError] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._files = SettingsFiles(self.folder, self.clock)
        settings = self._files.first
        config = settings.config
        identity = load_identity(self.folder)
        ledger = Ledger(config.ledger)
        exchange = config.open_exchange()
        log = SiteLog(self.folder, self._time, self.log)
        store = MessageStore(self.folder / STORE)
        earlier = earlier_key(self.folder)
        self.site = Site(
            name=config.name,
            identity=identity,
            dataset=str(config.dataset.resolve()),
            policy=settings.policy,
            ledger=ledger,
            anchor=LedgerAnchor(
                exchange=exchange,
                identity=identity,
                name=config.name,
                ledger=ledger,
                earlier=earlier,
                answers=store,
            ),
            store=store,
            exchange=exchange,
            now=self._time,
            passed=self.clock.now,
            log=log,
        )
        self._runs: dict[str, Participation | None] = {}
        self._admitted: dict[str, Admission] = {}
        self._unapproved: set[str] = set()  # ignored until their study is approved
        self._waits = WaitLog(WaitFile(self.folder, self.clock.wall), log)
        self._followed = -math.inf
        self._page = PageUpdater(self.folder, self.clock, self.now, log.line_once, self.drive)
        self._engine: tuple[tuple[object, ...], Engine] | None = None
        self._take_up(settings)
        self._begun = False
        self._looked = 0.0
        self._earlier = {awaits_sum: EarlierWaits() for awaits_sum in (False, True)}

    def _take_up(self, settings: Settings) -> None:
        """Use these settings in every run that begins from now on."""
        config = settings.config
        drive = self.drive
        engine = self._engine_of(config)

        def today() -> date:
            return self.now().date()

        self.config = config
        self._security = SecurityLog(config.security_log, self.folder, config.name, self._time)
        self._settings: Settings | ConfigurationError = settings
        dataset = str(config.dataset.resolve())
        self.site = replace(self.site, dataset=dataset, policy=settings.policy)
        self._admission = Admission(
            folder=self.folder,
            config=config,
            site=self.site,
            engine=engine,
            drive=drive,
            today=today,
        )
        log = self.site.log.line
        data = self._admission.open_data
        self._ahead = Preload(config.dataset, data, drive, self.clock, log)

    def _engine_of(self, config: SiteConfig) -> Engine:
        """Return the open engine, or open one if ``site.yaml`` changed its settings."""
        wanted = (config.engine, config.engine_address, config.workers, config.memory)
        if self._engine is None or self._engine[0] != wanted:
            self._engine = wanted, open_engine(config)
        return self._engine[1]

    def _renew(self) -> bool:
        """Apply the present site.yaml and policy.yaml; False while one is being written.

        A run that has begun keeps its settings. While a file is invalid, runs that begin are
        refused: its earlier content does not count any more.
        """
        now = self._files.look()
        if now is None or now is self._settings:
            return now is not None
        if isinstance(now, ConfigurationError):
            self._settings = now
            self._admission = self._admission.refusing(now)
            self.site.log.line(f"no run begins here until this is fixed: {now}")
            return True
        try:
            self._take_up(now)
        except ConfigurationError as error:  # the engine may not be installed
            self._settings = now
            self._admission = self._admission.refusing(error)
            self.site.log.line(f"no run begins here until this is fixed: {error}")
        else:
            self.site.log.write("site.yaml and policy.yaml changed; new runs use them")
        return True

    def work(self, *, once: bool, idle: float = float("inf")) -> None:
        """Take part in runs until stopped.

        Raises ConsortiumError with ``once`` if this site's part ended early.

        Parameters
        ----------
        once : bool
            Return when the first run that this site took part in has ended.
        idle : float
            Stop after this number of seconds without work.
        """
        try:
            with only_one(self.folder, "agent"):
                self._check_halt()
                if not once:
                    self.site.log.write(
                        f"the agent of {self.config.name} is at work; Ctrl-C stops it"
                    )
                while True:
                    self._await_work(idle)
                    if once and self._over():
                        return
        finally:
            self._keep_security_log(every=0.0)
            if self._page.begun:  # and records that the agent is not running any more
                self._page.write()

    def _await_work(self, idle: float) -> None:
        start = self.clock.now()
        self._begin()
        slowest = SLOWEST_POLL if self._under_way() else _LOOK_EVERY
        pace = self.site.exchange.pace
        held = self.slot_left < math.inf
        awaits_sum = any(run.awaits_sum for run in self._under_way().values())
        earlier = self._earlier[awaits_sum]
        first = 0.0 if held else earlier.first_rest(pace)
        for _ in self.clock.polls(idle, pace, slowest, first, lambda: self.slot_left):
            if self.round_trip():
                if not held:  # otherwise the wait would reveal how long the site computed
                    earlier.note(self.clock.now() - start)
                self._waits.clear()
                self._keep_security_log()
                self._keep_page()
                return
            self._waits.show(self._ahead, self._under_way(), self.clock.now() - start)
            self._keep_security_log()
            self._keep_page()
        raise SiteError(
            f"{self.config.name}: nothing to do for {idle:g} s. Start the study at the "
            "centre, or look at its state with 'consortium status'."
        )

    @property
    def slot_left(self) -> float:
        """Seconds until the first time slot of a run ends; infinite if none is to be waited for."""
        lefts = [participation.left for participation in self._under_way().values()]
        return min((left for left in lefts if left), default=math.inf)

    def _keep_security_log(self, every: float = _LOOK_EVERY) -> None:
        """Write new lines of the ledger to the security log, at most every few seconds."""
        now = self.clock.now()
        if now - self._followed < every:
            return
        self._followed = now
        try:
            self._security.follow(self.site.ledger)
        except ConsortiumError as error:  # the ledger keeps the lines, and a run does not end
            self.site.log.line_once(str(error))

    def _keep_page(self) -> None:
        """Update the site's page, if it is requested and anything on it changed."""
        if self.config.page or self.page:
            runs = [p for p in self._runs.values() if p is not None]
            answered = sum(len(p.rounds.sent) for p in runs if p.rounds is not None)
            self._page.look((self.site.log.kept, answered, self._waits.shown))

    def _begin(self) -> None:
        """Check the ledger against the exchange, and report the approvals here; only once."""
        if self._begun:
            return
        try:
            self.site.anchor.check()
            self._admission.settle_folder()
            trouble = self.site.anchor.post()  # under a key that may be new
            if trouble is not None:
                self.site.log.line_once(str(trouble))
            self.post_consents()
            self._begun = True
        except ExchangeError as error:  # it is tried again before anything else is done
            self.site.log.line_once(str(error))

    def post_consents(self) -> None:
        """Send the coordinator new approvals, withdrawals and declined studies.

        Raises ExchangeError if the exchange can't be used.
        """
        name = self.config.name
        exchange = self.site.exchange
        tell = self.site.log.line_once
        post_withdrawn(self.folder, self.site.identity, name, exchange, tell)
        self._post_declined()
        for approval in approvals(self.folder, self.site.identity, tell):
            if name not in approval.study.sites:
                continue
            keys = {name: self.site.identity.public}
            study = approval.study
            consent = approval.consent(name)
            if read_consents(exchange, study, keys)[name] != consent:
                post_consent(exchange, self.site.identity.key, study.study, consent)

    def _post_declined(self) -> None:
        """Send the coordinator declined studies, while none of them can be approved."""
        site = self.site
        try:
            with take_turns(self.folder, DECISIONS):
                post_declined(self.folder, site.identity, site.name, site.exchange)
        except (ConfigurationError, OutputError) as error:
            site.log.line_once(str(error))

    def _over(self) -> bool:
        if self.failures:
            raise self.failures[0]
        ended = [a.ended for a in self._runs.values() if a is not None and a.ended is not None]
        for end in ended:
            if not end.complete:
                raise SiteError(f"The centre gave up the run: {end.reason}")
        return bool(ended)

    def round_trip(self) -> bool:
        """Look at every run once, and return whether anything was done.

        Raises CopyError if this site takes no further part in anything.
        """
        self._check_halt()
        self._ahead.look(self._admission.ready)
        renewed = self._renew()
        if not self._under_way():
            self._hours = self.site.policy
        opens = self._hours.opens_at(self.now())
        if opens is not None:
            self.site.log.write_once(
                f"policy.yaml: field 'hours': nothing is answered before {opens}."
            )
            return False
        done = False
        self._reconsider()
        announced = self._announced()
        if renewed and not {*announced} <= {*self._runs}:
            done |= self._hear_ends()
        for run in announced:
            if renewed and run not in self._runs:
                done |= self._guarded(run, partial(self._meet, run))
            participation = self._runs.get(run)
            if participation is not None and participation.ended is None:
                done |= self._take_step(run, participation, participation.advance)
        return done

    def _reconsider(self) -> None:
        """Look again at each run that was ignored, if its study has been approved since."""
        if not self._unapproved:
            return
        approved = approved_names(self.folder)
        for run in [each for each in self._unapproved if study_of(each) in approved]:
            self._unapproved.remove(run)
            self._runs.pop(run, None)

    def _hear_ends(self) -> bool:
        """Check which runs have ended, before another begins that an approval may not cover yet."""
        done = False
        for run, participation in self._under_way().items():
            done |= self._take_step(run, participation, participation.read_end)
        return done

    def _take_step(self, run: str, participation: Participation, act: Callable[[], bool]) -> bool:
        done = self._guarded(run, act)
        if participation.ended is not None:
            self._guarded(run, partial(self._note_end, run, participation))
        return done

    def _check_halt(self) -> None:
        """Stop for ever once another copy of this folder was found; a restart changes nothing."""
        if self.site.store.halted is not None:
            raise CopyError(self.site.store.halted)

    def _note_end(self, run: str, participation: Participation) -> bool:
        """Log a run's end and its charges; an agent that stops in between logs both again."""
        self.site.ledger.settle()
        if participation.ended is not None:
            outcome = participation.ended.outcome
            self.site.log.write(f"{run} has ended: {outcome}; {participation.cost}")
        self.site.store.save(run, ENDED, b"")
        release(self.site, run)
        return True

    def _announced(self) -> list[str]:
        """Return the runs on the exchange; none while it can't be read.

        While this site is in a run, others are looked for now and then only.
        """
        now = self.clock.now()
        busy = list(self._under_way())
        if busy and now - self._looked < max(_LOOK_EVERY, _LOOK_PACES * self.site.exchange.pace):
            return busy
        self._looked = now
        try:
            found = self.site.exchange.children("runs")
        except ExchangeError as error:
            self.site.log.line_once(str(error))
            return []
        return [run for run in found if _RUN.fullmatch(run)]

    def _guarded(self, run: str, act: Callable[[], bool]) -> bool:
        """Wait after a temporary error; refuse the run after any other."""
        try:
            return act()
        except (ProtocolError, ExchangeError) as error:
            self.site.log.line_once(f"{run}: {error}")
            return False
        except EngineError as error:  # resumed from the stored messages
            self.site.log.line_once(f"{run}: {error}")
            self._runs.pop(run, None)
            return False
        except CopyError as error:
            self.site.store.halt(str(error))
            self._give_up(run, error)
            raise
        except ConsortiumError as error:
            self._give_up(run, error)
        except Exception as error:  # no message of a centre may end the agent
            self._give_up(run, SoftwareError.of(error))
        return True

    def _meet(self, run: str) -> bool:
        """Begin a newly announced run, if this site has a part in it."""
        message = self.site.exchange.get(Names(run).study(), MOST_ANNOUNCEMENT)
        if message is None:
            return False
        admission = self._admitted.get(run, self._admission)
        approved = approved_names(self.folder)  # before, so none that comes meanwhile is missed
        self._runs[run] = admission.admit(run, message)
        if self._runs[run] is None and study_of(run) not in approved:
            self._unapproved.add(run)
            return False
        self._admitted[run] = admission  # by which it is resumed, whatever is written later
        return self._runs[run] is not None

    def _give_up(self, run: str, error: ConsortiumError) -> None:
        log = self.site.log
        never_joined = run not in self._runs
        log.line_once(f"{run}: {error}")
        subject = f"refused {run.rsplit('-', 1)[0]}" if never_joined else ""
        log.keep(f"{run} continues without this site: {public_reason(error)}", subject)
        self.failures.append(error)
        self._runs[run] = None
        for tell in (
            partial(send_refusal, self.site, run, error),
            partial(self._security.refused, run, error.code),
        ):
            try:
                tell()
            except ConsortiumError as trouble:
                log.line_once(f"{run}: {trouble}")

    def _under_way(self) -> dict[str, Participation]:
        return {run: p for run, p in self._runs.items() if p is not None and p.ended is None}

    def _time(self) -> str:
        return self.now().isoformat(timespec="seconds")
