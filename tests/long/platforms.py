"""A consortium whose messages a platform carries: real agents, a real centre, a folder for each.

The platform is installed into an environment of its own, since its pins are its own affair.
"""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders, agents_at_work
from site_agent.config import SiteConfig
from tests.support.command_line import enter
from tests.support.forgery import ledger
from tests.support.local_consortium import SITES, STUDY, build

HUB = "server"
TEXT = STUDY.replace("{join: 4, answer: 4}", "{join: 300, ready: 300, answer: 300}").replace(
    "algorithm: ica\nanalysis: {components: 2, rounds: 2, pca_solver: moment}",
    "algorithm: group_ica\nanalysis: {components: 3}",
)
SECONDS = 900


def python_with(requirement: str, folder: Path, variable: str) -> Path:
    """Return a Python that has a platform; without a way to one the test is skipped.

    Parameters
    ----------
    variable : str
        Of the environment, which names one that is there already.
    """
    if given := os.environ.get(variable):
        return Path(given)
    python = folder / "platform" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
    words = [python, "-m", "pip", "install", "--quiet", requirement]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{requirement} can't be installed here: {done.stderr.strip()[-200:]}")
    return python


def apart(root: Path, *, most: float | None = None) -> DemoFolders:
    """Make a consortium whose parties share nothing, with a study that all have approved."""
    place = build(root, text=TEXT, most=most)
    place.files.exchange.rmdir()  # type: ignore[union-attr]
    for party in (HUB, *SITES):
        (root / "carried" / party).mkdir(parents=True)
    for site in SITES:
        folder = str(root / "carried" / site)
        SiteConfig.create(site, place.dataset(site), folder).save(place.site(site))
    return place


def run_line(place: DemoFolders) -> list[object]:
    """What the coordinator types, with the folder that the relay serves as the exchange."""
    files = place.files
    exchange = place.root / "carried" / HUB
    where = ["--roster", files.roster, "--keys", files.keys, "--exchange", exchange]
    return [sys.executable, "-m", "consortium", "run", files.study, *where, "--out", files.out]


def around(root: Path) -> dict[str, str]:
    """The environment in which a machine of the platform is started."""
    return {**os.environ, "CAPE_RELAY_FOLDER": f"{root}/carried/{{site}}", "PYTHONPATH": ""}


@contextmanager
def centre_at_work(place: DemoFolders) -> Iterator[subprocess.Popen[str]]:
    """Run agents and centre for the duration."""
    with agents_at_work(place, SITES):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        running = subprocess.Popen([str(x) for x in run_line(place)], text=True, **pipes)  # type: ignore[call-overload]
        try:
            yield running
        finally:
            running.kill()
            running.wait()


def follow(centre: subprocess.Popen[str], carrier: subprocess.Popen[bytes]) -> str:
    """Wait for the centre's end; a platform that fails is a failure at once."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            return centre.communicate(timeout=1)[0]
        except subprocess.TimeoutExpired:
            assert not carrier.poll(), "the platform ended with an error"
    raise AssertionError("the study takes too long")


def write_job(platform: str, place: DemoFolders, *more: object) -> Path:
    """Type the command that writes the job; returns its folder."""
    job = place.root / "job"
    said = enter("consortium", "relay", platform, place.files.study, "--output", job, *more)
    assert (said.code, said.err) == (0, "")
    return job


def digests(folder: Path) -> Mapping[str, str]:
    """SHA-256 of every message in a folder, by name."""
    found = (p for p in folder.rglob("*") if p.is_file() and not p.name.startswith("."))
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in found
    }


def check_all_alike(place: DemoFolders) -> None:
    """Every party holds the same messages, each ledger is charged once a round, all is shown."""
    held = [digests(place.root / "carried" / party) for party in (HUB, *SITES)]
    run = [{n: d for n, d in each.items() if n.startswith("runs/")} for each in held]
    assert all(each == run[0] for each in run)
    assert "runs/small-0001/end" in run[0]
    charged = [
        [(e.charge.run, e.charge.round, e.event) for e in ledger(place, site)] for site in SITES
    ]
    assert all(each == charged[0] and len(set(each)) == len(each) > 0 for each in charged)
    shown = enter(
        "consortium", "verify", place.files.out, "--exchange", place.root / "carried" / HUB
    )
    assert shown.code == 0, shown


def check_no_participant(place: DemoFolders, workspace: Path) -> None:
    """Nothing in a platform's workspace names or holds what a participant's files do."""
    words = [b"sub-0", str(place.root / "hospitals").encode(), b"ledger.sqlite", b"participant_id"]
    scans = [path.read_bytes()[64:128] for path in place.root.glob("hospitals/*/bids/**/*.nii.gz")]
    assert len(scans) >= len(SITES)
    for path in (path for path in workspace.rglob("*") if path.is_file()):
        data = path.read_bytes()
        assert not any(word in data for word in (*words, *scans)), path
