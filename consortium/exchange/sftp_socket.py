"""Questions to an SFTP server over one connection, which is made again when it was lost."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from typing import TypeVar

from consortium.errors import ExchangeError
from consortium.exchange.credentials import SftpCredentials
from consortium.exchange.sftp_connection import LOST, Address, CheckedFiles, connect

_Found = TypeVar("_Found")


class Line:
    """A connection that is made when it is needed, and made again when it was lost.

    Parameters
    ----------
    address : Address
    credentials : SftpCredentials
    patience : float
        Seconds until a silent server counts as gone, beyond what the bytes take on a slow link.
    """

    def __init__(self, address: Address, credentials: SftpCredentials, patience: float) -> None:
        self.address = address
        self._credentials, self._patience = credentials, patience
        self._files: CheckedFiles | None = None
        self._lock = threading.Lock()  # one connection answers one question at a time

    def ask(self, what: str, act: Callable[[CheckedFiles], _Found], size: int = 0) -> _Found:
        """Do something on the server, again if the connection was lost since the last time.

        Parameters
        ----------
        what : str
            Begins the error's sentence.
        act : callable
            May be called twice.
        size : int
            Bytes that it moves at most.

        Raises
        ------
        ConfigurationError, ExchangeError
        """
        with self._lock:
            if self._files is not None:
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
        if self._files is not None:
            self._files.client.close()
            self._files = None

    def _attempt(self, what: str, act: Callable[[CheckedFiles], _Found], size: int) -> _Found:
        if self._files is None:
            self._files = connect(self.address, self._credentials, self._patience)
        files = self._files
        try:
            with files.deadline(size):
                return act(files)
        except TimeoutError as error:
            self.drop()
            raise self._gone(what, error) from None
        except OSError as error:
            if not files.refused(error):
                raise ConnectionError from error
            reason = "permission denied" if error.errno == errno.EACCES else "the server refuses"
            raise ExchangeError(
                f"{what} ({reason}); check the directory's disk and rights."
            ) from None

    def _gone(self, what: str, error: BaseException) -> ExchangeError:
        reason = "no answer in time" if isinstance(error, TimeoutError) else "connection lost"
        return ExchangeError(f"{what} ({reason}: {self.address}); check the server.")
