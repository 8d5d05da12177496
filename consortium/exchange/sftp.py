"""An exchange in a directory of an SFTP server.

A message is written as a hidden draft and put in place by SFTP's plain rename, which OpenSSH
carries out as a hard link: it is atomic, and it fails where a file is already.
"""

import io
import uuid
from contextlib import suppress
from typing import Any

from consortium.errors import ExchangeError
from consortium.exchange.base import check_name, name_taken, oversized_message
from consortium.exchange.credentials import SftpCredentials
from consortium.exchange.sftp_connection import Address, Connection, Reconnecting

PATIENCE = 8.0
_SHORT = 32 << 10  # bytes that come in one answer


class SftpExchange:
    """One file per message below a directory of the server.

    Raises ConfigurationError if the private key can't be used. Raises ExchangeError if the server
    is not the known one, can't be reached or refuses.

    Parameters
    ----------
    root : str
        Absolute path of the directory; it is made if its parent exists.
    patience : float
        Seconds until a silent server counts as gone, beyond what the bytes take on a slow link.
    """

    pace = 0.01

    def __init__(
        self, address: Address, root: str, credentials: SftpCredentials, patience: float = PATIENCE
    ) -> None:
        self._root = root.rstrip("/")
        self._server = Reconnecting(address, credentials, patience)
        self._server.ask(f"{root} can't be used as an exchange", self._enter)

    def __repr__(self) -> str:
        return f"SftpExchange('sftp://{self._server.address}{self._root}')"

    def put(self, name: str, data: bytes | memoryview) -> None:
        """See `Exchange.put`."""
        target = f"{self._root}/{check_name(name)}"
        what = f"{name} can't be written"
        if self._server.ask(
            what, lambda server: self._place(server, target, bytes(data)), len(data)
        ):
            return
        found = self.get(name, len(data))
        if found is None:
            raise ExchangeError(f"{what} (the server refuses); check the directory's rights.")
        if found != data:
            raise name_taken(name)

    def get(self, name: str, limit: int) -> bytes | None:
        """See `Exchange.get`."""
        path = f"{self._root}/{check_name(name)}"

        def read(server: Connection) -> bytes | None:
            try:
                file = server.ftp.open(path, "rb")
            except FileNotFoundError:
                return None
            with file:
                return _content(file, name, limit)

        return self._server.ask(f"{name} can't be read", read, limit)

    def children(self, prefix: str) -> list[str]:
        """See `Exchange.children`."""
        path = f"{self._root}/{check_name(prefix)}"

        def read(server: Connection) -> list[str]:
            try:
                return list(server.ftp.listdir(path))
            except FileNotFoundError:
                return []

        found = self._server.ask(f"{prefix} can't be listed", read)
        return sorted(name for name in found if not name.startswith("."))

    def remove(self, name: str) -> None:
        """See `Removes.remove`."""
        words = check_name(name).split("/")

        def take(server: Connection) -> None:
            server.ftp.remove(f"{self._root}/{name}")
            with suppress(OSError):  # the first that holds more, or is another's, stays
                for depth in range(len(words) - 1, 0, -1):
                    server.ftp.rmdir(f"{self._root}/{'/'.join(words[:depth])}")

        self._server.ask(f"{name} can't be removed", take)

    def _enter(self, server: Connection) -> None:
        root = self._root or "/"
        try:
            server.ftp.stat(root)
        except FileNotFoundError:
            with suppress(OSError):  # another party may have made it just now
                server.ftp.mkdir(root)
            server.ftp.stat(root)

    def _place(self, server: Connection, target: str, data: bytes) -> bool:
        """Write a draft and rename it; False if the server did not rename it."""
        draft = f"{target.rpartition('/')[0]}/.{uuid.uuid4().hex}"
        try:
            self._write(server, draft, data)
            server.ftp.rename(draft, target)
        except OSError as error:
            if not server.refused(error):
                raise
            with suppress(OSError):  # there may be no draft
                server.ftp.remove(draft)
            if error.errno is not None:
                raise
            return False
        return True

    def _write(self, server: Connection, draft: str, data: bytes) -> None:
        try:
            server.ftp.putfo(io.BytesIO(data), draft)
        except FileNotFoundError:
            words = draft[len(self._root) + 1 :].split("/")
            for depth in range(1, len(words)):
                with suppress(OSError):  # there already; if not, the next write says so
                    server.ftp.mkdir(f"{self._root}/{'/'.join(words[:depth])}")
            server.ftp.putfo(io.BytesIO(data), draft)


def _content(file: Any, name: str, limit: int) -> bytes:
    """Read an open file, whose size is looked at before a byte of it is fetched."""
    size = int(file.stat().st_size)
    if size > limit:
        raise oversized_message(name, limit)
    if size > _SHORT:
        file.prefetch(size)
    data = bytearray()  # in parts, because paramiko takes long to put a large answer together
    while len(data) < size and (part := file.read(min(_SHORT, size - len(data)))):
        data += part
    if len(data) != size:
        raise ExchangeError(
            f"{name} is {len(data)} bytes long and not {size}; wait and look again."
        )
    return bytes(data)
