"""Set-up of a site in a run: from the announcement to the keys and shares of all sites.

Every step is repeatable: messages that were received or sent before are read from the site's own
store. A site's inputs to every run are one value.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from consortium import __version__
from consortium.algorithms.base import Shape
from consortium.base.formatting import count
from consortium.engine.names import LOADING, MOST_NOTICE, PRESENT, START, run_secret
from consortium.engine.queries import SiteNote, decode_note, encode_note
from consortium.engine.run_context import RunContext, read_start
from consortium.errors import StudyError
from consortium.exchange.base import Exchange
from consortium.membership.keys import Identity
from consortium.secagg import CENTRE, Party, seal
from consortium.secagg.messages import Limits as MessageLimits
from consortium.study.plan import (
    Plan,
    count_rounds,
    make_plan,
    nominal_shape,
    plan_digest,
    promised_mu,
)
from consortium.study.slots import SHORTEST, ledger_slot, loading_slot
from site_agent.approval.permission import Permission
from site_agent.data.survey import over_the_limit
from site_agent.layout import LEFT_OUT, WORTH
from site_agent.ledger.anchor import LedgerAnchor
from site_agent.ledger.ledger import Charge, Ledger
from site_agent.loading.progress import Data, Loading
from site_agent.policy.policy import Policy, StudyRequest, refuse_by_policy
from site_agent.run.message_store import MessageStore
from site_agent.run.outbox import Outbox
from site_agent.run.site_log import SiteLog
from site_agent.run.slot_clock import SlotClock


@dataclass(frozen=True)
class Site:
    """A site's keys, folders and settings for its runs."""

    name: str
    identity: Identity
    dataset: str
    """Name of the data set in the ledger."""
    policy: Policy
    ledger: Ledger
    anchor: LedgerAnchor
    """Head of the ledger, on the exchange."""
    store: MessageStore
    exchange: Exchange
    now: Callable[[], str]
    """The time, for the ledger's readers."""
    passed: Callable[[], float]
    """Seconds on a clock that never goes back."""
    log: SiteLog


@dataclass(frozen=True)
class JoinedRun:
    """State of a site after set-up, before the first round."""

    context: RunContext
    """With the sites that the run started with."""
    plan: Plan
    party: Party
    """Site that stores its shares of all sites' secrets."""
    sizes: MessageLimits
    """The longest that the messages of secure aggregation may be."""
    announced: bytes
    """SHA-256 of the centre's announcement, which this site's staff approved."""
    persons: str
    """Digest of the participants of the run's hold in the ledger."""


@dataclass(frozen=True)
class LeftOut:
    """Signal that a run started without this site."""

    reason: str = "it started without this site, which was late"


