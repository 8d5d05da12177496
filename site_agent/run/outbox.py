"""A run's messages at a site: stored before they are sent, and read once."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from consortium.engine.names import MOST_NOTICE, Names
from consortium.engine.run_context import RunContext
from consortium.errors import CopyError, ExchangeError, OversizedError, TakenError
from consortium.exchange.base import Exchange
from consortium.secagg import CENTRE, OVERHEAD, contribution_contradicts, unseal
from site_agent.run.message_store import MessageStore


@dataclass(frozen=True)
class Outgoing:
    """A message of this site: its place on the exchange, its name in the store, and its bytes."""

    place: str
    name: str
    message: bytes | memoryview


class Outbox:
    """A site's received and outgoing messages in one run."""

    def __init__(self, context: RunContext, store: MessageStore, exchange: Exchange) -> None:
        self.names = Names(context.run)
        self._run = context.run
        self._keys = context.keys
        self._store = store
        self._exchange = exchange
        self._due: list[tuple[str, bytes | memoryview]] = []
        self._arrays: dict[str, bytes] = {}

    def stored(self, name: str) -> bytes | None:
        """Return a message that was received or made before, or None."""
        return self._store.load(self._run, name)

    def keep(self, name: str, message: bytes) -> None:
        """Store a received message; from now on it is the only one of its name."""
        self._store.save(self._run, name, message)

    def receive(self, place: str, name: str, limit: int) -> bytes | None:
        """Fetch a message as it was first stored; later changes on the exchange are ignored."""
        stored = self.stored(name)
        return stored if stored is not None else self._exchange.get(place, limit + OVERHEAD)

    def peek(self, place: str, limit: int) -> bytes | None:
        """Fetch a message that is on the exchange now."""
        return self._exchange.get(place, limit)

    def send(
        self, place: str, name: str, message: bytes, received: Mapping[str, bytes] | None = None
    ) -> None:
        """Store a message of this site, to be put on the exchange by `deliver`.

        The ``received`` message that it answers is stored with it, both or neither.
        """
        self.send_all([Outgoing(place, name, message)], received)

    def send_all(
        self, outgoing: Sequence[Outgoing], received: Mapping[str, bytes] | None = None
    ) -> None:
        """Store several messages together, to be put on the exchange in this order."""
        messages = {each.name: each.message for each in outgoing}
        self._store.save_all(self._run, {**(received or {}), **messages})
        self._due += [(each.place, each.message) for each in outgoing]

    @property
    def held(self) -> int:
        """Number of messages that are not on the exchange yet."""
        return len(self._due)

    def deliver(self) -> ExchangeError | None:
        """Put all due messages on the exchange, and return the last failure, if any.

        A message that fails stays due and does not delay any other. Raises CopyError if another
        message, signed with this site's own key, is stored under the name of a due one. Then the
        rest is not put on the exchange.
        """
        due = self._due
        self._due = []
        trouble = None
        for place, message in due:
            try:
                self._exchange.put(place, message)
            except ExchangeError as error:
                if isinstance(error, TakenError | OversizedError):
                    self._check_copy(place, message)
                self._due.append((place, message))
                trouble = error
        return trouble

    def _check_copy(self, place: str, message: bytes | memoryview) -> None:
        """Stop if the exchange has another message with this site's signature.

        Any party can put a file there, but only this site, or a copy of it, can sign it.
        """
        try:
            found = self._exchange.get(place, 2 * len(message) + MOST_NOTICE)
        except ExchangeError:  # too large, or not reachable: read again the next time
            return
        if found is not None and contribution_contradicts(found, message, self._keys):
            raise CopyError(
                f"{place} contains another answer signed with this site's key. Either a copy of "
                "its folder is at work, or this folder was restored from an older backup, so the "
                "site stops all participation. Continue with only the newest copy. If there is "
                "none, have the site admitted again with a new key."
            )

    def signed(
        self, message: bytes, kind: str, number: int, limit: int, sender: str = CENTRE
    ) -> bytes:
        """Check that a message is its sender's for this run and round, and return its body.

        ``limit`` is that of the body. Raises ProtocolError if it is not.
        """
        return unseal(
            message,
            self._keys,
            run=self._run,
            kind=kind,
            limit=limit + OVERHEAD,
            sender=sender,
            round=number,
        ).body

    def arrays(self) -> Callable[[str, int], bytes]:
        """Return the function that fetches a query's public arrays, with the last ones kept."""
        before = self._arrays
        self._arrays = {}

        def fetch(digest: str, size: int) -> bytes:
            known = before.get(digest)
            data = self._arrays[digest] = self._array(digest, size) if known is None else known
            return data

        return fetch

    def _array(self, digest: str, size: int) -> bytes:
        """Fetch a public array by its SHA-256.

        Raises ExchangeError if it is not there yet, or differs.
        """
        data = self._exchange.get(self.names.array(digest), size)
        if data is None or hashlib.sha256(data).hexdigest() != digest:
            raise ExchangeError(
                f"The array {digest[:12]} of a query is missing or altered on the exchange. The "
                "site waits for it; if this lasts, repair the exchange."
            )
        return data
