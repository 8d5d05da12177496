"""The end of a program by Ctrl-C or SIGTERM: at once, in one line.

Every party may be killed at any moment and continues where it stopped. So nothing must be done at
the end. Libraries that turn a signal into an exception would print a traceback.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = "\x1b[?25h"
_ours: list[str] = []  # name of the program that ends so, while it runs


@contextmanager
def ended_by_signals(program: str) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the process while this lasts; call it in the main thread."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    _ours.append(program)
    take_signals()
    try:
        yield
    finally:
        _ours.pop()
        for number, handler in before.items():
            signal.signal(number, handler)


def take_signals() -> None:
    """Handle Ctrl-C and SIGTERM again after a library has set handlers of its own."""
    if _ours:
        for number in _SIGNALS:
            signal.signal(number, _end)


def _end(number: int, _: FrameType | None) -> None:
    if sys.stderr.isatty():
        os.write(2, _SHOW_CURSOR.encode() + b"\r\n")
    os.write(2, f"{_ours[-1]}: stopped; the same command continues.\n".encode())
    os._exit(128 + number)