@dataclass(eq=False)
class Setup:
    """The steps of one site before round 1."""

    site: Site
    context: RunContext
    """As the site's approval has it."""
    loading: Loading
    """Loading of the study's data."""
    permission: Callable[[], Permission]
    """Returns the site's current permission for the study, or raises the reason for its absence."""
    outbox: Outbox
    slots: SlotClock
    """Clock of the site's slots, begun when the site saw the announcement."""
    outcome: JoinedRun | LeftOut | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._announced = hashlib.sha256(self.context.announcement).digest()
        self._names = self.outbox.names
        self._told = False  # that the data are being loaded
        study = self.context.study
        self._slot = loading_slot(nominal_shape(study, self.context.extent))
        if self.outbox.stored("present") is None:  # the cause of a restart is not the data
            self.slots.hold(self._slot)
        steps = (self._load, self._say_present, self._start, self._advertise, self._share)
        self._steps = iter((*steps, self._take_shares))
        self._step: Callable[[], bool] = next(self._steps)

    def advance(self) -> bool:
        """Take the next step if it can be taken now; the last one has an outcome.

        Raises ConsortiumError as `Participation.advance`.
        """
        if not self._step():
            return False
        self._step = next(self._steps, self._step)
        return True

    @property
    def awaited(self) -> str:
        """Name of the step that is to be taken, in words."""
        return self._step.__name__.strip("_").replace("_", " ")

    def _load(self) -> bool:
        """Wait until the data are in the cache, and hold the run's privacy loss in the ledger.

        The centre is informed once that they are not loaded yet, but not of the progress: the time
        of loading would reveal single participants' scans. Both messages are sent at ends of the
        loading slot, and the hold is written at one.
        """
        if not self.loading.over:
            self._tell_loading()
            return False
        data = self.loading.data
        site = self.site
        self._persons = self._hold_loss(data)
        for each in data.survey.skipped:
            if each.reason == "unusable":
                site.log.line(f"left out of {self.context.run}: {each.detail}")
        self._note = SiteNote(self.context.grid, __version__)
        site.log.write(f"takes part in {self.context.run} with {len(data.lengths)} participants")
        if self.outbox.stored("present") is None:
            self.slots.hold(ledger_slot(nominal_shape(self.context.study, self.context.extent)))
        return True

    def _hold_loss(self, data: Data) -> str:
        """Hold the run's loss in the ledger, and exclude participants without remaining budget."""
        site = self.site
        run = self.context.run
        whole = run_charge(site, self.context)
        limits = self.permission().limits(site.policy)
        group, left_out = site.ledger.hold(whole, data.people, limits, site.now())
        if site.store.load(run, LEFT_OUT) is None:  # for the site's page
            site.store.save(run, LEFT_OUT, json.dumps(left_out).encode())
        if left_out:
            data.leave_out(map(over_the_limit, left_out))
        return group

    def _say_present(self) -> bool:
        """Send the centre the message that the data are loaded."""
        site = self.site
        run = self.context.run
        message = seal(
            key=site.identity.key, run=run, sender=site.name, kind=PRESENT, round=0, body=b""
        )
        self.outbox.send(self._names.present(site.name), "present", message)
        return True

    def _tell_loading(self) -> None:
        """Send the centre, once, the message that loading continues, and wait for another slot."""
        if self.outbox.stored("present") is not None:
            return
        name = self.site.name
        run = self.context.run
        if not self._told:
            self._told = True
            message = seal(
                key=self.site.identity.key, run=run, sender=name, kind=LOADING, round=0, body=b""
            )
            self.outbox.send(self._names.loading(name), "loading", message)
            self.outbox.deliver()  # or after the next slot, if the exchange is not reachable
        self.slots.hold_on(self._slot)

    def _start(self) -> bool:
        """Receive the list of the sites with which the run starts."""
        message = self.outbox.receive(self._names.start(), "start", MOST_NOTICE)
        if message is None:
            return False
        sites = read_start(self.outbox.signed(message, START, 0, MOST_NOTICE))
        if self.site.name not in sites:
            self.outcome = LeftOut()
            return True
        self.context = self.context.started_with(sites)
        rounds = count_rounds(self.context.study, self.context.extent)
        roster = self.context.roster
        self._sizes = MessageLimits(len(sites), rounds, roster.holders)
        self._party = Party(
            run=self.context.run,
            name=self.site.name,
            roster=roster,
            rounds=rounds,
            identity=self.site.identity.key,
            secret=run_secret(self.site.identity.root, self.context.run, "site"),
        )
        self.outbox.keep("start", message)
        return True

    def _advertise(self) -> bool:
        """Send the site's keys."""
        message = self._party.setup.advertise(encode_note(self._note))
        self._hold("advertise")
        self.outbox.send(self._names.setup("advertise", self.site.name), "advertise", message)
        return True

    def _share(self) -> bool:
        bundle = self.outbox.receive(self._names.setup("keys"), "keys", self._sizes.keys)
        if bundle is None:
            return False
        message = self._party.setup.receive_keys(bundle, self._agree)
        plan = self._plan
        refuse_by_policy(self.site.policy, self.context.study, plan, StudyRequest(self.site.name))
        self.outbox.keep("keys", bundle)
        self._keep_worth(plan)
        self._hold("share")
        self.outbox.send(self._names.setup("share", self.site.name), "share", message)
        self.site.log.write(
            f"joined {self.context.run}: {count(plan.rounds, 'round')}, ε = {plan.epsilon:.3g}"
        )
        return True

    def _hold(self, name: str) -> None:
        """Hold a message back to the end of its slot, unless it was sent before a restart."""
        if self.outbox.stored(name) is None:
            self.slots.hold(SHORTEST)

    def _keep_worth(self, plan: Plan) -> None:
        """Keep the release's worth for the site's page; a text that exists stays unchanged."""
        worth = plan.analysis.worth()
        if worth and self.outbox.stored(WORTH) is None:
            self.outbox.keep(WORTH, worth.encode())

    def _agree(self, notes: Mapping[str, bytes]) -> bytes:
        """Compute the plan from all sites' sizes, and send its digest to all sites."""
        self._plan = make_plan(self.context.study, self._shape(notes), agreed=True)
        return plan_digest(self._plan)

    def _take_shares(self) -> bool:
        place = self._names.setup("shares", self.site.name)
        bundle = self.outbox.receive(place, "shares", self._sizes.shares)
        if bundle is None:
            return False
        self._party.setup.receive_shares(bundle)
        self.outbox.keep("shares", bundle)
        self.outcome = JoinedRun(
            context=self.context,
            plan=self._plan,
            party=self._party,
            sizes=self._sizes,
            announced=self._announced,
            persons=self._persons,
        )
        return True

    def _shape(self, replies: Mapping[str, bytes]) -> Shape:
        study = self.context.study
        notes = {s: decode_note(replies[s], s) for s in study.sites}
        different = [s for s, n in notes.items() if n.grid != self.context.grid]
        if different:
            raise StudyError(f"{different[0]} uses another mask or space. Start a new run.")
        return nominal_shape(study, self.context.extent)


def run_charge(site: Site, run: RunContext) -> Charge:
    """Return the charge of a whole run, which its first line in the ledger holds.

    It is the largest loss that the study promises, which is public before the run.
    """
    study = run.study
    return Charge(
        dataset=site.dataset,
        study=study.study,
        run=run.run,
        round=0,
        stage="",
        statistic="",
        unit=study.privacy.unit,
        mu=promised_mu(study),
        site=site.identity.public.hex(),
        centre=run.keys[CENTRE].hex(),
        query="",
        outsider=0.0,
    )
