"""Whether an answer is still waited for, in the centre's own signed words."""

from contextlib import suppress

from consortium.engine.ending import read_end
from consortium.engine.names import QUERY
from consortium.engine.queries import MOST_QUERY
from consortium.errors import ExchangeError, OversizedError, ProtocolError
from consortium.secagg import OVERHEAD, messages
from site_agent.run.charges import AskedRound
from site_agent.run.outbox import Outbox
from site_agent.run.setup import JoinedRun
from site_agent.run.site import Site


class RoundStatus:
    """The ends of one run's rounds, as one site hears of them."""

    def __init__(self, site: Site, joined: JoinedRun, outbox: Outbox) -> None:
        self._exchange, self._outbox = site.exchange, outbox
        self._context, self._sizes = joined.context, joined.sizes

    def is_over(self, asked: AskedRound) -> bool:
        """Whether an answer would come too late: the round is closed, or the run has ended.

        Asked before a round is charged and before its answer is sent, since computing may have
        taken long. Trouble with the exchange is none of an ended run's.
        """
        with suppress(ProtocolError, ExchangeError):
            ended = read_end(self._exchange, self._context.run, self._context.keys)
            if ended is not None:
                return True
        with suppress(ExchangeError):
            return self.is_closed(asked)
        return False

    def is_closed(self, asked: AskedRound) -> bool:
        """Whether the centre has gone on without this site, in its own signed words.

        What somebody else leaves in that place keeps nobody from answering.
        """
        number, kind = asked.number, messages.UNMASK
        if asked.stage.mechanism.masked_entries:
            limit = self._sizes.request(asked.stage.message_bytes, asked.stage.heard)
        else:
            number, kind, limit = number + 1, QUERY, MOST_QUERY
        with suppress(ProtocolError, OversizedError):
            message = self._outbox.peek(self._outbox.names.round(number, kind), limit + OVERHEAD)
            return message is not None and bool(self._outbox.signed(message, kind, number, limit))
        return False
