"""Typing the two programs' commands in the test's own process."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import pytest

from consortium.coordinator.cli import main as consortium_main
from site_agent.cli import main as site_main

PROGRAMS = {"consortium": consortium_main, "site-agent": site_main}


@dataclass(frozen=True)
class Said:
    """Result of a command."""

    code: int
    out: str
    err: str


class _Person(io.StringIO):
    """Somebody at a terminal, with all that they will type."""

    def isatty(self) -> bool:
        return True


def enter(program: str, *words: object, answer: str = "", terminal: bool = False) -> Said:
    """Run a command; anything except an exit fails the test."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", [program, *map(str, words)])
        patch.setattr(sys, "stdin", _Person(answer) if terminal else io.StringIO(answer))
        try:
            PROGRAMS[program]()
        except SystemExit as end:
            code = int(end.code or 0)
    return Said(code, out.getvalue(), err.getvalue())


def refused(program: str, *words: object, answer: str = "") -> str:
    """Run a command that must fail with one sentence, and return the sentence."""
    said = enter(program, *words, answer=answer)
    assert said.code == 1, said
    assert said.err.startswith(f"{program}: "), said
    assert said.err.endswith(".\n"), said
    assert said.err.count("\n") == 1, said
    return said.err
