"""Connections to the inbox: how long one may take for a request, and how many there may be.

Any user of the machine can connect to its loopback address. Without limits their idle connections
use up the files that a program may open, and the staff's browser can't connect any more.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 200
"""Number of connections at which a new one replaces the one that has waited longest."""
PATIENCE = 10.0
"""Seconds in which a request must arrive completely; browsers need a fraction of one."""


class InboxConnection(H11Protocol):
    """One connection, which is closed if no complete request arrives in time."""

    _since = 0.0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request, and close a waiting connection if there are too many."""
        super().connection_made(transport)
        self._wait()
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request; bytes that arrive late don't extend the time."""
        self._wait()
        super().on_response_complete()

    @property
    def since(self) -> float:
        """Time at which it began to wait for a request."""
        return self._since

    @property
    def is_answering(self) -> bool:
        """Whether a complete request is being answered."""
        cycle = self.cycle
        return cycle is not None and not (cycle.more_body or cycle.response_complete)

    def _make_room(self) -> None:
        every: Iterable[Any] = self.connections
        still_open = [each for each in every if not each.transport.is_closing()]
        if len(still_open) > MOST_CONNECTIONS:
            waiting = (each for each in still_open if not each.is_answering)
            min(waiting, key=lambda each: each.since).transport.abort()

    def _wait(self) -> None:
        self._since = self.loop.time()
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(PATIENCE, self._expire)

    def _expire(self) -> None:
        if self.is_answering:
            self._wait()
        else:
            self.transport.abort()
