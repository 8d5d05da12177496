"""The centre of a run: asks the sites over the exchange and opens sums.

Its whole state is on the exchange and in the transcript. After a crash a new `Centre` with the same
arguments repeats the same steps, finds its own messages on the exchange, and continues where it
stopped.
"""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.algorithms.base import Result
from consortium.base.atomic import write_json
from consortium.base.one_thread import one_thread
from consortium.base.work import work_folder
from consortium.engine.clock import Clock, WaitFile, Waiting
from consortium.engine.closing import Closing, end_notice, most_closing
from consortium.engine.kept_round import Kept
from consortium.engine.mailbox import AwaitedMessages, Mailbox
from consortium.engine.names import (
    ANNOUNCEMENT,
    END,
    MOST_NOTICE,
    PRESENT,
    QUERY,
    START,
    Names,
    run_secret,
)
from consortium.engine.own_platform import own_platform
from consortium.engine.queries import MOST_QUERY, decode_note, encode_query, query_context
from consortium.engine.releases import Releases
from consortium.engine.round_messages import RoundMessages, not_started, shortage
from consortium.engine.run_context import RunContext, read_start, start_notice
from consortium.engine.session import Round, Session
from consortium.engine.transcript import TRANSCRIPT, Transcript
from consortium.engine.unit_counts import COUNTS
from consortium.errors import (
    ConsortiumError,
    ExchangeError,
    ProtocolError,
    StudyError,
)
from consortium.exchange.base import Exchange
from consortium.secagg import OVERHEAD, Hub
from consortium.secagg.messages import Limits
from consortium.study.plan import Plan, count_rounds, make_plan, nominal_shape, plan_digest
from consortium.study.slots import check_slots, loading_slot


