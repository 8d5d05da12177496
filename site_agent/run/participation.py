"""A site in one run: every step from the announcement to the end, each repeatable.

The site believes nobody. It acts only on a study that its people approved, on
messages signed with the approved roster's keys, on queries that its own plan
foresees, and within its own ledger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Array, Query, Shape, SiteData
from consortium.engine.names import END, MOST_NOTICE, PRESENT, QUERY, START, run_secret
from consortium.engine.neighbour_answers import speaks
from consortium.engine.queries import (
    MOST_QUERY,
    SiteNote,
    decode_note,
    decode_query,
    encode_note,
    query_context,
    read_announcement,
    sketch_query,
)
from consortium.engine.run_context import Setting, read_start
from consortium.engine.session import check_planned, settle_fixed
from consortium.errors import (
    ConsortiumError,
    CopyError,
    DataError,
    ExchangeError,
    LedgerError,
    PrivacyError,
    ProtocolError,
    StudyError,
    legible,
)
from consortium.exchange.base import Exchange
from consortium.membership.keys import Identity
from consortium.privacy.clipping import vector_norm
from consortium.privacy.mechanism import Mechanism
from consortium.privacy.noise import GaussianSampler
from consortium.secagg import CENTRE, OVERHEAD, Party, seal
from consortium.secagg.messages import Limits as MessageLimits
from consortium.study.plan import Plan, Stage, count_rounds, make_plan
from consortium.study.spec import TimingSection
from site_agent.approval.permission import Permission
from site_agent.ledger.anchor import Witness
from site_agent.ledger.ledger import Charge, Ledger
from site_agent.ledger.totals import spent_in
from site_agent.policy.policy import Policy
from site_agent.run.message_store import Store
from site_agent.run.neighbours import Neighbours
from site_agent.run.outbox import Letter, Post


@dataclass(frozen=True)
class Site:
    """A site's belongings.

    Parameters
    ----------
    name : str
    identity : Identity
    dataset : str
        Name of the data set in the ledger.
    policy : Policy
    ledger : Ledger
    witness : Witness
        Of the ledger, on the exchange.
    store : Store
    exchange : Exchange
    now : callable
        The time, for the ledger's readers.
    tell : callable
        Receives a line of progress.
    """

    name: str
    identity: Identity
    dataset: str
    policy: Policy
    ledger: Ledger
    witness: Witness
    store: Store
    exchange: Exchange
    now: Callable[[], str]
    tell: Callable[[str], None]


class Attendance:
    """One site's part in one run.

    Parameters
    ----------
    site : Site
    setting : Setting
        As the site's approval has it.
    data : SiteData
        Nothing is read from it but sizes until the first query.
    note : SiteNote
        The site's public sizes.
    permission : callable
        Returns what the site's people allow of the study now, or raises why they don't.
    """

    def __init__(
        self,
        site: Site,
        setting: Setting,
        data: SiteData,
        note: SiteNote,
        permission: Callable[[], Permission],
    ) -> None:
        self.plan: Plan | None = None
        self.ended: Mapping[str, object] | None = None
        self._site = site
        self._setting = setting
        self._data = data
        self._note = note
        self._permission = permission
        self._post = Post(setting, site.store, site.exchange)
        self._names = self._post.names
        self._secret = run_secret(site.identity.root, setting.run, "site")
        if setting.study.privacy.scheme == "none":
            raise PrivacyError("The study protects nobody (scheme none); it is for simulations.")
        steps = (self._appear, self._start, self._advertise, self._share, self._take_shares)
        self._steps = iter(steps)
        self._step: Callable[[], bool] | None = next(self._steps)
        self._stages: list[str] = []  # of the queries read so far
        self._open: int | None = None  # round that is contributed to and not yet unmasked
        self._complaint = ""

    def advance(self) -> bool:
        """Do what can be done now; False if there is nothing to do.

        Raises
        ------
        ConsortiumError
            If the site takes no further part in the run, or a message is not what it must be.
        """
        if self.ended is not None:
            return False
        try:
            done = self._act()
        except (ExchangeError, ProtocolError):
            if self._read_end():  # whatever is amiss, the run's end is heard
                return True
            raise
        finally:
            trouble = self._post.deliver()
            if trouble is not None:
                self._complain(str(trouble))
        return done or self._read_end()

    def _act(self) -> bool:
        if self._step is None:
            return self._answer_unmasking() or self._answer_query()
        if not self._step():
            return False
        self._step = next(self._steps, None)
        return True

    # -- set-up ---------------------------------------------------------------------------

    def _appear(self) -> bool:
        """Say that the site is there, if its rules and its ledger allow all that was promised."""
        self._check_policy(None)
        name, run = self._site.name, self._setting.run
        message = seal(self._site.identity.key, run, name, PRESENT, 0, b"")
        self._post.send(self._names.present(name), "present", message)
        return True

    def _start(self) -> bool:
        """Hear with whom the run starts."""
        message = self._post.receive(self._names.start(), "start", MOST_NOTICE)
        if message is None:
            return False
        sites = read_start(self._post.signed(message, START, 0, MOST_NOTICE))
        if self._site.name not in sites:
            reason = "it started without this site, which was not there in time"
            self.ended = {"outcome": "left out", "reason": reason}
            return True
        self._setting = self._setting.started_with(sites)
        self._check_policy(None)
        rounds = count_rounds(self._setting.study, self._setting.extent)
        roster = self._setting.roster
        self._sizes = MessageLimits(len(sites), rounds, roster.holders)
        self._party = Party(
            run=self._setting.run,
            name=self._site.name,
            roster=roster,
            rounds=rounds,
            identity=self._site.identity.key,
            secret=self._secret,
        )
        self._post.keep("start", message)
        return True

    def _advertise(self) -> bool:
        message = self._party.advertise(encode_note(self._note))
        self._post.send(self._names.setup("advertise", self._site.name), "advertise", message)
        return True

    def _share(self) -> bool:
        bundle = self._post.receive(self._names.setup("keys"), "keys", self._sizes.keys)
        if bundle is None:
            return False
        message = self._party.receive_keys(bundle)
        self.plan = plan = make_plan(self._setting.study, self._shape())
        key = self._site.identity.key
        self._neighbours = Neighbours(plan, self._index, key, self._post, self._site.tell)
        self._check_policy(plan)
        self._post.keep("keys", bundle)
        self._post.send(self._names.setup("share", self._site.name), "share", message)
        self._site.tell(f"joined {self._setting.run}: {plan.rounds} rounds, ε = {plan.epsilon:.3g}")
        return True

    def _check_policy(self, plan: Plan | None) -> None:
        """Hold the study against the site's rules; a started run has its rounds in the ledger."""
        site, study = self._site, self._setting.study
        spent = spent_in(site.ledger, site.dataset, study, self._permission().centres)
        runs = 0 if self._started else 1
        site.policy.check(study, plan, site=site.name, spent=spent, runs=runs)

    def _take_shares(self) -> bool:
        bundle = self._post.receive(self._names.setup("shares"), "shares", self._sizes.shares)
        if bundle is None:
            return False
        self._party.receive_shares(bundle)
        self._post.keep("shares", bundle)
        return True

    def _shape(self) -> Shape:
        study = self._setting.study
        notes = {s: decode_note(self._party.notes[s], s) for s in study.sites}
        if notes[self._site.name] != self._note:
            raise StudyError("This site's sizes changed since it joined; start a new run.")
        different = [s for s, n in notes.items() if n.grid != self._setting.grid]
        if different:
            raise StudyError(f"{different[0]} uses another mask or space; start a new run.")
        sizes = [notes[s] for s in study.sites]
        subjects, samples = [n.subjects for n in sizes], [n.samples for n in sizes]
        return self._setting.extent.shape(subjects, samples, study.privacy.unit)

    # -- rounds ---------------------------------------------------------------------------

    def _answer_query(self) -> bool:
        plan, number = self._plan, len(self._stages) + 1
        if number > plan.rounds:
            return False
        message = self._post.receive(
            self._names.round(number, QUERY), f"{number}/query", MOST_QUERY
        )
        if message is None:
            return False
        body = self._post.signed(message, QUERY, number, MOST_QUERY)
        query, stage = self._read_query(body)
        context = query_context(plan, number, body)
        received = {f"{number}/query": message}
        stored = self._post.stored(f"{number}/contribution")
        if stored is not None:
            self._party.restore(number, context, True, self._post.stored(f"{number}/unmask"))
            told = self._neighbours.kept(number)
            self._contributed(number, stage, context, stored, received, told)
        elif not self._closed(number, stage):
            answer, told = self._contribute(number, context, self._hear(query, stage), stage)
            self._contributed(number, stage, context, answer, received, told)
            self._site.tell(f"answered round {number} ({query.statistic})")
        else:
            self._post.keep(f"{number}/query", message)
            self._site.tell(f"round {number} was closed without this site; it goes on")
        self._stages.append(stage.name)
        self._neighbours.note(number, stage, context)
        return True

    def _closed(self, number: int, stage: Stage) -> bool:
        """Whether the centre has gone on without this site."""
        if stage.mechanism.masked_entries:
            place, limit = self._names.round(number, "unmask"), self._sizes.request
        else:
            place, limit = self._names.round(number + 1, QUERY), MOST_QUERY + OVERHEAD
        return self._post.peek(place, limit) is not None

    def _read_query(self, body: bytes) -> tuple[Query, Stage]:
        """Judge a query by its outline before its arrays are fetched."""
        try:
            stage = check_planned(self._plan, sketch_query(body), self._stages)
            return settle_fixed(stage, decode_query(body, self._post.array)), stage
        except ProtocolError as error:  # the centre signed it: to wait for another is no use
            raise PrivacyError(f"A query that the centre signed is refused: {error}") from error

    def _hear(self, query: Query, stage: Stage) -> Query:
        """Put in which site is asked and what its neighbours said."""
        heard = self._neighbours.heard(stage) if stage.release.neighbours else None
        return replace(query, neighbour_answers=heard, site=self._index)

    def _contribute(
        self, number: int, context: bytes, query: Query, stage: Stage
    ) -> tuple[memoryview, Letter | None]:
        """Compute, charge, hide: in this order, so that what can't be computed costs nothing.

        Returns the contribution, and what the neighbours are told.
        """
        self._site.policy.check_statistic(query.statistic)
        mechanism = stage.mechanism
        statistic = self._statistic(query, mechanism)
        key = self._noise_key(context, statistic.tobytes())
        remembered = self._commit(number, key)
        charge = self._charge(number, stage, context)
        limits = self._permission().limits(self._site.policy, self._plan.site_loss(self._index))
        if not (self._site.ledger.reserve(charge, limits, self._site.now()) or remembered):
            raise LedgerError(
                f"Round {number} of {self._setting.run} is paid for in the ledger, and what was "
                "answered is not stored here any more, so the site answers no further; put the "
                "newest copy of its folder back, or wait for a new run."
            )
        trouble = self._site.witness.post()
        if trouble is not None:
            self._complain(str(trouble))
        sampler = GaussianSampler(key)
        share = mechanism.protect(self._index, statistic, sampler)
        opened = share.opened if mechanism.opened_entries else None
        told = self._neighbours.letter(number, context, share.opened) if speaks(stage) else None
        return self._party.contribute(number, context, share.masked, opened), told

    def _commit(self, number: int, key: bytes) -> bool:
        """Write down what will be answered before it is paid for; whether it was before.

        What is kept is a digest of the noise's key, which question and statistic lead to: it tells
        nothing to anybody, and a second noise at the price of one is not drawn after a restart
        with another library, processor or data set.
        """
        name = f"{number}/commitment"
        known, digest = self._post.stored(name), hashlib.sha256(b"commitment" + key).digest()
        if known is None:
            self._post.keep(name, digest)
        elif known != digest:
            raise LedgerError(
                f"Round {number} of {self._setting.run} was reserved for other numbers than this "
                "machine computes now, so the site answers no further; take part in a new run with "
                "the machine, data and software left as they are."
            )
        return known is not None

    def _contributed(
        self,
        number: int,
        stage: Stage,
        context: bytes,
        message: bytes | memoryview,
        received: Mapping[str, bytes],
        told: Letter | None,
    ) -> None:
        place = self._names.round(number, "contribution", self._site.name)
        answer = Letter(place, f"{number}/contribution", message)
        # Neighbours first: once the centre has the answer, the next round may begin.
        self._post.send_all([answer] if told is None else [told, answer], received)
        charge, ledger = self._charge(number, stage, context), self._site.ledger
        mark = ledger.spend if number == self._plan.rounds else ledger.spend_soon
        mark(charge, self._site.now())
        self._open = number if stage.mechanism.masked_entries else None

    def _statistic(self, query: Query, mechanism: Mechanism) -> Array:
        """The site's own numbers; its algorithm is trusted with the data, the query is not."""
        local = REGISTRY[self._setting.study.algorithm].statistics[query.statistic]
        try:
            statistic = np.asarray(local(self._data, query, mechanism.bound), dtype=np.float64)
        except ConsortiumError as error:
            if isinstance(error, ProtocolError):
                raise PrivacyError(f"A query is refused: {error}") from error
            raise
        except Exception as error:
            raise PrivacyError(
                f"'{query.statistic}' can't be computed for the centre's query "
                f"({type(error).__name__}: {error}); tell the people of the study."
            ) from error
        norm = vector_norm(statistic)
        if statistic.size != mechanism.entries or not norm <= mechanism.bound.norm * (1 + 1e-6):
            raise PrivacyError(
                f"'{query.statistic}' has {statistic.size} numbers of norm {norm:g} where "
                f"{mechanism.entries} of at most {mechanism.bound.norm:g} are planned; "
                "tell the people of the study."
            )
        return statistic

    def _answer_unmasking(self) -> bool:
        number = self._open
        if number is None:
            return False
        place = self._names.round(number, "unmask")
        request = self._post.receive(place, f"{number}/unmask", self._sizes.request)
        if request is None:
            return False
        try:
            message = self._party.unmask(number, request)
        except ProtocolError as error:  # altered, or a list without this site: no answer
            self._complain(str(error))
            return False
        place = self._names.round(number, "unmasking", self._site.name)
        self._post.send(place, f"{number}/unmasking", message, {f"{number}/unmask": request})
        self._open = None
        return True

    def _noise_key(self, context: bytes, statistic: bytes) -> bytes:
        """A fresh key for every pair of question and answer; the same for the same pair.

        So a crash before the answer was stored draws no second noise.
        """
        digest = hashlib.sha256(statistic).hexdigest()
        return run_secret(self._secret, context.hex(), f"noise {digest}")

    def _charge(self, number: int, stage: Stage, context: bytes) -> Charge:
        setting = self._setting
        return Charge(
            dataset=self._site.dataset,
            study=setting.study.study,
            run=setting.run,
            round=number,
            stage=stage.name,
            statistic=stage.release.statistic,
            unit=setting.study.privacy.unit,
            mu=float(stage.mechanism.coalition()[self._index]),
            site=self._site.identity.public.hex(),
            centre=setting.keys[CENTRE].hex(),
            query=context.hex(),
            outsider=float(stage.mechanism.outsider()[self._index]),
        )

    def _complain(self, text: str) -> None:
        if text != self._complaint:
            self._site.tell(text)
            self._complaint = text

    def _read_end(self) -> bool:
        message = self._post.peek(self._names.end(), MOST_NOTICE)
        if message is None:
            return False
        said = read_announcement(self._post.signed(message, END, 0, MOST_NOTICE))
        self.ended = {name: legible(said.get(name)) for name in ("outcome", "reason")}
        return True

    # -- facts ----------------------------------------------------------------------------

    @property
    def _plan(self) -> Plan:
        if self.plan is None:
            raise ProtocolError("The run is not set up yet; wait for the other sites.")
        return self.plan

    @property
    def _index(self) -> int:
        return self._setting.study.sites.index(self._site.name)

    @property
    def _started(self) -> bool:
        return self._post.stored("keys") is not None

    @property
    def awaited(self) -> str:
        """What the site waits for, in words."""
        if self._step is not None:
            kind = getattr(self._step, "__name__", "").strip("_").replace("_", " ")
            return f"the centre ({kind})"
        if self._open is not None:
            return f"the centre (sum of round {self._open})"
        return f"the centre (round {len(self._stages) + 1})"

    @property
    def timing(self) -> TimingSection:
        """The study's deadlines."""
        return self._setting.study.timing


def public_reason(error: Exception) -> str:
    """What of an error may cross the border: nothing of the data, no file, no label."""
    if isinstance(error, DataError):
        return "an image or table of its data set can't be used; the site's own log names it"
    if isinstance(error, CopyError):
        return "another copy of its folder has answered in its name; the site's own log says where"
    if isinstance(error, LedgerError):
        return "its ledger can't be used; the site's own log says why"
    return "its own rules refuse the study; the site's own log says why"
