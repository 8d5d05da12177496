"""``python -m benchmarks.latency``: wall time of a round over a directory, real processes.

The study has tiny data, so the mathematics takes almost no time. The measured time is that of
polling, signatures, masks, ledgers and Prefect.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.timing import show
from consortium.coordinator.demo.prepare import DemoFolders, start_agent
from consortium.coordinator.run import RunFiles, run_study
from consortium.engine.clock import Clock
from consortium.membership.admission import admit_site, read_request
from consortium.membership.keys import create_identity, load_identity
from consortium.membership.roster import found_roster, save_roster
from consortium.membership.signed_study import sign_study
from consortium.simulation.bids import Recipe, make_consortium
from site_agent.approval.approval import Terms, approve
from site_agent.config import SiteConfig
from site_agent.enrolment.request import join_consortium
from site_agent.policy.policy import Policy

STUDY = """\
study: latency
sites: [{sites}]
participants: {{{sizes}}}
data: {{resolution: 24, minimum_volumes: 10, volumes: 40}}
privacy: {{unit: subject, epsilon: 50, delta: 1.0e-5, colluding_sites: 1}}
algorithm: ica
analysis: {{components: 20, rounds: {rounds}}}
"""


@dataclass(frozen=True)
class Door:
    """How a party enters the exchange."""

    place: str
    credentials: Path | None = None


def settle(
    root: Path, sites: int, rounds: int, doors: Callable[[str], Door] | None = None
) -> DemoFolders:
    """Make sites with keys, approvals and one data set for all."""
    names = [f"site{number}" for number in range(sites)]
    place = DemoFolders(root)
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    files = place.files
    sizes = ", ".join(f"{name}: 10" for name in names)
    text = STUDY.format(sites=", ".join(names), sizes=sizes, rounds=rounds)
    files.study.write_text(text, encoding="utf-8")
    make_consortium(root / "hospitals", Recipe(("site0",), 4, 1, volumes=40, resolution=12.0))
    Path(files.exchange).mkdir()
    files.keys.mkdir()
    consortium = create_identity(files.keys, os.urandom(64))
    members = found_roster(consortium.public)
    for name in names:
        folder = place.site(name)
        folder.mkdir(parents=True)
        door = doors(name) if doors else Door(str(files.exchange))
        config = SiteConfig.create(name, place.dataset("site0"), door.place, door.credentials)
        config.save(folder)
        Policy.model_validate({"subject": {"study": 100, "total": 100}, "most_dropouts": 0}).save(
            folder
        )
        create_identity(folder, os.urandom(64))
        path, _ = join_consortium(folder, name, consortium.public.hex())
        members = admit_site(members, read_request(path))
    save_roster(files.roster, members, consortium.key)
    sign_study(files.study, members, consortium.key)
    for name in names:
        folder = place.site(name)
        approve(folder, name, load_identity(folder), files.study, files.roster, Terms())
    return place


def measure(place: DemoFolders, files: RunFiles, sites: int) -> float:
    """Carry the study out by processes; milliseconds of a round after the second one."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        running += [start_agent(place, f"site{number}") for number in range(sites)]
        run_study(files, Clock(), Console(quiet=True))
    finally:
        for process in running:
            process.terminate()
            process.wait()
    records = sorted((place.files.out / "transcript").glob("round-*.json"))
    times = [path.stat().st_mtime for path in records]
    return 1000 * (times[-1] - times[1]) / (len(times) - 2)


def main() -> None:
    """Print the table."""
    root = Path("build/latency")
    rows = []
    for sites, rounds in ((4, 40), (32, 20)):
        start = time.perf_counter()
        place = settle(root / str(sites), sites, rounds)
        each = measure(place, place.files, sites)
        rows.append([str(sites), f"{each:.0f}", f"{time.perf_counter() - start:.0f}"])
    show("A round over a directory, R = 20", ["sites", "ms a round", "whole study, s"], rows)


if __name__ == "__main__":
    main()
