"""A site in the rounds of a run: a query in, a contribution out, and the sum's unmasking.

The site answers only queries that its own plan foresees, once each, and within its own ledger.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from consortium.algorithms.base import AnalysisPlan, Array, Query
from consortium.engine.closing import read_end
from consortium.engine.names import QUERY
from consortium.engine.neighbour_answers import answers_neighbours
from consortium.engine.queries import MOST_QUERY, decode_query, query_context, sketch_query
from consortium.engine.session import check_planned
from consortium.errors import (
    ConsortiumError,
    EngineError,
    ExchangeError,
    OversizedError,
    PrivacyError,
    ProtocolError,
)
from consortium.privacy.clipping import vector_norm
from consortium.privacy.mechanism import Mechanism
from consortium.privacy.noise import GaussianSampler
from consortium.secagg import OVERHEAD, messages
from consortium.study.plan import Stage
from consortium.study.slots import round_slot
from site_agent.approval.permission import Permission
from site_agent.loading.progress import Data
from site_agent.policy.policy import check_statistic
from site_agent.run.charges import AskedRound, Charges
from site_agent.run.checks import Checks
from site_agent.run.neighbours import NeighbourEvidence, Neighbours
from site_agent.run.outbox import Outbox, Outgoing
from site_agent.run.setup import JoinedRun, Site
from site_agent.run.slot_clock import SlotClock


@dataclass(frozen=True)
class ComputedRound:
    """A round's statistic, computed and neither charged nor stored yet."""

    asked: AskedRound
    query: Query
    part: float
    """Units of this site over its nominal ones."""
    statistic: Array
    key: bytes
    """Multiple of the noise."""
    heard: tuple[messages.Heard, ...]
    """Neighbours' answers that the manifest lists."""


@dataclass(frozen=True)
class Answer:
    """Message of a site in a round."""

    message: bytes | memoryview
    """The contribution."""
    broadcast: Outgoing | None
    """The open copy for the neighbours, if the stage has any."""


