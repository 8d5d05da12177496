"""A connection to an SFTP server that is who it says, and that ends when it hangs."""

import errno
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import paramiko
from pydantic import SecretStr

from consortium.errors import ConfigurationError, ExchangeError
from consortium.exchange.credentials import SftpCredentials, check_private
from consortium.exchange.timeouts import drop_when_stuck, transfer_timeout

LOST = (paramiko.SSHException, paramiko.SFTPError, EOFError, OSError)
_Found = TypeVar("_Found")
_LOG = "consortium.exchange.sftp_connection"
# paramiko writes tracebacks of every lost connection; without a handler they go to the terminal.
logging.getLogger(_LOG).addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Address:
    """Where an SFTP server is and who logs in."""

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
        """Whether an error is the server's answer, and not the loss of the connection."""
        standing = self.client.get_transport().is_active() and not self.ftp.get_channel().closed
        passing = isinstance(error, TimeoutError | ConnectionError)
        return isinstance(error, OSError) and standing and not passing

    @contextmanager
    def deadline(self, size: int) -> Iterator[None]:
        """Cut the connection if it takes much longer than so many bytes need on a slow link.

        paramiko waits for ever when it can't send.
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
    """Log in.

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
    login |= {"allow_agent": False, "look_for_keys": False}  # only what the owner wrote down
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
            f"{path} can't be opened as a private key; check it and its passphrase."
        ) from None


def _trouble(address: Address, credentials: SftpCredentials, error: Exception) -> ExchangeError:
    """Make one sentence of what went wrong; nothing of a key or a password is in it."""
    if isinstance(error, paramiko.BadHostKeyException):
        return ExchangeError(
            f"{address} shows another host key than the one in {credentials.known_hosts}; "
            "ask the server's owner before anything else."
        )
    if "not found in known_hosts" in str(error):
        return ExchangeError(
            f"{address} has no host key in {credentials.known_hosts}; add it with ssh-keyscan and "
            "compare it with what the server's owner tells."
        )
    if isinstance(error, paramiko.AuthenticationException):
        return ExchangeError(f"{address} does not let this user in; check key, password and user.")
    return ExchangeError(
        f"{address} can't be reached ({type(error).__name__}); check the server and the way to it."
    )


class Reconnecting:
    """A connection that is made when it is needed, and made again when it was lost.

    Parameters
    ----------
    patience : float
        Seconds until a silent server counts as gone, beyond what the bytes take on a slow link.
    """

    def __init__(self, address: Address, credentials: SftpCredentials, patience: float) -> None:
        self.address = address
        self._credentials, self._patience = credentials, patience
        self._connection: Connection | None = None
        self._lock = threading.Lock()  # one connection answers one question at a time

    def ask(self, what: str, act: Callable[[Connection], _Found], size: int = 0) -> _Found:
        """Do something on the server, again if the connection was lost since the last time.

        Raises ConfigurationError, ExchangeError.

        Parameters
        ----------
        what : str
            Begins the error's sentence.
        act : callable
            May be called twice.
        size : int
            Bytes that it moves at most.
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
                f"{what} ({reason}); check the directory's disk and rights."
            ) from None

    def _gone(self, what: str, error: BaseException) -> ExchangeError:
        reason = "no answer in time" if isinstance(error, TimeoutError) else "connection lost"
        return ExchangeError(f"{what} ({reason}: {self.address}); check the server.")
