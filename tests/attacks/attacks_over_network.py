"""A server that is there and yet not there; needs paramiko."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from consortium.errors import ExchangeError
from consortium.exchange import sftp
from consortium.exchange.credentials import SftpCredentials
from tests.attacks.attack_kinds import Stage, attack

_SOON = 0.3  # s


def _unhurried(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda address, credentials, patience: real(address, credentials, 1000.0)


def _drip(server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection, _ = server.accept()
        with connection:
            while True:
                connection.sendall(b"S")
                time.sleep(_SOON / 10)


@attack(
    "exchange",
    guard="consortium.exchange.sftp:connect",
    without="the reader waits as long as the server likes",
    stops="can't be reached",
    instead=_unhurried,
)
def byte_now_and_then(stage: Stage) -> bool:
    """Answers with a byte now and then, which a timeout for the next byte never detects."""
    hosts = stage.root / "known_hosts"
    hosts.touch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_drip, args=(server,), daemon=True).start()
        address = sftp.Address("user", "127.0.0.1", server.getsockname()[1])
        entry = SftpCredentials(known_hosts=hosts, password="x")  # type: ignore[arg-type]

        def enter() -> None:
            try:
                sftp.connect(address, entry, _SOON)
            except ExchangeError as error:
                stage.said.append(str(error))

        reader = threading.Thread(target=enter, daemon=True)
        reader.start()
        reader.join(10 * _SOON)
        return reader.is_alive()
