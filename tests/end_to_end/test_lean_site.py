"""A site without Prefect and web server: daily commands work, and what needs more says so."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from tests.support.command_line import Said
from tests.support.membership_files import give_scans, papers

ROOT = Path(__file__).parents[2]
WITHOUT = """
import dataclasses, json, sys
lacking = ("prefect", "fastapi", "sqlalchemy", "starlette", "uvicorn")
sys.modules.update(dict.fromkeys(lacking))
from tests.support.command_line import enter
print(json.dumps([dataclasses.asdict(enter(*line)) for line in json.load(sys.stdin)]))
"""
"""Types all its lines in one process, since a start takes seconds."""


@pytest.fixture
def place(tmp_path: Path) -> DemoFolders:
    found, _ = papers(tmp_path)
    give_scans(found)
    return found


def _type(*lines: tuple[object, ...]) -> list[Said]:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=json.dumps([[*map(str, line)] for line in lines]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return [Said(**each) for each in json.loads(done.stdout)]


def test_a_site_looks_at_itself_its_ledger_and_a_study(place: DemoFolders) -> None:
    here = ("-f", place.site("east"))
    study = (place.files.study, "--roster", place.files.roster)
    lines = {
        ("doctor", *here): "ok    keys",
        ("ledger", *here): "spent",
        ("check", *study, *here): "6 participants qualify, with 144 volumes.",
        ("approve", *study, "--yes", *here): "Approved: small",
    }
    done = _type(*(("site-agent", *words) for words in lines))
    for each, (words, wanted) in zip(done, lines.items(), strict=True):
        assert (each.code, each.err) == (0, ""), (words, each)
        assert wanted in each.out, words


def test_what_needs_prefect_says_so_and_how_to_have_it(place: DemoFolders, tmp_path: Path) -> None:
    here, files = place.site("east"), place.files
    settings = here / "site.yaml"
    text = settings.read_text(encoding="utf-8")
    assert "\nprefect: false\n" in text
    settings.write_text(text.replace("prefect: false", "prefect: true"), encoding="utf-8")
    study = (files.study, "--roster", files.roster)
    centre = ("--exchange", files.exchange, "--keys", files.keys, "--out", tmp_path / "out")
    lines = (
        ("site-agent", "start", "-f", here),
        ("site-agent", "prepare", *study, "-f", here),
        ("consortium", "run", *study, *centre),
        ("consortium", "deploy", *study, *centre, "--cron", "0 20 * * fri"),
        ("consortium", "demo", "--out", tmp_path / "demo"),
    )
    for words, each in zip(lines, _type(*lines), strict=True):
        assert each.code == 1, (words, each)
        assert each.err.count("\n") == 1, each.err
        assert "prefect and fastapi and sqlalchemy can't be found. Install" in each.err
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "demo").exists()


def test_the_inbox_says_what_it_needs_and_the_page_needs_nothing(place: DemoFolders) -> None:
    here = ("-f", place.site("east"))
    serve, page = _type(("site-agent", "serve", *here), ("site-agent", "page", *here))
    assert (serve.code, serve.err.count("\n")) == (1, 1)
    assert "The inbox needs starlette and uvicorn, which can't be found. Install" in serve.err
    assert page.code == 0
