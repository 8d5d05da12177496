"""Simulated hospitals: folders, scans, keys, roster, approvals, and their agents.

The scans are simulated from known networks, and the true maps are stored outside every hospital.
The findings of the studies can be compared with them.
"""

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from rich.console import Console

from consortium.coordinator.run import RunFiles
from consortium.errors import OutputError
from consortium.membership.admission import JoinRequest, admit_site, read_request
from consortium.membership.keys import create_identity, load_identity
from consortium.membership.roster import found_roster, read_roster, save_roster
from consortium.membership.signed_study import sign_study
from consortium.simulation.bids import Recipe, make_consortium
from consortium.study.nominal import nominal_size
from consortium.study.reader import read_study
from consortium.study.spec import Study
from site_agent.approval.approval import Terms, approve
from site_agent.config import SiteConfig
from site_agent.enrolment.request import join_consortium
from site_agent.policy.policy import Policy

EXCHANGE = "exchange"
_MARK = ".consortium-demo"


@dataclass(frozen=True)
class DemoFolders:
    """Folders of the demo: hospitals, exchange and outputs."""

    root: Path

    @property
    def files(self) -> RunFiles:
        """The centre's files."""
        root = self.root
        return RunFiles(
            root / "study.yaml",
            root / "roster.yaml",
            root / EXCHANGE,
            root / "centre",
            root / "output",
        )

    def study(self, name: str) -> RunFiles:
        """Return the centre's files of one study of several."""
        folder = self.root / name
        return replace(self.files, study=folder / "study.yaml", out=folder / "output")

    def site(self, name: str) -> Path:
        """Return a hospital's own folder."""
        return self.root / "hospitals" / name / "agent"

    def dataset(self, name: str) -> Path:
        """Return a hospital's BIDS data set."""
        return self.root / "hospitals" / name / "bids"

    @property
    def truth(self) -> Path:
        """True parameters of the simulated scans."""
        return self.root / "hospitals" / "truth"


def clear_demo(root: Path) -> DemoFolders:
    """Make a demo's folder, without the files of an earlier demo.

    Raises OutputError if the folder has other files than a demo's.
    """
    if root.exists():
        if any(root.iterdir()) and not (root / _MARK).exists():
            raise OutputError(f"{root} has other files. Choose another folder with --out.")
        shutil.rmtree(root)
    root.mkdir(parents=True)
    (root / _MARK).touch()
    return DemoFolders(root)


def make_scans(place: DemoFolders, recipe: Recipe, console: Console) -> None:
    """Simulate the scans of every hospital of the demo."""
    done = 0
    people = sum(recipe.sizes)
    with console.status("Simulating scans") as status:

        def count(_: str) -> None:
            nonlocal done
            done += 1
            status.update(f"Simulating scans: {done} of {people} participants")

        make_consortium(place.root / "hospitals", recipe, progress=count)
    sizes = ", ".join(map(str, recipe.sizes))
    console.print(f"{len(recipe.sites)} hospitals with {sizes} simulated participants.")


def found_consortium(place: DemoFolders, sites: Sequence[str]) -> None:
    """Make exchange, keys and roster, and admit every hospital."""
    files = place.files
    (place.root / EXCHANGE).mkdir()
    files.keys.mkdir()
    consortium = create_identity(files.keys, secrets.token_bytes(64))
    members = found_roster(consortium.public)
    for name in sites:
        members = admit_site(members, _join(place, name, consortium.public))
    save_roster(files.roster, members, consortium.key)


def approve_everywhere(place: DemoFolders, files: RunFiles) -> None:
    """Sign a study as the consortium, and approve it at each of its hospitals."""
    sign_study(files.study, read_roster(files.roster), load_identity(files.keys).key)
    for name in read_study(files.study).sites:
        folder = place.site(name)
        approve(
            folder=folder,
            name=name,
            identity=load_identity(folder),
            study=files.study,
            roster=files.roster,
            terms=Terms(),
        )


def write_study(
    files: RunFiles,
    template: str,
    sizes: Mapping[str, int] | None = None,
    groups: Mapping[str, Sequence[int]] | None = None,
) -> None:
    """Write a study file as it ships, with other nominal sizes and ``groups``."""
    text = (resources.files("consortium") / "simulation" / template).read_text(encoding="utf-8")
    if sizes is not None:
        nominal = {site: nominal_size(size) for site, size in sizes.items()}
        text = re.sub(r"participants: \{[^}]*\}", f"participants: {json.dumps(nominal)}", text)
    if groups is not None:
        text = re.sub(r"groups: \{[^}]*\}", f"groups: {json.dumps(groups)}", text)
    files.study.parent.mkdir(exist_ok=True)
    files.study.write_text(text, encoding="utf-8")


def _join(place: DemoFolders, name: str, centre: bytes) -> JoinRequest:
    """Make one hospital's agent and let it ask to be admitted."""
    folder = place.site(name)
    folder.mkdir(parents=True, exist_ok=True)
    SiteConfig.create(name, place.dataset(name), str(place.files.exchange)).save(folder)
    Policy().save(folder)
    create_identity(folder, secrets.token_bytes(64))
    path, _ = join_consortium(folder, name, centre.hex())
    return read_request(path)


@contextmanager
def agents(place: DemoFolders, study: Study) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Run every site's agent as a process for the duration; their logs are in their folders."""
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in study.sites:
            running[name] = start_agent(place, name)
        yield running
        for process in running.values():
            process.wait(timeout=60)
    finally:
        for process in running.values():
            process.terminate()
            process.wait()


@contextmanager
def agents_at_work(place: DemoFolders, sites: Sequence[str]) -> Iterator[None]:
    """Keep every site's agent at work for the duration, whatever studies come."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        running += [start_agent(place, name, once=False) for name in sites]
        yield
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def start_agent(place: DemoFolders, name: str, *, once: bool = True) -> subprocess.Popen[bytes]:
    """Start one hospital's agent; it stops after one run, or at the signal."""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    mode = ["--once"] if once else []
    with (place.site(name) / "agent.log").open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "site_agent", "start", *mode, "--folder", place.site(name)],
            stdout=log,
            stderr=log,
            env=os.environ | threads,
        )
