"""From nothing but the wheels to a result that can be shown, as the guides type it.

Over a shared folder, and over NVIDIA FLARE with a folder for each party. All parties are one user
here, and no disk is slow; `tests/long/test_walk.py` has users and slow disks.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.long.guides import DOCS, command
from tests.long.installation import PLACE, ROOT, for_coordinator, install_both
from tests.long.platforms import HUB, python_with
from tests.long.test_nvflare import MOST_TICKS, await_summary, federation
from tests.long.walk import (
    CENTRE,
    PERSONS,
    RUN,
    SITES,
    VOLUMES,
    Walk,
    agree,
    check,
    found,
    run,
)

RELAY, VERIFY = "guides/nvflare.md", "guides/verify.md"


class Plain(Walk):
    """All parties are the user of the test, who has their homes and nothing else."""

    def start(self, who: str, words: Sequence[str], **streams: object) -> subprocess.Popen[str]:
        home, line = self.home(who), [self.program(who, words[0]), *words[1:]]
        home.mkdir(exist_ok=True)
        bare = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        bare |= {"OMP_NUM_THREADS": "1"}
        return subprocess.Popen(line, cwd=home, env=bare, text=True, **streams)  # type: ignore[call-overload,no-any-return]

    def mail(self, who: str, to: str, *names: str) -> None:
        self.home(to).mkdir(exist_ok=True)
        for name in names:
            shutil.copyfile(self.home(who) / name, self.home(to) / Path(name).name)


class Apart(Plain):
    """Each party has a folder of its own, which FLARE carries."""

    def exchange(self, who: str) -> Path:
        return self.root / "carried" / (HUB if who == CENTRE else who)


@pytest.fixture(scope="module")
def software(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both wheels, put where the pages put them; CAPE_WALK_SOFTWARE names what is there already."""
    if given := os.environ.get("CAPE_WALK_SOFTWARE"):
        return Path(given)
    place = tmp_path_factory.mktemp("software") / "opt"
    install_both(place)
    papers = place.with_name("release")
    words = ["-m", "uv", "build", "--quiet", "--out-dir", papers, ROOT / "relay"]
    subprocess.run([sys.executable, *map(str, words)], check=True)
    page = (DOCS / RELAY).read_text(encoding="utf-8")
    line = next(each.split()[1:] for each in page.splitlines() if "_relay-0.1.0" in each)
    line = [word.replace(PLACE, str(for_coordinator(place))) for word in line]
    subprocess.run(line, cwd=papers, check=True, env={"PATH": "/usr/bin:/bin"})
    return place


@pytest.fixture(scope="module")
def scans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scans")
    words = ["--subjects", str(PERSONS), "--volumes", str(VOLUMES), "--networks", "4"]
    make = [sys.executable, "-m", "consortium.simulation", str(folder)]
    subprocess.run([*make, "--sites", *SITES, *words, "--resolution", "8"], check=True)
    return folder


def found_and_agreed(walk: Walk, scans: Path) -> None:
    for who in (CENTRE, *SITES):
        walk.exchange(who).mkdir(parents=True, exist_ok=True)
    found(walk, scans)
    agree(walk, None)


def shown(walk: Walk) -> str:
    """What the hospitals publish of their keys, and the auditor's check of the result."""
    values = {"/mnt/share": str(walk.exchange(CENTRE))}
    lines = [f"{who}: {told}\n" for who, told in walk.told.items()]
    (walk.home(CENTRE) / "fingerprints.yaml").write_text("".join(lines), encoding="utf-8")
    begins = "consortium verify out --sites fingerprints.yaml --exchange"
    return walk.type(CENTRE, command(VERIFY, begins, values))


def end(walk: Walk) -> None:
    for agent in walk.agents.values():
        agent.kill()


def test_over_a_folder(software: Path, scans: Path, tmp_path: Path) -> None:
    walk = Plain(tmp_path, software)
    try:
        found_and_agreed(walk, scans)
        print(run(walk))
    finally:
        end(walk)
    check(walk)
    assert shown(walk).startswith(f"Shown: the only round of {RUN} ")
    print(f"{len(walk.typed)} commands, {time.monotonic() - walk.began:.0f} s")


def test_over_nvflare(software: Path, scans: Path, tmp_path: Path) -> None:
    python = python_with("nvflare==2.9.0", tmp_path / "flare", "CAPE_NVFLARE_PYTHON")
    walk = Apart(tmp_path, software)
    try:
        found_and_agreed(walk, scans)
        walk.type(CENTRE, command(RELAY, "consortium relay nvflare ", {}))
        with federation(python, tmp_path) as type_:
            type_("job", "submit", "-j", walk.home(CENTRE) / "job")
            print(run(walk))
            moved = await_summary(tmp_path / "workspace")
            print(moved[0])
    finally:
        end(walk)
    check(walk)
    assert shown(walk).startswith(f"Shown: the only round of {RUN} ")
    assert int(moved[1]) <= MOST_TICKS
    print(f"{len(walk.typed)} commands, {time.monotonic() - walk.began:.0f} s")
