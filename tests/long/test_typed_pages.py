"""Pages that are typed: every command of them, in its order, in an empty folder.

Each command is given to its program in this process, which has imported all common
modules. Programs that a page starts in the background, and the run itself, are processes of their
own.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from consortium.simulation.__main__ import main as make_up
from tests.support.command_line import PROGRAMS, enter

DOCS = Path(__file__).parents[2] / "docs"
TUTORIAL = DOCS / "tutorial.md"
FIRST_PAPER = DOCS / "guides" / "first-paper.md"
MODULES = {"consortium": "consortium", "site-agent": "site_agent"}
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(
    r"save (?:this|them|it) as `(\S+?)`[^`]*?^```\w+\n(.*?)^```$", re.M | re.S | re.I
)
_LOOP = re.compile(r"for (\w+) in ([\w ]+); do (.*?)(;| &) done")
_LAST_LINE = re.compile(r"(\w+)=\$\((.*) \| tail -n 1\)")
MOST_COMMANDS = 12
"""Of all parties of a consortium of four, from nothing to a first result."""


def typed(page: Path) -> Iterator[str]:
    """Yield the lines after a prompt, with loops written out."""
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            if line.startswith("$ "):
                loop = _LOOP.fullmatch(line[2:])
                yield from _written_out(loop) if loop else [line[2:]]


def _written_out(loop: re.Match[str]) -> Iterator[str]:
    variable, values, command, end = loop.groups()
    for value in values.split():
        yield command.replace(f"${variable}", value) + end.rstrip(";")


def save_files(page: Path) -> None:
    """Save the files that a page asks its reader to save."""
    for name, text in _FILE.findall(page.read_text(encoding="utf-8")):
        Path(name).write_text(text, encoding="utf-8")


@dataclass
class Shell:
    """As much of a shell as the pages use, in the current folder."""

    values: dict[str, str] = field(default_factory=dict)
    beside: list[subprocess.Popen[str]] = field(default_factory=list)
    said: str = ""

    def type(self, line: str) -> None:
        """Carry a line out; anything that fails is a failure of the test."""
        if assignment := _LAST_LINE.fullmatch(line):
            name, command = assignment.groups()
            said = self._carry_out(shlex.split(command), None, beside=False)
            self.values[f"${name}"] = said.splitlines()[-1]
            return
        for name, value in self.values.items():
            line = line.replace(name, value)
        words, log = shlex.split(line.removesuffix(" &")), None
        if words[-2:-1] in (["2>"], [">"]):
            *words, _, log = words
        out = self._carry_out(words, log, beside=line.endswith(" &"))
        if log and not line.endswith(" &"):
            Path(log).write_text(out, encoding="utf-8")
        else:
            self.said += out

    def _carry_out(self, words: list[str], log: str | None, *, beside: bool) -> str:
        match words:
            case ["cat", file]:
                return Path(file).read_text(encoding="utf-8")
            case ["python", "-m", "consortium.simulation", *rest]:
                make_up(rest)
            case ["python", script]:
                subprocess.run([sys.executable, script], check=True)
            case ["site-agent", *_] if beside and log:
                with Path(log).open("w") as file:
                    self.beside.append(_start(words, stdout=subprocess.PIPE, stderr=file))
            case ["consortium", "run", *_]:
                return _finish(_start(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            case [program, *rest] if program in PROGRAMS:
                done = enter(program, *rest)
                assert (done.code, done.err) == (0, ""), (words, done)
                return done.out
            case _:
                raise AssertionError(f"the page types what this test does not know: {words}")
        return ""

    def type_page(self, page: Path) -> None:
        """Save the files of a page and type its commands, and wait for the agents that it starts.

        The agents of one study end before the next command, since a run ends with them.
        """
        save_files(page)
        try:
            for line in typed(page):
                if not line.endswith(" &") and not line.startswith("consortium run "):
                    self._wait()
                self.type(line)
            self._wait()
        finally:
            for agent in self.beside:
                agent.kill()

    def _wait(self) -> None:
        for agent in self.beside:
            self.said += agent.communicate(timeout=60)[0]
            assert agent.returncode == 0
        self.beside.clear()


def _start(words: list[str], **streams: object) -> subprocess.Popen[str]:
    program, *rest = words
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "SITE_"))}
    command = [sys.executable, "-m", MODULES[program], *rest]
    return subprocess.Popen(command, env=kept, text=True, **streams)  # type: ignore[call-overload]


def _finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return out


def test_a_consortium_of_four_comes_to_its_first_result_in_a_dozen_commands() -> None:
    programs = [
        line for line in typed(TUTORIAL) if re.search(r"(^|\()(consortium|site-agent) ", line)
    ]
    until = next(k for k, line in enumerate(programs) if line.startswith("consortium run "))
    assert sum("site-agent init" in line for line in programs) == 4
    assert until + 1 <= MOST_COMMANDS


@pytest.mark.slow
def test_every_command_of_the_tutorial_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shell = Shell()
    shell.type_page(TUTORIAL)
    assert "The promise was kept." in shell.said
    assert shell.said.count("Approved: first: group_ica") == 4
    assert len(re.findall(r"^\d\t.*\tfound$", shell.said, re.MULTILINE)) == 4
    assert Path("output/report.html").is_file()
    for site in ("north", "east", "south", "west"):
        assert "first-0001 has ended: complete" in Path(site, "agent.log").read_text("utf-8")


@pytest.mark.slow
def test_every_command_of_a_first_paper_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shell = Shell()
    shell.type_page(FIRST_PAPER)
    for study in ("table1: describe", "regions: glm"):
        assert shell.said.count(f"Approved: {study}") == 5
    assert "Refit 1:" in shell.said
    assert "Refit 2:" in shell.said
    assert "At most ε = 8.12 of 20 is spent" in shell.said
    (agreement,) = Path("regions", "tables").glob("*agreement_results.tsv")
    assert agreement.is_file()
    for site in ("aachen", "bergen", "cork", "delft", "espoo"):
        assert Path(site, "scores", "zscores.tsv").is_file()
