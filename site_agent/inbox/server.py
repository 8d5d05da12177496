"""The inbox's server: a socket on the loopback address, and the line that opens it."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path

import uvicorn

from consortium.base.lock import only_one
from consortium.errors import ConfigurationError
from site_agent.config import SiteConfig
from site_agent.inbox.application import Inbox
from site_agent.inbox.connections import InboxConnection
from site_agent.inbox.guard import HOST, Door, Guard

_BACKLOG = 100
"""Connections that are accepted at once: few enough that a program may open so many files."""


class _Server(uvicorn.Server):
    """A server that leaves signals to the program, which ends at once."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Set no handler."""
        yield


def serve(
    folder: Path,
    now: Callable[[], datetime],
    announce: Callable[[str], None],
    *,
    port: int,
    read_only: bool,
) -> None:
    """Serve a site's inbox until the program is stopped.

    Raises ConfigurationError if the site's folder can't be read, or the port is not free. Raises
    OutputError if another inbox that can change the folder is open.

    Parameters
    ----------
    folder : Path
        The site's.
    now : callable
        The time, with its time zone.
    announce : callable
        Receives each address that opens the inbox once.
    port : int
        Port on the loopback address; 0 for any that is free.
    read_only : bool
        Whether nothing can be changed, and nothing in the folder is written.
    """
    SiteConfig.load(folder)
    alone = nullcontext() if read_only else only_one(folder, "inbox", "inbox")
    with alone, _socket(port) as listening:
        door = Door(listening.getsockname()[1], announce, read_only)
        app = Guard(Inbox(folder, now, door).application(), door)
        server = _Server(server_settings(app))
        door.renew()
        server.run(sockets=[listening])


def server_settings(app: Guard) -> uvicorn.Config:
    """Return the inbox server's settings: no log of addresses, which have tokens, and no proxy.

    Requests that are not HTTP are not logged either, since any user of the machine can send many.
    """
    return uvicorn.Config(
        app,
        access_log=False,
        log_config=None,  # the program's own; uvicorn's would close the handlers of others
        log_level="error",
        lifespan="off",
        ws="none",
        http=InboxConnection,
        backlog=_BACKLOG,
        proxy_headers=False,
        server_header=False,
    )


def _socket(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen()  # so the address works as soon as it is printed
    except (OSError, OverflowError) as error:
        listening.close()
        raise ConfigurationError(
            f"--port: the port must be free on {HOST}, and {port} can't be used ({error}). "
            "Choose another, or 0 for any."
        ) from error
    return listening
