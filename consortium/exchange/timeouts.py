"""How long a server may be silent before it counts as gone."""

import socket

_SLOWEST = 128 << 10  # bytes a second; a link slower than this counts as broken


def transfer_timeout(patience: float, size: int) -> float:
    """Return the seconds that a transfer may take: the patience plus the time on a slow link."""
    return patience + size / _SLOWEST


def drop_when_stuck(connection: socket.socket, patience: float) -> None:
    """Let the system close an exchange's connection on which no bytes are accepted.

    Without it, a server that stops within a large message is detected only when the whole message
    is overdue. Only Linux supports it.
    """
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is not None:
        connection.setsockopt(socket.IPPROTO_TCP, option, int(patience * 1000))
