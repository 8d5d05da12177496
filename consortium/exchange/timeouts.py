"""How long a server may be silent before it counts as gone."""

import socket

_SLOWEST = 128 << 10  # bytes a second; a link slower than this counts as broken


def transfer_timeout(patience: float, size: int) -> float:
    """Seconds that moving so many bytes may take in all: patience, and what a slow link needs."""
    return patience + size / _SLOWEST


def drop_when_stuck(connection: socket.socket, patience: float) -> None:
    """Let the system end a connection whose bytes are not taken for so many seconds.

    Without it a server that stops in the middle of a large message is noticed only when the whole
    message is overdue. Only Linux can; elsewhere it stays so.
    """
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is not None:
        connection.setsockopt(socket.IPPROTO_TCP, option, int(patience * 1000))
