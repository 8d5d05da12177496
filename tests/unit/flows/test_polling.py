"""The files in configs/ name what is there: paths, commands and their options."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import typer.main

from consortium.coordinator.cli import app as consortium
from site_agent.cli import app as site_agent

ROOT = Path(__file__).parents[3]
CONFIGS = ROOT / "configs"
CONTAINERS = sorted(CONFIGS.glob("Containerfile.*"))
UNITS = sorted(CONFIGS.glob("*.service"))
COMMANDS = {"consortium": consortium, "site-agent": site_agent}


def test_the_files_are_there() -> None:
    assert [path.name for path in CONTAINERS] == ["Containerfile.centre", "Containerfile.site"]
    assert [path.name for path in UNITS] == ["consortium-deploy.service", "site-agent.service"]


@pytest.mark.parametrize("path", CONTAINERS, ids=lambda path: path.name)
def test_what_a_container_copies_exists_and_it_does_not_run_as_root(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    copied = [
        source for line in re.findall(r"^COPY (.*)$", text, re.M) for source in line.split()[:-1]
    ]
    assert {"requirements.lock", "consortium", "flows", "site_agent"} <= set(copied)
    assert all((ROOT / source).exists() for source in copied), copied
    assert "--require-hashes" in text
    assert re.search(r"^USER (?!root)\w+$", text, re.M)
    (module,) = re.findall(r'^ENTRYPOINT \["python", "-m", "(\w+)"\]$', text, re.M)
    assert (ROOT / module / "__main__.py").exists()


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_calls_a_command_with_options_that_it_has(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    (line,) = re.findall(r"^ExecStart=/opt/cape-consortium/bin/(.*)$", text, re.M)
    program, command, *words = line.split()
    known = typer.main.get_command(COMMANDS[program]).commands[command]  # type: ignore[attr-defined]
    options = {option for each in known.params for option in each.opts}
    assert {word for word in words if word.startswith("--")} <= options
    required = {each.opts[0] for each in known.params if each.required}
    assert {option for option in required if option.startswith("--")} <= set(words)
    for setting in ("NoNewPrivileges=yes", "ProtectSystem=strict", "Restart=on-failure"):
        assert f"\n{setting}\n" in text
    for name in re.findall(r"\$\{(\w+)\}", line):
        example = (CONFIGS / "centre.env.example").read_text(encoding="utf-8")
        assert re.search(rf"^{name}=", example, re.M), name


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_finds_no_fault_but_the_missing_program(path: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False
    )
    faults = [line for line in done.stderr.splitlines() if path.name in line]
    assert all("is not executable" in line for line in faults), done.stderr
