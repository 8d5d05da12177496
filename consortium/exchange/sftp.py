"""An exchange in a directory of an SFTP server.

A message is written as a hidden draft and renamed by SFTP's plain rename, which OpenSSH carries out
as a hard link: it is atomic, and it fails if the file exists. The server's identity is checked, and
a connection is closed when it hangs.
"""

import errno
import io
import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import paramiko
from pydantic import SecretStr

from consortium.errors import ConfigurationError, ExchangeError
from consortium.exchange.base import check_name, name_taken, oversized_message
from consortium.exchange.credentials import SftpCredentials, check_private
from consortium.exchange.timeouts import drop_when_stuck, transfer_timeout

LOST = (paramiko.SSHException, paramiko.SFTPError, EOFError, OSError)
_Found = TypeVar("_Found")
_LOG = "consortium.exchange.sftp"
PATIENCE = 8.0
_SHORT = 32 << 10  # bytes that come in one answer


# paramiko writes tracebacks of every lost connection; without a handler they go to the terminal.
logging.getLogger(_LOG).addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Address:
    """Address and user of an SFTP server."""

    user: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"


class Connection:
    """An open connection to a server whose key is in a file of known hosts."""

    def __init__(self, host: str, known_hosts: str, patience: float, **login: Any) -> None:
        self._patience = patience
        self.client = paramiko.SSHClient()
        self.client.set_log_channel(_LOG)
        try:
            self.client.load_system_host_keys(known_hosts)
            self.client.set_missing_host_key_policy(paramiko.RejectPolicy())
            self.client.connect(host, **login)
            self.ftp = self.client.open_sftp()
        except BaseException:
            self.client.close()
            raise
        self.ftp.get_channel().settimeout(self._patience)
        drop_when_stuck(self.client.get_transport().sock, self._patience)

    def refused(self, error: BaseException) -> bool:
        """Return whether an error is the server's answer, and not a lost connection."""
        standing = self.client.get_transport().is_active() and not self.ftp.get_channel().closed
        passing = isinstance(error, TimeoutError | ConnectionError)
        return isinstance(error, OSError) and standing and not passing

    @contextmanager
    def deadline(self, size: int) -> Iterator[None]:
        """Close the connection if it takes much longer than the bytes need on a slow link.

        Otherwise paramiko waits for ever when it can't send.
        """
        late = threading.Event()

        def cut() -> None:
            late.set()
            self.client.close()

        watch = threading.Timer(transfer_timeout(self._patience, size), cut)
        watch.daemon = True
        watch.start()
        try:
            yield
        except LOST:
            if late.is_set():
                raise TimeoutError from None
            raise
        finally:
            watch.cancel()


def connect(address: Address, credentials: SftpCredentials, patience: float) -> Connection:
    """Log in to an SFTP server.

    Raises ConfigurationError if the private key can't be used. Raises ExchangeError if the server
    can't be reached, is another than the known one, or does not let the user in.
    """
    login: dict[str, Any] = {"port": address.port, "username": address.user}
    if credentials.key_file is not None:
        login["pkey"] = _private_key(credentials.key_file, credentials.passphrase)
    if credentials.password is not None:
        login["password"] = credentials.password.get_secret_value()
    waits = ("timeout", "banner_timeout", "auth_timeout", "channel_timeout")
    login |= dict.fromkeys(waits, patience)
    login |= {"allow_agent": False, "look_for_keys": False}  # only keys that the owner stored
    try:
        return Connection(address.host, str(credentials.known_hosts), patience, **login)
    except (paramiko.SSHException, OSError, EOFError) as error:
        raise _trouble(address, credentials, error) from None


def _private_key(path: Path, passphrase: SecretStr | None) -> paramiko.PKey:
    """Read a private key; its passphrase is used here and nowhere else."""
    check_private(path, path.stat())
    opener = None if passphrase is None else passphrase.get_secret_value().encode()
    try:
        return paramiko.PKey.from_path(path, opener)
    except (OSError, ValueError, TypeError, paramiko.SSHException, paramiko.UnknownKeyType):
        raise ConfigurationError(
            f"{path} can't be opened as a private key. Check it and its passphrase."
        ) from None


