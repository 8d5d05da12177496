"""An exchange within one process, for tests and simulations."""

from consortium.exchange.base import check_name, name_taken, oversized_message


class MemoryExchange:
    """An exchange in a dictionary, within one process."""

    pace = 0.0005

    def __init__(self) -> None:
        self._stored: dict[str, bytes] = {}

    def put(self, name: str, data: bytes | memoryview) -> None:
        """Follow `Exchange.put`."""
        if self._stored.setdefault(check_name(name), bytes(data)) != data:
            raise name_taken(name)

    def get(self, name: str, limit: int) -> bytes | None:
        """Follow `Exchange.get`."""
        data = self._stored.get(check_name(name))
        if data is not None and len(data) > limit:
            raise oversized_message(name, limit)
        return data

    def children(self, prefix: str) -> list[str]:
        """Follow `Exchange.children`."""
        start = f"{check_name(prefix)}/"
        rest = (name[len(start) :] for name in self._stored if name.startswith(start))
        return sorted({name.split("/")[0] for name in rest})