class Rounds:
    """The rounds of one site in one run.

    A statistic is computed as soon as the query arrives. Once the slot is over, the site checks
    whether the round is still open, charges it, and sends the answer. So neither the answer nor any
    look at the exchange shows how long the participants took.

    Parameters
    ----------
    permission : callable
        Returns the site's current permission for the study, or raises the reason for its absence.
    log_trouble : callable
        Receives temporary errors.
    """

    def __init__(
        self,
        site: Site,
        joined: JoinedRun,
        data: Data,
        permission: Callable[[], Permission],
        outbox: Outbox,
        slots: SlotClock,
        log_trouble: Callable[[str], None],
    ) -> None:
        self._site = site
        self._data = data
        self._slots = slots
        self._outbox = outbox
        self._names = outbox.names
        self._log_trouble = log_trouble
        self._context = joined.context
        self._plan = joined.plan
        self._party = joined.party
        self._sizes = joined.sizes
        self._index = joined.context.study.sites.index(site.name)
        key = site.identity.key
        self._neighbours = Neighbours(joined.plan, self._index, key, outbox, site.log.line)
        self._hearsay = NeighbourEvidence(site.name, joined, outbox)
        self._checks = Checks(site, joined, outbox)
        self.sent: tuple[int, ...] = ()
        self._stages: list[str] = []  # stages of the queries read so far
        self._charges = Charges(
            site=site,
            joined=joined,
            persons=joined.persons,
            permission=permission,
            outbox=outbox,
            log_trouble=log_trouble,
        )
        self._closing = RoundStatus(site, joined, outbox)
        self._open: int | None = None  # round with a contribution, not yet unmasked
        self._computed: ComputedRound | None = None
        self._failure: Exception | None = None  # of computing

    def advance(self) -> bool:
        """Answer the centre's next query, and return whether there was one.

        Raises ConsortiumError as `Participation.advance`.
        """
        if self._failure is not None:
            raise self._failure
        if self._computed is not None:
            return self._finish(self._computed)
        return self._answer_unmasking() if self._open is not None else self._answer_query()

    def advance_aside(self) -> bool:
        """Answer a query that came though the last round was not closed, or check a release.

        Raises ConsortiumError as `Participation.advance`.
        """
        return (self._open is not None and self._answer_query()) or self._checks.advance()

    @property
    def asks_more(self) -> bool:
        """Whether the centre has another query, or has not closed the last one."""
        return self._open is not None or len(self._stages) < self._plan.rounds

    @property
    def awaits_sum(self) -> bool:
        """Whether a round is open that this site has contributed to."""
        return self._open is not None

    @property
    def awaited(self) -> str:
        """Message that the centre is to send, in words."""
        if self._open is not None:
            return f"sum of round {self._open}"
        return f"round {len(self._stages) + 1}"

    def _answer_query(self) -> bool:
        number = len(self._stages) + 1
        if number > self._plan.rounds:
            return False
        place = self._names.round(number, QUERY)
        message = self._outbox.receive(place, f"{number}/query", MOST_QUERY)
        if message is None:
            return False
        body = self._outbox.signed(message, QUERY, number, MOST_QUERY)
        query, stage = self._read_query(body)
        asked = AskedRound(number, stage, query_context(self._plan, number, body), message)
        self._answer(asked, query)
        return True

    def _answer(self, asked: AskedRound, query: Query) -> None:
        """Answer as before a restart, or otherwise compute again unless the round is closed."""
        number = asked.number
        stored = self._outbox.stored(f"{number}/contribution")
        if stored is not None:
            unmask = self._outbox.stored(f"{number}/unmask")
            self._party.restore(number, asked.digest, True, unmask)
            self._send(asked, Answer(stored, self._neighbours.kept(number)))
            self._note(asked)
        elif self._closing.is_closed(asked) or self._checks.attested:
            self._pass_over(asked)
            self._note(asked)
        else:
            self._compute_in_slot(asked, self._collect(query, asked.stage))

    def _compute_in_slot(self, asked: AskedRound, query: Query) -> None:
        """Compute, and continue at the end of the slot, when a refusal is also sent."""
        try:
            self._computed = self._compute(asked, query)
        except (ExchangeError, ProtocolError, EngineError):
            raise
        except Exception as error:
            self._failure = error
        self._slots.hold(round_slot(self._plan.shape, asked.stage.release))

    def _finish(self, computed: ComputedRound) -> bool:
        """Send the computed answer, unless the round was closed meanwhile."""
        asked = computed.asked
        answer = self._contribute(computed)
        if answer is not None:
            self._send(asked, answer)
            self._site.log.line(f"answered round {asked.number} ({computed.query.statistic})")
        else:
            self._pass_over(asked)
        self._computed = None
        self._note(asked)
        return True

    def _note(self, asked: AskedRound) -> None:
        """Remember a queried round."""
        number = asked.number
        stage = asked.stage
        self._stages.append(stage.name)
        self._neighbours.note(number, stage, asked.digest)
        self._checks.note(number, stage, asked.digest)

    def _pass_over(self, asked: AskedRound) -> None:
        """Continue without an answer. A charge from before a stop remains."""
        number = asked.number
        charged = self._charges.holds(asked)
        self._outbox.keep(f"{number}/query", asked.message)
        cost = (
            "was charged for it before it was stopped" if charged else "is charged nothing for it"
        )
        self._site.log.write(
            f"round {number} was closed without this site, which sent nothing and {cost}; it "
            "continues"
        )

    def _read_query(self, body: bytes) -> tuple[Query, Stage]:
        """Judge a query by its outline before its arrays are fetched."""
        try:
            stage = check_planned(self._plan, sketch_query(body), self._stages)
            return decode_query(body, self._outbox.arrays()), stage
        except ProtocolError as error:  # the centre signed it: no other will come
            raise PrivacyError(f"A signed query of the centre is refused: {error}") from error

    def _collect(self, query: Query, stage: Stage) -> Query:
        """Return the query with the site's index and its neighbours' answers."""
        answers = self._neighbours.collect(stage) if stage.release.neighbours else None
        return replace(query, neighbour_answers=answers, site=self._index)

    def _compute(self, asked: AskedRound, query: Query) -> ComputedRound:
        """Compute before anything is charged. So a failed computation costs nothing."""
        check_statistic(self._site.policy, query.statistic)
        heard = self._hearsay.due(asked.stage, self._neighbours.heard)
        mechanism = asked.stage.mechanism
        statistic = local_statistic(self._plan.analysis, self._data, query, mechanism)
        for fault in self._data.new_faults():
            self._site.log.line(fault)
        units = self._data.units
        part = units / self._plan.shape.units[self._index]
        key = self._charges.noise_key(asked.digest, statistic.tobytes(), units)
        return ComputedRound(
            asked=asked, query=query, part=part, statistic=statistic, key=key, heard=heard
        )

    def _contribute(self, computed: ComputedRound) -> Answer | None:
        """Charge the computed statistic, and mask it.

        Returns None without a charge if the computation took so long that the round is over.
        """
        asked = computed.asked
        key = computed.key
        mechanism = asked.stage.mechanism
        if self._closing.is_over(asked):
            return None
        new = self._charges.reserve(asked, remembered=self._charges.commit(asked.number, key))
        noise = GaussianSampler(key)
        share = mechanism.protect(self._index, computed.statistic, noise, computed.part)
        opened = share.opened if mechanism.opened_entries else None
        broadcast = None
        if answers_neighbours(asked.stage):
            broadcast = self._neighbours.outgoing(
                asked.number, asked.digest, share.opened, mechanism.lattice.bits
            )
        message = self._party.contribute(
            asked.number,
            asked.digest,
            share.masked,
            opened,
            bits=mechanism.lattice.bits,
            released=mechanism.each,
            heard=computed.heard,
            clear=mechanism.public,
        )
        if new and self._closing.is_over(
            asked
        ):  # an earlier start may have sent the answer that it reserved
            self._charges.take_back(asked)
            return None
        return Answer(message, broadcast)

    def _send(self, asked: AskedRound, answer: Answer) -> None:
        """Store an answer with its question, to be put on the exchange; the round is spent."""
        number = asked.number
        masked = asked.stage.mechanism.masked_entries
        place = self._names.round(number, "contribution", self._site.name)
        own = Outgoing(place, f"{number}/contribution", answer.message)
        # Neighbours first: once the centre has the answer, the next round may begin.
        outgoing = [own] if answer.broadcast is None else [answer.broadcast, own]
        self._outbox.send_all(outgoing, {f"{number}/query": asked.message})
        if asked.stage.release.neighbours:
            self._hearsay.listed(number, asked.stage, answer.message)
        self._charges.mark_sent(asked)
        self._open = number if masked else None
        self.sent = (*self.sent, number)

    def _answer_unmasking(self) -> bool:
        number = self._open
        if number is None:
            return False
        place = self._names.round(number, "unmask")
        if self._checks.attested and self._outbox.stored(f"{number}/unmasking") is None:
            return False
        stage = self._plan.stage(self._stages[number - 1])
        limit = self._sizes.request(stage.message_bytes, stage.heard)
        request = self._outbox.receive(place, f"{number}/unmask", limit)
        if request is None:
            return False
        try:
            message = self._party.unmask(number, request)
        except ProtocolError as error:  # altered, or a list without this site: no answer
            self._log_trouble(str(error))
            return False
        place = self._names.round(number, "unmasking", self._site.name)
        self._outbox.send(place, f"{number}/unmasking", message, {f"{number}/unmask": request})
        self._open = None
        return True