def _trouble(address: Address, credentials: SftpCredentials, error: Exception) -> ExchangeError:
    """Make one sentence of what went wrong; nothing of a key or a password is in it."""
    if isinstance(error, paramiko.BadHostKeyException):
        return ExchangeError(
            f"{address} shows another host key than the one in {credentials.known_hosts}. "
            "Ask the server's owner why, before you continue."
        )
    if "not found in known_hosts" in str(error):
        return ExchangeError(
            f"{address} has no host key in {credentials.known_hosts}. Add it with ssh-keyscan and "
            "compare it with the key that the server's owner states."
        )
    if isinstance(error, paramiko.AuthenticationException):
        return ExchangeError(
            f"{address} refuses this user. Check the key, the password and the user."
        )
    return ExchangeError(
        f"{address} can't be reached ({type(error).__name__}). Check the server and the network."
    )


class Reconnecting:
    """A connection that is opened when it is needed, and opened again when it was lost.

    Parameters
    ----------
    patience : float
        Seconds until a silent server counts as gone, plus the bytes' time on a slow link.
    """

    def __init__(self, address: Address, credentials: SftpCredentials, patience: float) -> None:
        self.address = address
        self._credentials = credentials
        self._patience = patience
        self._connection: Connection | None = None
        self._lock = threading.Lock()  # one connection answers one question at a time

    def ask(self, what: str, act: Callable[[Connection], _Found], size: int = 0) -> _Found:
        """Run an action on the server, again if the connection was lost since the last one.

        Raises ConfigurationError, ExchangeError.

        Parameters
        ----------
        what : str
            First words of the error.
        act : callable
            May be called twice.
        size : int
            Maximum number of bytes that it transfers.
        """
        with self._lock:
            if self._connection is not None:
                try:
                    return self._attempt(what, act, size)
                except LOST:
                    self.drop()
            try:
                return self._attempt(what, act, size)
            except LOST as error:
                self.drop()
                raise self._gone(what, error) from None

    def drop(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.client.close()
            self._connection = None

    def _attempt(self, what: str, act: Callable[[Connection], _Found], size: int) -> _Found:
        if self._connection is None:
            self._connection = connect(self.address, self._credentials, self._patience)
        connection = self._connection
        try:
            with connection.deadline(size):
                return act(connection)
        except TimeoutError as error:
            self.drop()
            raise self._gone(what, error) from None
        except OSError as error:
            if not connection.refused(error):
                raise ConnectionError from error
            reason = "permission denied" if error.errno == errno.EACCES else "the server refuses"
            raise ExchangeError(
                f"{what} ({reason}). Check the directory's disk and rights."
            ) from None

    def _gone(self, what: str, error: BaseException) -> ExchangeError:
        reason = "no answer in time" if isinstance(error, TimeoutError) else "connection lost"
        return ExchangeError(f"{what} ({reason}: {self.address}). Check the server.")


class SftpExchange:
    """One file per message below a directory of the server.

    Raises ConfigurationError if the private key can't be used. Raises ExchangeError if the server
    is not the known one, can't be reached or refuses.

    Parameters
    ----------
    root : str
        Absolute path of the directory. It is made if its parent exists.
    patience : float
        Seconds until a silent server counts as gone, plus the bytes' time on a slow link.
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
        """Follow `Exchange.put`."""
        target = f"{self._root}/{check_name(name)}"
        what = f"{name} can't be written"
        if self._server.ask(
            what, lambda server: self._place(server, target, bytes(data)), len(data)
        ):
            return
        found = self.get(name, len(data))
        if found is None:
            raise ExchangeError(f"{what} (the server refuses). Check the directory's rights.")
        if found != data:
            raise name_taken(name)

    def get(self, name: str, limit: int) -> bytes | None:
        """Follow `Exchange.get`."""
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
        """Follow `Exchange.children`."""
        path = f"{self._root}/{check_name(prefix)}"

        def read(server: Connection) -> list[str]:
            try:
                return list(server.ftp.listdir(path))
            except FileNotFoundError:
                return []

        found = self._server.ask(f"{prefix} can't be listed", read)
        return sorted(name for name in found if not name.startswith("."))

    def stored_at(self, name: str) -> float | None:
        """Follow `DatedExchange.stored_at`; the server gives whole seconds."""
        path = f"{self._root}/{check_name(name)}"

        def read(server: Connection) -> float | None:
            try:
                stored = server.ftp.stat(path).st_mtime
            except FileNotFoundError:
                return None
            return None if stored is None else float(stored)

        return self._server.ask(f"{name} can't be read", read)

    def remove(self, name: str) -> None:
        """Follow `Removes.remove`."""
        words = check_name(name).split("/")

        def take(server: Connection) -> None:
            server.ftp.remove(f"{self._root}/{name}")
            with suppress(OSError):  # a folder that is not empty, or another party's, stays
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
            f"{name} is {len(data)} bytes long and not {size}. Wait and look again."
        )
    return bytes(data)
