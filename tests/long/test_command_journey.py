"""The whole way of a study, as a coordinator and three hospitals type it."""

import json
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.engine.clock import Clock
from consortium.simulation.bids import Recipe, make_consortium
from consortium.simulation.signals import SignalLevels
from site_agent.agent import Agent
from tests.support.command_line import enter
from tests.support.local_consortium import STUDY

TRIO = ("north", "east", "south")


def _scans(place: DemoFolders) -> None:
    recipe = Recipe(TRIO, 3, 5, volumes=24, networks=2, resolution=30.0, levels=SignalLevels())
    make_consortium(place.root / "hospitals", recipe, workers=1)


def _write_study(place: DemoFolders) -> None:
    text = STUDY.replace("BOOST", "exact").replace("DROPOUTS", "0").replace(", west]", "]")
    text = text.replace("rounds: 2", "rounds: 1").replace("{join: 4, answer: 4}", "{join: 90}")
    place.files.study.write_text(text)


def _begin(place: DemoFolders) -> None:
    """Init, join, admit, sign, check and approve."""
    files = place.files
    papers_of_centre = ("--roster", files.roster, "--keys", files.keys)
    said = enter("consortium", "init", files.keys, "--exchange", files.exchange)
    (key,) = [line for line in said.out.splitlines() if len(line) == 64]
    (files.keys / "roster.yaml").rename(files.roster)
    for name in TRIO:
        folder = ("--folder", place.site(name))
        where = ("--dataset", place.dataset(name), "--exchange", files.exchange)
        said = enter("site-agent", "init", "--name", name, *where, *folder)
        own = next(x for x in said.out.splitlines() if "fingerprint" in x).split()[-1].rstrip(".")
        said = enter("site-agent", "join", "--centre", key, *folder)
        assert own in said.out
        request = place.site(name) / f"{name}.join.yaml"
        said = enter("consortium", "admit", request, *papers_of_centre, answer="y\n")
        assert (said.code, said.err) == (0, "")
        assert f"{name}: {own}" in said.out
    assert "The roster has 3 sites, serial number 4." in said.out
    said = enter("consortium", "sign", files.study, *papers_of_centre)
    assert "study.yaml.sig is made" in said.out
    assert "north, east, south" in said.out


def _agree(place: DemoFolders) -> None:
    files = (place.files.study, "--roster", place.files.roster)
    for name in TRIO:
        folder = ("--folder", place.site(name))
        said = enter("site-agent", "check", *files, *folder)
        assert said.code == 0, said
        assert "3 participants qualify" in said.out
        assert "Approve it with 'site-agent approve'" in said.out
        found = json.loads(enter("site-agent", "check", *files, *folder, "--json").out)
        assert (found["persons"], found["problems"]) == (3, [])
        said = enter("site-agent", "approve", *files, *folder, "--yes")
        assert said.code == 0
        assert "Approved: small: ica, ε ≤ 8 at δ = 1e-05, unit subject, 1 run." in said.out
        said = enter("site-agent", "status", *folder)
        assert "approved   small: ica" in said.out
        assert "agent      not running" in said.out


def _start(*words: object) -> subprocess.Popen[str]:
    """Start a command as a process of its own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
    command = [sys.executable, "-m", *map(str, words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=kept, stdout=pipe, stderr=pipe, text=True)


def _carry_out(place: DemoFolders) -> str:
    """Run the study: the centre and north as processes, the others in this one."""
    files = place.files
    options = ("--roster", files.roster, "--exchange", files.exchange, "--keys", files.keys)
    agent = _start("site_agent", "start", "--once", "--folder", place.site("north"))
    centre = _start("consortium", "run", files.study, *options, "--out", files.out)
    now = lambda: datetime.now().astimezone()  # noqa: E731
    others = [Agent(place.site(n), Clock(), now, lambda _: None) for n in TRIO[1:]]
    deadline = time.monotonic() + 300
    try:
        while centre.poll() is None:
            assert time.monotonic() < deadline, "the centre hangs"
            for other in others:
                other.round_trip()
            time.sleep(0.1)  # the centre starts an embedded Prefect meanwhile
        out, err = centre.communicate()
        assert centre.returncode == 0, err
        told = agent.communicate(timeout=60)[1]
        assert agent.returncode == 0, told
        assert "small-0001 has ended: complete" in told
        return out
    finally:
        for process in (agent, centre):
            process.kill()
            process.wait()


def _look_back(place: DemoFolders) -> None:
    """Status, report, ledger and doctor."""
    files, folder = place.files, ("--folder", place.site("east"))
    where = ("--out", files.out, "--exchange", files.exchange)
    assert "small-0001: ended (complete)" in enter("consortium", "status", files.study, *where).out
    found = json.loads(enter("consortium", "status", files.study, *where, "--json").out)
    assert [site["name"] for site in found["sites"]] == list(TRIO)
    said = enter("consortium", "report", files.out)
    assert said.code == 0
    assert "ε" in said.out
    said = enter("site-agent", "ledger", *folder)
    assert "small" in said.out
    assert "of 20 is spent" in said.out
    assert "All ε are at δ = 1e-05" in said.out
    lines = json.loads(enter("site-agent", "ledger", "--json", *folder).out)
    assert "small-0001" in json.dumps(lines)
    assert enter("site-agent", "page", *folder).code == 0
    assert "small" in (place.site("east") / "site.html").read_text()
    said = enter("site-agent", "doctor", *folder, "--study", files.study)
    assert said.code == 0, said
    assert "fail " not in said.out


@pytest.mark.slow
def test_the_whole_way(tmp_path: Path) -> None:
    place = DemoFolders(tmp_path)
    _scans(place)
    _write_study(place)
    _begin(place)
    _agree(place)
    out = _carry_out(place)
    assert "open report.html" in out
    assert (place.files.out / "report.html").exists()
    _look_back(place)
