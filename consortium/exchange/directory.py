"""An exchange in a directory that all parties can reach: a shared disk, a mounted share."""

from __future__ import annotations

import os
import stat
import uuid
from pathlib import Path

from consortium.errors import ExchangeError
from consortium.exchange.base import check_name, oversized, taken


class DirectoryExchange:
    """One file per message, put in place whole by an atomic link.

    Parameters
    ----------
    root : Path
        The directory; it is made if its parent exists.

    Raises
    ------
    ExchangeError
        If it can't be made.
    """

    pace = 0.002

    def __init__(self, root: Path) -> None:
        self._root = root
        try:
            root.mkdir(exist_ok=True)
        except OSError as error:
            raise ExchangeError(f"{root} can't be used as an exchange; check its path.") from error

    def put(self, name: str, data: bytes | memoryview) -> None:
        """See `Exchange.put`."""
        target = self._root / check_name(name)
        draft = target.with_name(f".{uuid.uuid4().hex}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                draft.write_bytes(data)
                os.link(draft, target)  # fails if the name is taken, unlike a rename
            finally:
                draft.unlink(missing_ok=True)
        except FileExistsError:
            if self.get(name, len(data)) != data:
                raise taken(name) from None
        except OSError as error:
            raise ExchangeError(
                f"{name} can't be written ({error.strerror}); check the exchange's disk and rights."
            ) from error

    def get(self, name: str, limit: int) -> bytes | None:
        """See `Exchange.get`."""
        try:
            with open(self._root / check_name(name), "rb", opener=_without_waiting) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise ExchangeError(
                        f"{name} is not a file; have the exchange's owner remove it."
                    )
                data = file.read(limit + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise ExchangeError(
                f"{name} can't be read ({error.strerror}); check the exchange's rights."
            ) from error
        if len(data) > limit:
            raise oversized(name, limit)
        return data

    def children(self, prefix: str) -> list[str]:
        """See `Exchange.children`."""
        try:
            found = os.listdir(self._root / check_name(prefix))  # noqa: PTH208 - names, not paths
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise ExchangeError(
                f"{prefix} can't be listed ({error.strerror}); check the exchange's rights."
            ) from error
        return sorted(name for name in found if not name.startswith("."))


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; one that is a pipe must not hold its reader up until somebody writes to it."""
    return os.open(path, flags | os.O_NONBLOCK)
