"""Counts calls of functions by the test file that they are made for; a plugin of pytest.

Only calls are traced, no lines, which takes a suite about half as long again. A child process is
traced through `tests/tracing/children/sitecustomize.py` and counts for the test that started it.
"""

import atexit
import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Generator
from inspect import CO_NEWLOCALS
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = "TRACED_CALLS"
"""Environment variable with the folder that counts are written to."""
_PRODUCT = tuple(f"{ROOT / place}{os.sep}" for place in ("consortium", "site_agent", "flows"))

_SECONDS = 20.0  # from one writing to the next

Counts = dict[str, dict[str, dict[str, int]]]
"""By test file, module and qualified name."""


class Tracer:
    """Counts calls, and writes them now and then and when its process ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._counted: dict[str, dict[CodeType, int]] = defaultdict(lambda: defaultdict(int))
        self._now = self._counted[""]
        self._written = time.monotonic()

    def start(self) -> None:
        """Trace this thread and all later ones."""
        threading.settrace(self._call)
        sys.settrace(self._call)
        atexit.register(self._write)

    def turn_to(self, test: str) -> None:
        """Count for a test file from now on."""
        self._now = self._counted[test]
        if time.monotonic() > self._written + _SECONDS:
            self._write()

    def _call(self, frame: FrameType, event: str, argument: Any) -> None:
        self._now[frame.f_code] += 1

    def _write(self) -> None:
        self._written = time.monotonic()
        told: Counts = {}
        for test, counts in self._counted.copy().items():
            modules: dict[str, dict[str, int]] = defaultdict(dict)
            for code, many in counts.copy().items():  # other threads go on counting
                # The body of a module or class, which has no locals of its own, is no function.
                if code.co_flags & CO_NEWLOCALS and code.co_filename.startswith(_PRODUCT):
                    module = Path(code.co_filename).relative_to(ROOT).as_posix()
                    modules[module][code.co_qualname] = many
            if test:
                told[test] = modules
        path = self._folder / f"calls-{os.getpid()}.json"
        aside = path.with_suffix(".part")
        aside.write_text(json.dumps(told), encoding="utf-8")
        aside.replace(path)


def start_tracing() -> Tracer | None:
    """Trace this process if the environment asks for it, for the test that it names."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return None
    tracer = Tracer(Path(folder))
    tracer.turn_to(os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0])
    tracer.start()
    return tracer


_TRACER: Tracer | None = None


def pytest_configure() -> None:
    """Begin, in the controller and in every worker."""
    global _TRACER
    _TRACER = _TRACER or start_tracing()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Count for the item's file while it runs."""
    if _TRACER is not None:
        _TRACER.turn_to(item.nodeid.partition("::")[0])
    try:
        return (yield)
    finally:
        if _TRACER is not None:
            _TRACER.turn_to("")
