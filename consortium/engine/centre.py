"""The centre of a run: asks the sites over the exchange and opens sums.

Everything it knows is on the exchange and in the transcript. After a crash a
new `Centre` with the same arguments repeats the same steps, finds its own
messages already there, and goes on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium import __version__
from consortium.algorithms.base import Result, Shape
from consortium.engine.encoding import (
    MOST_QUERY,
    SiteNote,
    decode_note,
    encode_query,
    query_context,
    read_announcement,
)
from consortium.engine.session import Round, Session
from consortium.engine.transcript import Transcript
from consortium.engine.wire import (
    ANNOUNCEMENT,
    END,
    MOST_NOTICE,
    QUERY,
    REFUSAL,
    Clock,
    Names,
    run_secret,
)
from consortium.errors import (
    ConsortiumError,
    ExchangeError,
    PrivacyError,
    ProtocolError,
    SiteError,
    StudyError,
    ThresholdError,
)
from consortium.exchange.base import Exchange
from consortium.plan import Plan, count_rounds, make_plan, masked_threshold
from consortium.secagg import CENTRE, OVERHEAD, Hub, Roster, RoundSum, seal, unseal
from consortium.secagg.messages import Limits
from consortium.study import Study


@dataclass(frozen=True)
class Setting:
    """What a run is about.

    Parameters
    ----------
    run : str
        Name of the run on the exchange.
    study : Study
    keys : mapping of str to bytes
        Ed25519 public keys of the centre and every site.
    grid : str
        Digest of the study's mask and space.
    features : int
        D, voxels in the mask.
    """

    run: str
    study: Study
    keys: Mapping[str, bytes]
    grid: str
    features: int

    @property
    def roster(self) -> Roster:
        """Who takes part and how many must stay."""
        minimum = len(self.study.sites) - self.study.privacy.dropouts
        return Roster(self.study.sites, self.keys, masked_threshold(self.study), minimum)

    @property
    def announcement(self) -> bytes:
        """The study and the roster, as one JSON text."""
        content = {
            "study": self.study.model_dump(mode="json"),
            "keys": {name: key.hex() for name, key in sorted(self.keys.items())},
            "grid": self.grid,
            "version": __version__,
        }
        return json.dumps(content, sort_keys=True).encode()


class Centre:
    """The centre's half of a run.

    Parameters
    ----------
    setting : Setting
    identity : Ed25519PrivateKey
        The consortium's key.
    exchange : Exchange
    folder : Path
        Where the transcript is kept.
    clock : Clock
    tell : callable
        Receives a line of progress now and then.
    """

    def __init__(
        self,
        setting: Setting,
        identity: Ed25519PrivateKey,
        exchange: Exchange,
        folder: Path,
        clock: Clock,
        tell: Callable[[str], None],
    ) -> None:
        self.setting = setting
        self.session: Session | None = None
        self._identity = identity
        self._exchange = exchange
        self._names = Names(setting.run)
        self._transcript = Transcript(folder)
        self._clock = clock
        self._tell = tell
        self._told: set[str] = set()
        study = setting.study
        rounds = count_rounds(study, setting.features)
        self._sizes = Limits(len(study.sites), rounds)
        self._hub = Hub(
            run=setting.run,
            roster=setting.roster,
            rounds=rounds,
            identity=identity,
            secret=run_secret(identity.private_bytes_raw(), setting.run, "hub"),
        )

    # -- set-up ---------------------------------------------------------------------------

    def open(self) -> Plan:
        """Announce the run, let every site join, and replay the rounds of an earlier start.

        Raises
        ------
        SiteError
            If a site is missing at the deadline, or refuses.
        BudgetError, StudyError
            If the study can't be carried out with these sites.
        """
        self._post(self._names.study(), ANNOUNCEMENT, 0, self.setting.announcement)
        sizes = self._sizes
        self._gather("advertise", sizes.advertisement, self._hub.receive_advertisement)
        plan = make_plan(self.setting.study, self._shape())
        self._exchange.put(self._names.setup("keys"), self._hub.keys())
        self._gather("share", sizes.share, self._hub.receive_share)
        self._exchange.put(self._names.setup("shares"), self._hub.shares())
        self.session = Session(plan)
        for done in self._transcript.rounds():
            self._same(done)
            self.session.accept(done.values, done.survivors)
        return plan

    def _gather(self, kind: str, limit: int, receive: Callable[[bytes], str]) -> None:
        seconds = self.setting.study.timing.join
        places = {site: self._names.setup(kind, site) for site in self.setting.study.sites}
        missing = self._collect(places, limit, seconds, receive, enough=len(places))
        if missing:
            names = ", ".join(missing)
            raise SiteError(
                f"{names}: no sound '{kind}' message within {seconds:g} s; start the site's agent "
                "and run the study again."
            )

    def _shape(self) -> Shape:
        notes: dict[str, SiteNote] = {}
        for site in self.setting.study.sites:
            notes[site] = decode_note(self._hub.notes[site], site)
            if notes[site].grid != self.setting.grid:
                raise StudyError(
                    f"{site} has another mask or space than the centre; give every site the same "
                    "study folder and version."
                )
        sizes = [notes[site] for site in self.setting.study.sites]
        return Shape(
            self.setting.features,
            tuple(note.subjects for note in sizes),
            tuple(note.samples for note in sizes),
            self.setting.study.privacy.unit,
        )

    def _same(self, stored: Round) -> None:
        session = self._open_session
        pending, sites = session.pending, len(self.setting.study.sites)
        minimum, present = self.setting.roster.minimum, set(stored.survivors)
        if (
            pending is None
            or (stored.stage, stored.statistic) != (pending.stage, pending.statistic)
            or stored.values.shape != (session.stage.release.entries,)
            or not present <= set(range(sites))
            or not minimum <= len(present) == len(stored.survivors)
        ):
            raise ProtocolError(
                f"Round {stored.number} of the transcript belongs to another study; "
                "choose another output folder."
            )

    @property
    def _open_session(self) -> Session:
        if self.session is None:
            raise ProtocolError("The run is not open yet; open it first.")
        return self.session

    # -- one round ------------------------------------------------------------------------

    def step(self) -> Round:
        """Run the pending round to its release.

        Raises
        ------
        SiteError
            If more sites are missing than the study allows, or one refuses.
        """
        session = self._open_session
        number, mechanism = session.number, session.stage.mechanism
        context = self._ask(session)
        masked, opened = mechanism.masked_entries, mechanism.opened_entries
        self._hub.open(number, context, masked, mechanism.lattice.bits, opened)
        if masked:
            self._request(number)
        else:
            self._contributions(number)
        total = self._sum(number) if masked else self._hub.sum(number)
        for holder, owner in total.wrong:
            self._tell(f"round {number}: {holder} holds a wrong share of {owner}; left out")
        sites = self.setting.study.sites
        survivors = [sites.index(name) for name in total.survivors]
        values = mechanism.release(total.sum, [total.opened[n] for n in total.opened])
        done = session.accept(values, survivors)
        self._transcript.append(done, context)
        return done

    def _ask(self, session: Session) -> bytes:
        """Post the pending query, or find the one that was posted before a crash."""
        assert session.pending is not None  # noqa: S101 - `stage` has checked it
        name = self._names.round(session.number, QUERY)
        stored = self._exchange.get(name, MOST_QUERY + OVERHEAD)
        if stored is None:
            body, beside = encode_query(session.pending)
            for digest, data in beside.items():
                self._exchange.put(self._names.array(digest), data)
            self._post(name, QUERY, session.number, body)
        else:
            body = self._own(stored, QUERY, session.number)
        return query_context(session.plan, session.number, body)

    def _contributions(self, number: int) -> None:
        study, seconds = self.setting.study, self.setting.study.timing.answer
        places = self._places(number, "contribution")
        limit = self._sizes.contribution(self._open_session.stage.message_bytes)
        self._collect(places, limit, seconds, self._hub.receive_contribution, len(places))
        missing = [s for s in study.sites if s not in self._hub.contributed(number)]
        if len(missing) > study.privacy.dropouts:
            raise SiteError(
                f"{', '.join(missing)}: no sound answer to round {number} within "
                f"{seconds:g} s; start the site's agent and run the study again."
            )
        if missing:
            self._tell(f"round {number}: going on without {', '.join(missing)}")

    def _request(self, number: int) -> None:
        """Close the round's contributions and post whose arrived."""
        name = self._names.round(number, "unmask")
        stored = self._exchange.get(name, self._sizes.request)
        if stored is not None:  # posted before a crash: the lists must stay as they are
            self._hub.restore(number, stored)
        self._contributions(number)
        self._exchange.put(name, self._hub.request(number))

    def _sum(self, number: int) -> RoundSum:
        """Open the sum with as few answers as will do; with all of them if shares are wrong."""
        survivors = self._hub.contributed(number)
        self._unmasking(number, survivors, self.setting.roster.threshold)
        try:
            return self._hub.sum(number)
        except ThresholdError as error:
            self._tell(str(error))
        self._unmasking(number, survivors, len(survivors))
        return self._hub.sum(number)

    def _unmasking(self, number: int, survivors: Sequence[str], enough: int) -> None:
        answered = self._hub.answered(number)
        places = self._places(number, "unmasking")
        due = {site: places[site] for site in survivors if site not in answered}
        seconds, limit = self.setting.study.timing.answer, self._sizes.unmasking
        receive = self._hub.receive_unmasking
        missing = self._collect(due, limit, seconds, receive, enough - len(answered))
        needed = self.setting.roster.threshold
        if len(survivors) - len(missing) < needed:
            self._hub.abandon(number)
            raise ThresholdError(
                f"{', '.join(missing)}: gone while round {number} was being summed, and "
                f"{needed} sites are needed to open it; the round is given up."
            )

    def _places(self, number: int, kind: str) -> dict[str, str]:
        return {s: self._names.round(number, kind, s) for s in self.setting.study.sites}

    # -- end ------------------------------------------------------------------------------

    def finish(self) -> Result:
        """Tell the sites that the run is complete, and return the result."""
        result = self._open_session.result
        if result is None:
            raise ProtocolError("The analysis is not finished; run its remaining rounds first.")
        self._post(self._names.end(), END, 0, b'{"outcome": "complete"}')
        return result

    def abort(self, error: ConsortiumError) -> None:
        """Tell the sites that the run is given up and why; says nothing of anybody's data."""
        named = isinstance(error, SiteError | ProtocolError | PrivacyError | StudyError)
        reason = str(error)[:2000] if named else "the centre can't go on; its own log says why"
        notice = json.dumps({"outcome": "aborted", "code": error.code, "reason": reason})
        try:
            if self._exchange.get(self._names.end(), MOST_NOTICE) is None:
                self._post(self._names.end(), END, 0, notice.encode())
        except ExchangeError as trouble:  # must not hide what ended the run
            self._tell(str(trouble))

    # -- messages -------------------------------------------------------------------------

    def _post(self, name: str, kind: str, number: int, body: bytes) -> None:
        message = seal(self._identity, self.setting.run, CENTRE, kind, number, body)
        self._exchange.put(name, message)

    def _own(self, data: bytes, kind: str, number: int) -> bytes:
        return unseal(
            data,
            self.setting.keys,
            run=self.setting.run,
            kind=kind,
            limit=MOST_QUERY + OVERHEAD,
            sender=CENTRE,
            round=number,
        ).body

    def _collect(
        self,
        places: Mapping[str, str],
        limit: int,
        seconds: float,
        receive: Callable[[bytes], str],
        enough: int,
    ) -> Sequence[str]:
        """Take messages until ``enough`` came or time is up; returns the sites still missing."""
        missing = dict(places)
        for _ in self._clock.polls(seconds):
            for place in list(missing.values()):
                try:
                    data = self._exchange.get(place, limit)
                    if data is not None:
                        missing.pop(receive(data), None)
                except (ProtocolError, ExchangeError) as error:  # wait for a good one
                    self._tell_once(f"{place}: {error}")
            if len(places) - len(missing) >= enough:
                break
            self._check_refusals()
        return list(missing)

    def _check_refusals(self) -> None:
        """Stop if a site has said that it takes no further part."""
        for site in self.setting.study.sites:
            try:
                notice = self._refusal(site)
            except (ProtocolError, ExchangeError) as error:  # somebody else wrote that
                self._tell_once(f"refusal of {site}: {error}")
                continue
            if notice is not None:
                code, reason = _legible(notice.get("code")), _legible(notice.get("reason"))
                raise SiteError(f"{site} takes no further part ({code}): {reason}")

    def _refusal(self, site: str) -> Mapping[str, object] | None:
        data = self._exchange.get(self._names.refusal(site), MOST_NOTICE)
        if data is None:
            return None
        opened = unseal(
            data,
            self.setting.keys,
            run=self.setting.run,
            kind=REFUSAL,
            limit=MOST_NOTICE,
            sender=site,
        )
        return read_announcement(opened.body)

    def _tell_once(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self._tell(line)


def _legible(text: object) -> str:
    """What a site wrote, without anything that a terminal or a reader could trip over."""
    return "".join(c for c in str(text)[:300] if c.isprintable())