class Centre:
    """The centre's half of a run.

    Parameters
    ----------
    identity : Ed25519PrivateKey
        The consortium's key.
    folder : Path
        The output folder, where the transcript is kept.
    log : callable
        Receives a line of progress now and then.
    """

    def __init__(
        self,
        context: RunContext,
        identity: Ed25519PrivateKey,
        exchange: Exchange,
        folder: Path,
        clock: Clock,
        log: Callable[[str], None],
    ) -> None:
        one_thread()  # a verifier computes it on one thread also
        self.context = context
        self.session: Session | None = None
        self._identity = identity
        self._exchange = exchange
        self._names = Names(context.run)
        self._folder = folder
        self._transcript = Transcript(folder / TRANSCRIPT)
        wait_file = WaitFile(folder, clock.wall)
        self._mail = Mailbox(
            context=context,
            identity=identity,
            exchange=exchange,
            clock=clock,
            wait_file=wait_file,
            log=log,
        )
        self._log = log
        self._announced = context.announcement
        self._records: list[bytes] = []  # one record a round so far
        self._placed: set[str] = set()  # digests of public arrays
        self._resumes = True  # the next round may have been begun before a crash

    def on_wait(self, listener: Callable[[Waiting], None]) -> None:
        """Register a listener for waits."""
        self._mail.wait_file.listen(listener)

    def on_absence(self, read_approvals: Callable[[], Mapping[str, str]]) -> None:
        """Ask why a site is absent: its approval may not cover the run.

        Parameters
        ----------
        read_approvals : callable
            Returns a sentence for each site whose approval does not cover the run.
        """
        self._mail.notices.read_approvals = read_approvals

    @property
    def refused(self) -> tuple[str, ...]:
        """Sites that said that they take no further part."""
        return tuple(
            site for site in self.context.study.sites if site in self._mail.notices.refused
        )

    # -- set-up ---------------------------------------------------------------------------

    def open(self) -> Plan:
        """Announce the run, let the sites join, and replay the rounds of an earlier start.

        Raises SiteError if too few sites have joined at the deadline, or one is lost while keys are
        agreed. Raises BudgetError, StudyError if the study can't be carried out with these sites.
        """
        self._mail.post(self._names.study(), ANNOUNCEMENT, 0, self.context.announcement)
        self.context = self.context.started_with(self._wait_for_sites())
        self._hub = self._make_hub()
        self.releases = Releases(self.context, self._hub.session, self._mail, self._sizes)
        sizes = self._sizes
        self._messages = RoundMessages(self.context, self._mail, self._hub, sizes)
        self._gather("advertise", sizes.advertisement, self._hub.setup.receive_advertisement)
        plan = self._plan()
        self._mail.put(self._names.setup("keys"), self._hub.setup.keys())
        self._gather("share", sizes.share, self._hub.setup.receive_share)
        self._hub.setup.check_common(plan_digest(plan))
        for site in self.context.study.sites:
            self._mail.put(self._names.setup("shares", site), self._hub.setup.shares(site))
        self.session = Session(plan)
        for done in self._transcript.rounds():
            self._same(done)
            self._records.append(self.releases.check_kept(done, self.session.stage))
            values = self.session.stage.mechanism.lattice.decode(done.ring)
            self.session.accept(values, done.survivors)
        return plan

    def _wait_for_sites(self) -> tuple[str, ...]:
        """Settle which sites the run starts with, once and for all."""
        name = self._names.start()
        stored = self._mail.get(name, MOST_NOTICE)
        if stored is not None:
            return read_start(self._mail.own(name, stored, START, 0))
        study = self.context.study
        places = {site: self._names.present(site) for site in study.sites}
        timing = study.timing
        slot = loading_slot(nominal_shape(study, self.context.extent))
        join = timing.join + slot  # before its end no site says anything
        awaited = AwaitedMessages.within(
            join, "present", places, MOST_NOTICE, self._accept, loading=timing.ready
        )
        missing = self._mail.collect(awaited)
        present = tuple(site for site in study.sites if site not in missing)
        if len(present) < study.fewest:
            raise not_started(self._mail, missing)
        if missing:
            self._log(f"starting without {', '.join(missing)}")
        self._mail.post(name, START, 0, start_notice(present))
        return present

    def _accept(self, data: bytes) -> str:
        return self._mail.notice(data, PRESENT)

    def _make_hub(self) -> Hub:
        context = self.context
        key = self._identity
        rounds = count_rounds(context.study, context.extent)
        self._sizes = Limits(len(context.study.sites), rounds, context.roster.holders)
        secret = run_secret(key.private_bytes_raw(), context.run, "hub")
        return Hub(
            run=context.run, roster=context.roster, rounds=rounds, identity=key, secret=secret
        )

    def _gather(self, kind: str, limit: int, receive: Callable[[bytes], str]) -> None:
        seconds = self.context.study.timing.join
        places = {site: self._names.setup(kind, site) for site in self.context.study.sites}
        wanted = AwaitedMessages.within(seconds, f"set-up ({kind})", places, limit, receive)
        missing = self._mail.collect(wanted)
        if missing:
            raise shortage(self._mail, missing, f"no sound '{kind}' message", seconds)

    def _plan(self) -> Plan:
        """Plan the study as it is stated; raises StudyError if a site has another mask."""
        context = self.context
        for site in context.study.sites:
            if decode_note(self._hub.setup.notes[site], site).grid != context.grid:
                raise StudyError(
                    f"{site} has another mask or space than the centre. Give every site the same "
                    "study folder and version."
                )
        plan = make_plan(context.study, nominal_shape(context.study, context.extent), agreed=True)
        check_slots(plan.study, plan.shape, [stage.release for stage in plan.stages])
        return plan

    def _same(self, stored: Kept) -> None:
        session = self._open_session
        pending = session.pending
        sites = len(self.context.study.sites)
        minimum = self.context.roster.minimum
        present = set(stored.survivors)
        if (
            pending is None
            or (stored.stage, stored.statistic) != (pending.stage, pending.statistic)
            or stored.ring.shape != (session.stage.mechanism.released(len(present)),)
            or stored.ring.dtype != session.stage.mechanism.lattice.dtype
            or not present <= set(range(sites))
            or not minimum <= len(present) == len(stored.survivors)
        ):
            raise ProtocolError(
                f"Round {stored.number} of the transcript belongs to another study. "
                "Choose another output folder."
            )

    @property
    def _open_session(self) -> Session:
        if self.session is None:
            raise ProtocolError("The run is not open yet. Open it first.")
        return self.session

    # -- one round ------------------------------------------------------------------------

    def step(self) -> Round:
        """Run the pending round to its release.

        Raises SiteError if more sites are missing than the study allows, or one refuses.
        """
        session = self._open_session
        number = session.number
        stage = session.stage
        resumes = self._resumes
        self._resumes = True
        digest, asked = self._ask(session, resumes=resumes)
        mechanism = stage.mechanism
        masked = mechanism.masked_entries
        opened = mechanism.opened_entries
        bits = mechanism.lattice.bits
        each = mechanism.each
        self._hub.open(
            number,
            digest,
            masked,
            bits,
            opened,
            released=each,
            heard=stage.heard,
            clear=mechanism.public,
        )
        if masked:
            self._messages.request(number, stage, resumes=resumes)
        else:
            posted = self.releases.survivors(number, stage) if resumes else None
            self._messages.contributions(number, stage, posted)
        total = self._messages.sum(number) if masked else self._hub.sum(number)
        for holder, owner in total.wrong:
            self._log(f"round {number}: {holder} has a wrong share of {owner}; excluded")
        sites = self.context.study.sites
        survivors = [sites.index(name) for name in total.survivors]
        ring = mechanism.combine(total.sum, total.opened)
        # Only a checked release is published: no seed of another round is ever shown.
        done = session.accept(mechanism.lattice.decode(ring), survivors)
        self._records.append(self.releases.post(total, digest, ring, stage))
        self._transcript.append(
            Kept(
                number=number,
                stage=done.stage,
                statistic=done.statistic,
                survivors=done.survivors,
                ring=ring,
                query=digest,
            )
        )
        self._resumes = asked  # then the transcript was lost, and the next may exist also
        self._note_counts(session)
        return done

    def _note_counts(self, session: Session) -> None:
        """Write down the estimated number of units of each site, for `consortium status`."""
        counts = session.counts
        plan = session.plan
        rows = zip(counts.estimate.tolist(), plan.shape.units, strict=True)
        sites = dict(zip(plan.study.sites, map(list, rows), strict=True))
        content = {"units and nominal": sites, "deviation": counts.deviation}
        write_json(work_folder(self._folder) / COUNTS, content)

    def _ask(self, session: Session, *, resumes: bool) -> tuple[bytes, bool]:
        """Post the pending query, or find the one that was posted before a crash.

        A round after one that this process has begun can't have been begun before.

        Returns
        -------
        digest : bytes
        asked : bool
            Whether it was posted before.
        """
        assert session.pending is not None  # noqa: S101 - `stage` has checked it
        name = self._names.round(session.number, QUERY)
        stored = self._mail.get(name, MOST_QUERY + OVERHEAD) if resumes else None
        if stored is None:
            body, arrays = encode_query(session.pending)
            for digest, data in arrays.items():
                if digest not in self._placed:
                    self._mail.put(self._names.array(digest), data)
                    self._placed.add(digest)
            self._mail.post(name, QUERY, session.number, body)
        else:
            body = self._mail.own(name, stored, QUERY, session.number)
        return query_context(session.plan, session.number, body), stored is not None

    # -- end ------------------------------------------------------------------------------

    def finish(self) -> Result:
        """Announce to the sites that the run is complete, and return the result."""
        result = self._open_session.result
        if result is None:
            raise ProtocolError("The analysis is not finished. Run its remaining rounds first.")
        self._close()
        self._mail.post(self._names.end(), END, 0, end_notice())
        return result

    def _close(self) -> None:
        """Post the list of releases, and wait for a while for the sites' attestations.

        A result is never lost for a missing attestation. It is published as not shown.
        """
        closing = Closing(
            hashlib.sha256(self._announced).digest(),
            hashlib.sha256(self._hub.setup.keys()).digest(),
            plan_digest(self._open_session.plan),
            tuple(self._records),
            dict(own_platform()),
        )
        self.releases.close(closing)
        study = self.context.study
        if not study.checkers:
            return
        late = min(study.timing.answer, study.timing.late)
        wanted = AwaitedMessages.within(
            study.timing.answer,
            "attestations",
            {site: self._names.attestation(site) for site in study.sites},
            most_closing(len(self._records)),
            self.releases.receive_attestation,
            late=dict.fromkeys(self._messages.late, late),
        )
        missing = self._mail.collect(wanted)
        if missing:
            self._log(f"no attestation of {', '.join(missing)}; the result stands without them")

    def abort(self, error: ConsortiumError) -> None:
        """Announce to the sites that the run is aborted and why, without any site's data."""
        try:
            if self._exchange.get(self._names.end(), MOST_NOTICE) is None:
                self._mail.post(self._names.end(), END, 0, end_notice(error))
        except ExchangeError as trouble:  # must not hide what ended the run
            self._log(str(trouble))
