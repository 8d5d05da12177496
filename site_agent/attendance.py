"""A site in one run: every step from the announcement to the end, each repeatable.

The site believes nobody. It acts only on a study that its people approved, on
messages signed with the approved roster's keys, on queries that its own plan
foresees, and within its own ledger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Shape, SiteData
from consortium.engine.centre import Setting
from consortium.engine.encoding import (
    MOST_QUERY,
    SiteNote,
    decode_note,
    decode_query,
    encode_note,
    query_context,
    read_announcement,
)
from consortium.engine.session import check_planned
from consortium.engine.wire import END, MOST_NOTICE, QUERY, Names, run_secret
from consortium.errors import DataError, LedgerError, ProtocolError, StudyError
from consortium.exchange.base import Exchange
from consortium.identity import Identity
from consortium.plan import Plan, count_rounds, make_plan
from consortium.privacy.gdp import mu_of
from consortium.privacy.noise import GaussianSampler
from consortium.secagg import CENTRE, OVERHEAD, Party, unseal
from site_agent.config import Limits
from site_agent.ledger import Charge, Ledger
from site_agent.store import Store

MOST_BUNDLE = 1 << 30


@dataclass(frozen=True)
class Site:
    """A site's belongings.

    Parameters
    ----------
    name : str
    identity : Identity
    dataset : str
        Name of the data set in the ledger.
    limits : Limits
    ledger : Ledger
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
    limits: Limits
    ledger: Ledger
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
    """

    def __init__(self, site: Site, setting: Setting, data: SiteData, note: SiteNote) -> None:
        self.plan: Plan | None = None
        self.ended: Mapping[str, object] | None = None
        self._site = site
        self._setting = setting
        self._data = data
        self._note = note
        self._names = Names(setting.run)
        self._secret = run_secret(site.identity.root, setting.run, "site")
        self._party = Party(
            run=setting.run,
            name=site.name,
            roster=setting.roster,
            rounds=count_rounds(setting.study, setting.features),
            identity=site.identity.key,
            secret=self._secret,
        )
        self._steps = iter((self._advertise, self._share, self._take_shares))
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
        if self._step is not None:
            if not self._step():
                return self._read_end()
            self._step = next(self._steps, None)
            return True
        return self._answer_unmasking() or self._answer_query() or self._read_end()

    # -- set-up ---------------------------------------------------------------------------

    def _advertise(self) -> bool:
        message = self._party.advertise(encode_note(self._note))
        self._send(self._names.setup("advertise", self._site.name), "advertise", message)
        return True

    def _share(self) -> bool:
        bundle = self._receive(self._names.setup("keys"), "keys", MOST_BUNDLE)
        if bundle is None:
            return False
        message = self._party.receive_keys(bundle)
        self.plan = plan = make_plan(self._setting.study, self._shape())
        mu, unit = plan.site_loss(self._index), self._setting.study.privacy.unit
        owed = mu if not self._started else 0.0  # a started run has its rounds in the ledger
        self._site.ledger.check(self._site.dataset, unit, owed, self._limit)
        self._site.store.save(self._setting.run, "keys", bundle)
        self._send(self._names.setup("share", self._site.name), "share", message)
        self._site.tell(f"joined {self._setting.run}: {plan.rounds} rounds, ε = {plan.epsilon:.3g}")
        return True

    def _take_shares(self) -> bool:
        bundle = self._receive(self._names.setup("shares"), "shares", MOST_BUNDLE)
        if bundle is None:
            return False
        self._party.receive_shares(bundle)
        self._site.store.save(self._setting.run, "shares", bundle)
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
        subjects, samples = tuple(n.subjects for n in sizes), tuple(n.samples for n in sizes)
        return Shape(self._setting.features, subjects, samples, study.privacy.unit)

    # -- rounds ---------------------------------------------------------------------------

    def _answer_query(self) -> bool:
        plan, number = self._plan, len(self._stages) + 1
        if number > plan.rounds:
            return False
        message = self._receive(self._names.round(number, QUERY), f"{number}/query", MOST_QUERY)
        if message is None:
            return False
        body = self._signed(message, QUERY, number)
        query = decode_query(body, self._fetch)
        stage = check_planned(plan, query, self._stages)
        context = query_context(plan, number, body)
        self._site.store.save(self._setting.run, f"{number}/query", message)
        place = self._names.round(number, "contribution", self._site.name)
        stored = self._site.store.load(self._setting.run, f"{number}/contribution")
        if stored is not None:
            self._party.restore(number, context, True, self._stored_request(number))
            self._site.ledger.spend(self._charge(number, stage.name), self._site.now())
            self._site.exchange.put(place, stored)
        elif self._site.exchange.get(self._names.round(number, "unmask"), MOST_NOTICE) is None:
            mechanism = stage.mechanism
            charge = self._charge(number, stage.name)
            local = REGISTRY[self._setting.study.algorithm].statistics[query.statistic]
            statistic = local(self._data, query, mechanism.bound)
            self._site.ledger.reserve(charge, self._limit, self._site.now())
            sampler = GaussianSampler(self._noise_key(context, statistic.tobytes()))
            share = mechanism.protect(self._index, statistic, sampler)
            opened = share.opened if mechanism.opened_entries else None
            contribution = self._party.contribute(number, context, share.masked, opened)
            self._send(place, f"{number}/contribution", contribution)
            self._site.ledger.spend(charge, self._site.now())
            self._site.tell(f"answered round {number} ({query.statistic})")
        else:
            self._site.tell(f"round {number} was closed without this site; it goes on")
            self._stages.append(stage.name)
            return True
        self._stages.append(stage.name)
        self._open = number if stage.mechanism.masked_entries else None
        return True

    def _answer_unmasking(self) -> bool:
        number = self._open
        if number is None:
            return False
        request = self._receive(
            self._names.round(number, "unmask"), f"{number}/unmask", MOST_NOTICE
        )
        if request is None:
            return False
        try:
            message = self._party.unmask(number, request)
        except ProtocolError as error:  # altered, or a list without this site: no answer
            self._complain(str(error))
            return False
        self._site.store.save(self._setting.run, f"{number}/unmask", request)
        place = self._names.round(number, "unmasking", self._site.name)
        self._send(place, f"{number}/unmasking", message)
        self._open = None
        return True

    def _noise_key(self, context: bytes, statistic: bytes) -> bytes:
        """A fresh key for every pair of question and answer; the same for the same pair.

        So a restored backup can't be made to draw two noises for one number.
        """
        digest = hashlib.sha256(statistic).hexdigest()
        return run_secret(self._secret, context.hex(), f"noise {digest}")

    def _charge(self, number: int, name: str) -> Charge:
        setting, stage = self._setting, self._plan.stage(name)
        return Charge(
            self._site.dataset,
            setting.study.study,
            setting.run,
            number,
            name,
            stage.release.statistic,
            setting.study.privacy.unit,
            float(stage.mechanism.coalition()[self._index]),
        )

    def _complain(self, text: str) -> None:
        if text != self._complaint:
            self._site.tell(text)
            self._complaint = text

    # -- messages -------------------------------------------------------------------------

    def _receive(self, place: str, name: str, limit: int) -> bytes | None:
        """A message as it was first read; later changes on the exchange are not seen."""
        stored = self._site.store.load(self._setting.run, name)
        return stored if stored is not None else self._site.exchange.get(place, limit + OVERHEAD)

    def _send(self, place: str, name: str, message: bytes) -> None:
        self._site.store.save(self._setting.run, name, message)
        self._site.exchange.put(place, message)

    def _signed(self, message: bytes, kind: str, number: int) -> bytes:
        return unseal(
            message,
            self._setting.keys,
            run=self._setting.run,
            kind=kind,
            limit=MOST_QUERY + OVERHEAD,
            sender=CENTRE,
            round=number,
        ).body

    def _fetch(self, digest: str, size: int) -> bytes:
        data = self._site.exchange.get(self._names.array(digest), size)
        if data is None:
            raise ProtocolError("A query names an array that is not on the exchange yet; wait.")
        return data

    def _stored_request(self, number: int) -> bytes | None:
        return self._site.store.load(self._setting.run, f"{number}/unmask")

    def _read_end(self) -> bool:
        message = self._site.exchange.get(self._names.end(), MOST_NOTICE)
        if message is None:
            return False
        self.ended = read_announcement(self._signed(message, END, 0))
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
        return self._site.store.load(self._setting.run, "keys") is not None

    @property
    def _limit(self) -> float:
        limits, unit = self._site.limits, self._setting.study.privacy.unit
        return mu_of(limits.subject if unit == "subject" else limits.timepoint, limits.delta)


def public_reason(error: Exception) -> str:
    """What of an error may cross the border: nothing of the data, no file, no label."""
    if isinstance(error, DataError):
        return "an image or table of its data set can't be used; the site's own log names it"
    if isinstance(error, LedgerError):
        return "its ledger can't be used; the site's own log says why"
    return "its own rules refuse the study; the site's own log says why"
