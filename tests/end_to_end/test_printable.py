"""No command ends in a traceback because an encoding lacks a character."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from consortium.base.printable import make_printable
from consortium.coordinator.cli import app as consortium_app
from consortium.coordinator.demo.prepare import DemoFolders
from site_agent.cli import app as site_app
from tests.support.command_line import PROGRAMS, Said
from tests.support.membership_files import PLAIN, give_scans, papers

ENCODINGS = ["latin-1", "ascii", "cp1252", "cp437"]
COMMANDS = [
    (program, command.name or command.callback.__name__)
    for program, app in (("consortium", consortium_app), ("site-agent", site_app))
    for command in app.registered_commands
    if command.callback is not None
]


def narrow(encoding: str, program: str, *words: object) -> Said:
    """Type a command whose output goes to streams of an encoding that is strict."""
    code, streams = 0, [io.TextIOWrapper(io.BytesIO(), encoding, "strict") for _ in range(2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [program, *map(str, words)])
        patch.setattr(sys, "stdin", io.StringIO())
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        try:
            PROGRAMS[program]()
        except SystemExit as end:
            code = int(end.code or 0)
        for stream in streams:
            stream.flush()
    return Said(code, *(stream.buffer.getvalue().decode(encoding, "replace") for stream in streams))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(("program", "command"), COMMANDS)
def test_the_help_of_every_command(program: str, command: str, encoding: str) -> None:
    said = narrow(encoding, program, command, "--help")
    assert (said.code, said.err) == (0, "")
    assert command in said.out


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> DemoFolders:
    text = PLAIN.replace("study: small", "study: small\ntitle: Gräße ≥ 3 脳, ε")
    assert text != PLAIN
    found, _ = papers(tmp_path_factory.mktemp("ünï-脳"), text)
    give_scans(found)
    return found


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_prints_names_of_a_study_and_symbols(place: DemoFolders, encoding: str) -> None:
    here, files = ("-f", place.site("east")), place.files
    run = ("--exchange", files.exchange, "--out", files.exchange.parent / "out")
    study = (files.study, "--roster", files.roster)
    lines = {
        ("site-agent", "doctor", *here): "",
        ("site-agent", "ledger", *here): "",
        ("site-agent", "status", *here): "",
        ("site-agent", "check", *study, *here): "epsilon",
        ("site-agent", "approve", *study, "--yes", *here): "Approved",
        ("consortium", "plan", files.study, "--subjects", 3, "--volumes", 24, "--details"): "",
        ("consortium", "status", files.study, *run): "",
    }
    for words, wanted in lines.items():
        said = narrow(encoding, *words)
        assert "Traceback" not in said.err, words
        assert said.code in (0, 1), words
        assert wanted in said.out or encoding == "cp437", words


def test_an_error_that_quotes_what_cannot_be_written(tmp_path: Path) -> None:
    said = narrow("ascii", "consortium", "plan", tmp_path / "脳-größe.yaml", "--subjects", 3)
    assert said.code == 1
    assert said.err.startswith("consortium: ")
    assert "?-gro" in said.err


def test_a_character_that_an_encoding_has_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "latin-1", "strict"))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    make_printable()
    sys.stdout.write("ü ε ≤ 3 脳\n")
    sys.stdout.flush()
    assert raw.getvalue().decode("latin-1") == "ü epsilon <= 3 ?\n"


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "cp1252:strict"},
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii:strict"},
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii:surrogateescape"},
    ],
)
def test_a_process_of_its_own(place: DemoFolders, environment: dict[str, str]) -> None:
    files = place.files
    words = ("check", files.study, "--roster", files.roster, "-f", place.site("east"))
    done = subprocess.run(
        [sys.executable, "-m", "site_agent", *map(str, words)],
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    assert b"epsilon" in done.stdout
