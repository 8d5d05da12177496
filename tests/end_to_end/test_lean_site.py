"""A site without Prefect: its daily commands work, and what needs Prefect says so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from consortium.coordinator.demo.layout import DemoFolders
from tests.support.membership_files import give_scans, papers

ROOT = Path(__file__).parents[2]
WITHOUT = (
    "import sys; sys.modules.update(dict.fromkeys(('prefect', 'fastapi', 'sqlalchemy'))); "
    "from {module} import main; main()"
)
MODULES = {"site-agent": "site_agent.cli", "consortium": "consortium.coordinator.cli"}


@pytest.fixture
def place(tmp_path: Path) -> DemoFolders:
    found, _ = papers(tmp_path)
    give_scans(found)
    return found


def _type(program: str, *words: object) -> subprocess.CompletedProcess[str]:
    script = WITHOUT.format(module=MODULES[program])
    around = {**os.environ, "PYTHONPATH": str(ROOT)}
    line = [sys.executable, "-c", script, *map(str, words)]
    return subprocess.run(line, env=around, capture_output=True, text=True, check=False)


def test_a_site_looks_at_itself_its_ledger_and_a_study(place: DemoFolders) -> None:
    here = ("-f", place.site("east"))
    study = (place.files.study, "--roster", place.files.roster)
    for words, told in (
        (("doctor", *here), "ok    keys"),
        (("ledger", *here), "spent"),
        (("check", *study, *here), "3 participants qualify, with 72 volumes."),
        (("approve", *study, "--yes", *here), "Approved: small"),
    ):
        done = _type("site-agent", *words)
        assert (done.returncode, done.stderr) == (0, ""), (words, done)
        assert told in done.stdout, words


def test_what_needs_prefect_says_so_and_how_to_have_it(place: DemoFolders, tmp_path: Path) -> None:
    here, files = place.site("east"), place.files
    settings = here / "site.yaml"
    text = settings.read_text(encoding="utf-8")
    assert "\nprefect: false\n" in text
    settings.write_text(text.replace("prefect: false", "prefect: true"), encoding="utf-8")
    study = (files.study, "--roster", files.roster)
    centre = ("--exchange", files.exchange, "--keys", files.keys, "--out", tmp_path / "out")
    for program, *words in (
        ("site-agent", "start", "-f", here),
        ("site-agent", "prepare", *study, "-f", here),
        ("consortium", "run", *study, *centre),
        ("consortium", "deploy", *study, *centre, "--cron", "0 20 * * fri"),
        ("consortium", "demo", "--out", tmp_path / "demo"),
    ):
        done = _type(program, *words)
        assert done.returncode == 1, (words, done)
        assert done.stderr.count("\n") == 1, done.stderr
        assert "prefect and fastapi and sqlalchemy can't be found; install" in done.stderr
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "demo").exists()
