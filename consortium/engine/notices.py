"""What sites say beside their answers: that they take no further part, or load their data."""

from collections.abc import Callable

from consortium.engine.names import LOADING, MOST_NOTICE, REFUSAL, Names
from consortium.engine.queries import read_announcement
from consortium.engine.run_context import RunContext
from consortium.errors import ExchangeError, ProtocolError, printable
from consortium.exchange.base import Exchange
from consortium.secagg import unseal

_EVERY, _PACES = 0.2, 25  # s between two looks, or as many times the exchange's pace
_MOST = 300  # characters of what a site says


class Notices:
    """The sites' notices in one run, as the centre has read them.

    Parameters
    ----------
    now : callable
        The time in seconds.
    log_once : callable
        Receives a line of progress now and then.
    """

    def __init__(
        self,
        context: RunContext,
        exchange: Exchange,
        now: Callable[[], float],
        log_once: Callable[[str], None],
    ) -> None:
        self.refused: dict[str, str] = {}
        """Sites that take no further part, with the reason they gave."""
        self.loading: set[str] = set()
        """Sites that have said that they are loading their data."""
        self._context, self._exchange, self._now, self._log = context, exchange, now, log_once
        self._names = Names(context.run)
        self._asked = 0.0

    def rest(self) -> None:
        """Ask nobody for a moment."""
        self._asked = self._now()

    def look(self, *, loading: bool) -> None:
        """Note which sites have said that they take no further part, or load their data."""
        now = self._now()
        if now - self._asked < max(_EVERY, _PACES * self._exchange.pace):
            return
        self._asked = now
        for site in self._said(self._names.refusals()):
            if site not in self.refused:
                self._hear_refusal(site)
        for site in self._said(self._names.loading()) if loading else ():
            if site not in self.loading:
                self._hear_loading(site)

    def _said(self, place: str) -> list[str]:
        """Sites of the study that have left something in a place."""
        try:
            there = self._exchange.children(place)
        except ExchangeError as error:
            self._log(str(error))
            return []
        return [site for site in self._context.study.sites if site in there]

    def _hear_loading(self, site: str) -> None:
        try:
            data = self._exchange.get(self._names.loading(site), MOST_NOTICE)
            self._unseal(data or b"", LOADING, site)
        except (ProtocolError, ExchangeError) as error:  # somebody else wrote that
            self._log(f"loading of {site}: {error}")
            return
        self.loading.add(site)
        self._log(f"{site} is loading its data")

    def _hear_refusal(self, site: str) -> None:
        try:
            data = self._exchange.get(self._names.refusal(site), MOST_NOTICE)
            body = self._unseal(data or b"", REFUSAL, site)
            notice = read_announcement(body)
        except (ProtocolError, ExchangeError) as error:  # somebody else wrote that
            self._log(f"refusal of {site}: {error}")
            return
        code, reason = (printable(notice.get(key), _MOST) for key in ("code", "reason"))
        self.refused[site] = f"{site} takes no further part ({code}): {reason}"
        self._log(self.refused[site])

    def _unseal(self, data: bytes, kind: str, site: str) -> bytes:
        context = self._context
        return unseal(
            data, context.keys, run=context.run, kind=kind, limit=MOST_NOTICE, sender=site, round=0
        ).body
