"""A site in one run: every step from the announcement to the end, each repeatable.

The site trusts no other party. It acts only on a study that its staff approved, on
messages signed with the approved roster's keys, on queries that its own plan
foresees, and within its own ledger.
"""

from collections.abc import Callable, Sequence

from consortium.engine.closing import Ended, read_end
from consortium.engine.names import Names
from consortium.engine.run_context import RunContext
from consortium.errors import (
    EngineError,
    ExchangeError,
    ProtocolError,
)
from consortium.secagg import CENTRE
from consortium.study.slots import SHORTEST
from consortium.study.spec import TimingSection
from site_agent.approval.permission import Permission
from site_agent.loading.progress import Loading
from site_agent.run.outbox import Outbox
from site_agent.run.rounds import Rounds
from site_agent.run.setup import LeftOut, Setup, Site
from site_agent.run.slot_clock import SlotClock

_ASIDE_EVERY = 0.2  # s
_ASIDE_PACES = 100  # the same, as a factor of the exchange's pace; the longer one counts


class Participation:
    """One site's part in one run.

    Raises StudyError if the study has another scheme than ``cape``.

    Parameters
    ----------
    context : RunContext
        Context of the run, from the site's approval.
    loading : Loading
        Loading of the study's data. The site reports its presence when they are loaded.
    permission : callable
        Returns the site's current permission for the study, or raises the reason for its absence.
    seen : float
        Time at which the site saw the announcement, in seconds on its monotonic clock.
    """

    def __init__(
        self,
        site: Site,
        context: RunContext,
        loading: Loading,
        permission: Callable[[], Permission],
        seen: float,
    ) -> None:
        context.study.check_scheme(f"'{context.study.study}'")
        self.ended: Ended | None = None
        self.rounds: Rounds | None = None
        self._site = site
        self._loading = loading
        self._permission = permission
        self._context = context
        self._outbox = Outbox(context, site.store, site.exchange)
        self._slots = SlotClock(site.passed)
        self._slots.begin(seen)
        self._setup = Setup(
            site=site,
            context=context,
            loading=loading,
            permission=permission,
            outbox=self._outbox,
            slots=self._slots,
        )
        self._logged = ""
        self._aside_every = max(_ASIDE_EVERY, _ASIDE_PACES * site.exchange.pace)
        self._looked_aside = -self._aside_every
        self._absent: list[str] = []
        """Sites without a notice that they are present, when this was last looked at."""

    def advance(self) -> bool:
        """Perform the steps that are possible now, and return whether there were any.

        Each look costs one request, for the message that the centre is to send next. Other
        messages, such as the run's end, are looked for now and then. Before the end of a time slot
        the site neither looks nor sends. Raises ConsortiumError if the site takes no further part
        in the run, or a message is malformed.
        """
        if self.ended is not None or self._slots.left:
            return False
        held = self._outbox.held
        if held:
            self._deliver()
        return self._step() or self._outbox.held < held

    def _step(self) -> bool:
        self._slots.begin()
        try:
            done = self._act()
            aside = self._is_time_to_look_aside()
            if aside and not done and self.rounds is not None:
                done = self.rounds.advance_aside()
                if self._outbox.held:
                    self._slots.hold(SHORTEST)
        except (ExchangeError, ProtocolError, EngineError):
            if self.read_end():  # whatever the error, the run's end is received
                return True
            raise
        except Exception:
            self._deliver()  # the site's last message in this run, which no data delayed
            raise
        if not self._slots.left:
            self._deliver()
        if done or not aside:
            return done
        self._looked_aside = self._site.passed()
        if self.starts:
            there = self._site.exchange.children(Names(self._context.run).present())
            self._absent = [site for site in self._context.study.sites if site not in there]
        return self.read_end()

    def _deliver(self) -> None:
        """Post the due messages; raises errors as `permission` before a message of set-up."""
        if self.rounds is None and self._outbox.held:
            self._permission()
        trouble = self._outbox.deliver()
        if trouble is not None:
            self._log_trouble(str(trouble))

    def _is_time_to_look_aside(self) -> bool:
        waits = self.rounds is None or self.rounds.asks_more
        return not waits or self._site.passed() - self._looked_aside >= self._aside_every

    def _act(self) -> bool:
        if self.rounds is not None:
            return self.rounds.advance()
        if not self._setup.advance():
            return False
        match self._setup.outcome:
            case LeftOut(reason):
                self.ended = Ended("left out", reason)
            case None:
                pass
            case joined:
                data = self._loading.data
                permission = self._permission
                outbox = self._outbox
                slots = self._slots
                self.rounds = Rounds(
                    site=self._site,
                    joined=joined,
                    data=data,
                    permission=permission,
                    outbox=outbox,
                    slots=slots,
                    log_trouble=self._log_trouble,
                )
        return True

    def _log_trouble(self, text: str) -> None:
        if text != self._logged:
            self._site.log.line(text)
            self._logged = text

    def read_end(self) -> bool:
        """Check whether the run has ended; raises ExchangeError if the exchange can't be used."""
        self.ended = read_end(self._site.exchange, self._context.run, self._context.keys)
        return self.ended is not None

    @property
    def awaits_sum(self) -> bool:
        """Whether the site waits for the sum of a round that it has contributed to."""
        return self.rounds is not None and self.rounds.awaits_sum

    @property
    def awaited(self) -> str:
        """Message or event that the site waits for, in words."""
        step = self._setup.awaited if self.rounds is None else self.rounds.awaited
        absent = ", ".join(self._absent) if self.starts else ""
        return f"the centre ({step}{f'; it waits for {absent}' if absent else ''})"

    @property
    def own_work(self) -> str:
        """The site's own activity, in words; empty if it waits for the centre."""
        if not self._loading.over:
            return self._loading.words
        return "waiting for the end of its time slot" if self._slots.left else ""

    @property
    def left(self) -> float:
        """Seconds until the end of the time slot before which the site does nothing, or 0."""
        return self._slots.left if self.ended is None else 0.0

    @property
    def starts(self) -> bool:
        """Whether the run has not started yet."""
        return self.rounds is None and self._setup.awaited == "start"

    @property
    def cost(self) -> str:
        """Sentence on this run's charges, as the ledger has them.

        An agent that was restarted at the end of a run has no rounds in memory, but its ledger and
        its message store have them. Raises LedgerError if either can't be read.
        """
        context = self._context
        site = self._site.identity.public.hex()
        centre = context.keys[CENTRE].hex()
        charged = self._site.ledger.charged_rounds(context.run, site, centre)
        sent = [n for n in charged if self._outbox.stored(f"{n}/contribution") is not None]
        unsent = [n for n in charged if n not in sent]
        sentences = []
        if sent:
            sentences.append(f"the answer to {_which(sent)} was sent and stays charged")
        if unsent:
            sentences.append(
                f"no answer to {_which(unsent)} was sent, which stays charged, since this site was "
                "stopped between charge and answer"
            )
        return "; ".join(sentences) or "no answer was sent, and nothing is charged"

    @property
    def timing(self) -> TimingSection:
        """The study's deadlines."""
        return self._context.study.timing


def _which(rounds: Sequence[int]) -> str:
    first = rounds[0]
    last = rounds[-1]
    return f"round {first}" if first == last else f"{len(rounds)} rounds, {first} to {last},"
