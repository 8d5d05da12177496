"""Run by Python when a process of a profiled demo starts; samples where its processor time goes."""

import atexit
import os
import signal
import sys
import threading
import time
from collections import Counter
from itertools import count
from pathlib import Path
from types import FrameType

FOLDER = "CAPE_SAMPLES"
KINDS = {
    "imports": ("<frozen importlib",),
    "pictures": ("matplotlib", "/plotting/", "/report/pictures", "_figures.py", "/report/viewer"),
    "report": ("consortium/report", "jinja2"),
    "arithmetic": ("consortium/kernels", "consortium/algorithms", "consortium/privacy"),
    "Prefect": ("prefect", "uvicorn", "starlette", "sqlalchemy", "httpx", "asyncio"),
    "simulated hospitals": ("consortium/simulation",),
    "loading": ("site_agent/images", "site_agent/loading", "site_agent/data"),
    "messages and secure sum": ("consortium/exchange", "consortium/secagg", "site_agent/run"),
}
"""Of parts of files' names; the first that any caller's file has."""
_EVERY = 0.01  # s of the processor
_KEPT_EVERY = 25  # samples; who is ended by a signal says nothing at its end


def kind_of(frame: FrameType | None) -> str:
    """Return the kind of work that a stack of calls does."""
    names = []
    while frame is not None:
        names.append(frame.f_code.co_filename)
        frame = frame.f_back
    text = "\n".join(names)
    return next((kind for kind, parts in KINDS.items() if any(p in text for p in parts)), "other")


def start(folder: Path) -> None:
    """Sample all threads of this process until it ends; a long call in C counts at its end."""
    found: Counter[str] = Counter()
    before: dict[int, float] = {}
    samples = count()

    def keep() -> None:
        lines = "".join(f"{seconds:.3f} {kind}\n" for kind, seconds in found.items())
        (folder / str(os.getpid())).write_text(lines)

    def sample(_: int, frame: FrameType | None) -> None:
        main, frames = threading.get_ident(), sys._current_frames()
        for thread in frames:
            try:
                now = time.clock_gettime(time.pthread_getcpuclockid(thread))
            except OSError:  # it ended since
                continue
            kind = kind_of(frame if thread == main else frames[thread])
            found[kind] += now - before.get(thread, 0.0)  # type: ignore[assignment]
            before[thread] = now
        if next(samples) % _KEPT_EVERY == 0:
            keep()

    def end() -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        keep()

    signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, _EVERY, _EVERY)
    atexit.register(end)


if os.environ.get(FOLDER) and "pip" not in sys.argv[:1]:
    start(Path(os.environ[FOLDER]))
