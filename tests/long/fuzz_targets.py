"""What a fuzzed parser is, and what became of the inputs that it was given."""

from __future__ import annotations

import hashlib
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from consortium.errors import ConsortiumError
from tests.long.fuzz_mutations import Make

SECONDS = 1.0  # of a processor's time, for one input
_MOST_FINDINGS = 20  # a parser that fails always has said so


class OvertimeError(BaseException):
    """A parser took too long; no parser can swallow this."""


@dataclass(frozen=True)
class Target:
    """A parser.

    Parameters
    ----------
    name : str
    inputs : int
        Of ten million in all.
    make : callable
        Makes an input.
    parse : callable
        Reads one, which may end in a `ConsortiumError` or one of ``documented``.
    documented : tuple of exception classes
        What else the parser's own documentation allows.
    """

    name: str
    inputs: int
    make: Make
    parse: Callable[[bytes], object]
    documented: tuple[type[Exception], ...] = ()


@dataclass
class Outcome:
    """What became of a parser's inputs; ``findings`` are errors, each with one that led to it."""

    name: str
    inputs: int = 0
    refused: int = 0
    broken: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    findings: dict[str, bytes] = field(default_factory=dict)

    @property
    def accepted(self) -> int:
        """Inputs that were sound, or looked so."""
        return self.inputs - self.refused - self.broken

    def add(self, other: Outcome) -> None:
        """Count what another process did."""
        self.inputs += other.inputs
        self.refused += other.refused
        self.broken += other.broken
        self.seconds += other.seconds
        self.slowest = max(self.slowest, other.slowest)
        self.findings |= other.findings


def fuzz(target: Target, count: int, seed: int) -> Outcome:
    """Give a parser so many inputs; the same seed makes the same ones."""
    rng = random.Random(f"{target.name}|{seed}")
    outcome, expected = Outcome(target.name), (ConsortiumError, *target.documented)
    start = time.perf_counter()
    with _time_limit():
        for _ in range(count):
            data = target.make(rng)
            begin = time.thread_time()
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            try:
                target.parse(data)
            except expected:
                outcome.refused += 1
            except (Exception, OvertimeError) as error:
                outcome.findings[_described(error)] = data
                outcome.broken += 1
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            outcome.slowest = max(outcome.slowest, time.thread_time() - begin)
            outcome.inputs += 1
            if len(outcome.findings) == _MOST_FINDINGS:
                break
    outcome.seconds = time.perf_counter() - start
    return outcome


def _described(error: BaseException) -> str:
    """Name an error by its class and the place in our own code that let it through."""
    trace, where = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if "/site-packages/" not in code.co_filename:
            where = f"{Path(code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__} at {where}"


@contextmanager
def _time_limit() -> Iterator[None]:
    def ring(_number: int, _frame: FrameType | None) -> None:
        raise OvertimeError

    before = signal.signal(signal.SIGVTALRM, ring)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def keep(outcome: Outcome, folder: Path) -> None:
    """Save the inputs of all findings, each with its error."""
    for error, data in outcome.findings.items():
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{outcome.name.replace(' ', '-')}-{hashlib.sha256(data).hexdigest()[:12]}"
        (folder / f"{stem}.bin").write_bytes(data)
        (folder / f"{stem}.txt").write_text(f"{error}\n")