def local_statistic(
    plan: AnalysisPlan[Any], data: Data, query: Query, mechanism: Mechanism
) -> Array:
    """Compute the site's own statistic. Its algorithm is trusted with the data, the query is not.

    Raises PrivacyError if it can't be computed for this query, or differs from the plan.

    Parameters
    ----------
    mechanism : Mechanism
        As planned, with the bound on one participant's contribution.

    Returns
    -------
    array of float64, shape (entries,)
        Within the bound's norm.
    """
    planned = mechanism.entries - mechanism.places
    if mechanism.sums and not data.units:
        return np.zeros(planned)
    local = plan.statistics[query.statistic]
    try:
        statistic = np.asarray(local(plan, data, query, mechanism.bound), dtype=np.float64)
    except ConsortiumError as error:
        if isinstance(error, ProtocolError):
            raise PrivacyError(f"A query is refused: {error}") from error
        raise
    except Exception as error:
        raise PrivacyError(
            f"'{query.statistic}' can't be computed for the centre's query "
            f"({type(error).__name__}: {error}). Inform the study's coordinator."
        ) from error
    norm = vector_norm(statistic)
    if statistic.size != planned or not norm <= mechanism.bound.norm * (1 + 1e-6):
        raise PrivacyError(
            f"'{query.statistic}' has {statistic.size} numbers of norm {norm:g} where {planned} "
            f"of at most {mechanism.bound.norm:g} are planned. Inform the study's coordinator."
        )
    return statistic


class RoundStatus:
    """The ends of one run's rounds, as one site receives them."""

    def __init__(self, site: Site, joined: JoinedRun, outbox: Outbox) -> None:
        self._exchange = site.exchange
        self._outbox = outbox
        self._context = joined.context
        self._sizes = joined.sizes

    def is_over(self, asked: AskedRound) -> bool:
        """Return whether an answer would come too late: the round is closed, or the run has ended.

        Asked before a round is charged and before its answer is sent, since computing may have
        taken long. Errors of the exchange are ignored once the run has ended.
        """
        with suppress(ProtocolError, ExchangeError):
            ended = read_end(self._exchange, self._context.run, self._context.keys)
            if ended is not None:
                return True
        with suppress(ExchangeError):
            return self.is_closed(asked)
        return False

    def is_closed(self, asked: AskedRound) -> bool:
        """Return whether a signed message of the centre states that it continued without this site.

        A file there that the centre did not sign is ignored.
        """
        number = asked.number
        kind = messages.UNMASK
        if asked.stage.mechanism.masked_entries:
            limit = self._sizes.request(asked.stage.message_bytes, asked.stage.heard)
        else:
            number = number + 1
            kind = QUERY
            limit = MOST_QUERY
        with suppress(ProtocolError, OversizedError):
            message = self._outbox.peek(self._outbox.names.round(number, kind), limit + OVERHEAD)
            return message is not None and bool(self._outbox.signed(message, kind, number, limit))
        return False
