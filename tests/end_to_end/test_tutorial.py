"""The tutorial, typed: every command of it, in its order, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STUDY = re.compile(r"^```yaml\n(study: .*?)^```$", re.MULTILINE | re.DOTALL)


def typed() -> list[str]:
    """The lines after a prompt."""
    blocks = _BLOCK.findall(TUTORIAL.read_text(encoding="utf-8"))
    lines = [line for block in blocks for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


@pytest.mark.slow
def test_every_command_of_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    (study,) = _STUDY.findall(TUTORIAL.read_text(encoding="utf-8"))
    (tmp_path / "study.yaml").write_text(study, encoding="utf-8")
    script = "\n".join(["set -eu -o pipefail", *typed(), "wait"])
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "SITE_", "PYTHON"))
    }
    # A score of processes read one set of compiled modules instead of making each its own.
    compiled = {"PYTHONPYCACHEPREFIX": str(tmp_path / "compiled"), "OMP_NUM_THREADS": "1"}
    said = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=kept | compiled | {"PATH": programs},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert said.returncode == 0, said.stderr
    assert said.stderr == ""
    assert "The promise was kept." in said.stdout
    assert said.stdout.count("Approved: first: group_ica") == 3
    assert len(re.findall(r"^\d\t.*\tfound$", said.stdout, re.MULTILINE)) == 4
    assert (tmp_path / "output" / "report.html").is_file()
    for site in ("north", "east", "south"):
        log = (tmp_path / site / "agent.log").read_text(encoding="utf-8")
        assert "first-0001 has ended: complete" in log
