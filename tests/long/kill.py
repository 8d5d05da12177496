"""``python -m tests.long.kill``: SIGKILL every party of the demo in some round, and start it again.

Prints for each kill whether the maps are those of the unbroken run, byte for
byte, and whether every ledger has charged each round once. Exits with 1 if not.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console

from benchmarks.timing import show
from consortium.coordinator.demo.prepare import (
    DemoFolders,
    approve_everywhere,
    clear_demo,
    found_consortium,
    make_scans,
    start_agent,
    write_study,
)
from consortium.coordinator.demo.run import SITES
from consortium.simulation.bids import Recipe
from consortium.simulation.signals import SignalLevels
from consortium.study.reader import read_study
from site_agent.layout import LEDGER
from site_agent.ledger.ledger import Ledger

ROUNDS = 14


def start_centre(place: DemoFolders) -> subprocess.Popen[bytes]:
    """The centre as a process of its own."""
    files = place.files
    with (place.root / "centre.log").open("ab") as log:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "consortium", "run", str(files.study)),
                *("--roster", str(files.roster), "--exchange", str(files.exchange)),
                *("--keys", str(files.keys), "--out", str(files.out)),
            ],
            stdout=log,
            stderr=log,
        )


def run(place: DemoFolders, victim: str | None, number: int) -> None:
    """One whole study; the victim is killed once its part of round ``number`` is on its way."""
    study = read_study(place.files.study)
    parties = {name: start_agent(place, name) for name in study.sites}
    parties["centre"] = start_centre(place)
    if victim is not None:
        before = place.files.out / "transcript" / f"round-{number - 1:05d}.json"
        while number > 1 and not before.exists():
            if parties["centre"].poll() is not None:
                raise SystemExit(f"the centre ended early. Look into {place.root}")
            time.sleep(0.005)
        time.sleep(random.uniform(0.0, 0.2))
        parties[victim].send_signal(signal.SIGKILL)
        parties[victim].wait()
        time.sleep(1.0)
        again = start_centre(place) if victim == "centre" else start_agent(place, victim)
        parties[victim] = again
    for name, party in parties.items():
        if party.wait(timeout=600) != 0:
            raise SystemExit(f"{name} ended with {party.returncode}. Look into {place.root}")


def maps(place: DemoFolders) -> bytes:
    """The map file's bytes."""
    (path,) = place.files.out.glob("tpl-*/func/*_components.nii.gz")
    return path.read_bytes()


def charged_once(place: DemoFolders) -> bool:
    """Whether every ledger holds each round once."""
    study = read_study(place.files.study)
    rounds = list(range(1, ROUNDS + 1))
    entries = [Ledger(place.site(name) / LEDGER).entries() for name in study.sites]
    return all(
        [e.charge.round for e in lines if e.event == event] == rounds
        for lines in entries
        for event in ("reserve", "spend")
    )


def copy(source: DemoFolders, target: Path) -> DemoFolders:
    """A twin with the same keys, so that it makes the same noise."""
    shutil.copytree(source.root, target)
    for file in target.glob("hospitals/*/agent/site.yaml"):
        text = file.read_text().replace(str(source.root.resolve()), str(target.resolve()))
        file.write_text(text)
    return DemoFolders(target)


def prepare(root: Path, subjects: int, console: Console) -> DemoFolders:
    """Make hospitals and the study by rounds."""
    place = clear_demo(root)
    recipe = Recipe(SITES, subjects, 1, volumes=80, networks=8, levels=SignalLevels(signal=0.04))
    make_scans(place, recipe, console)
    write_study(place.files, "demo-rounds.yaml")
    found_consortium(place, SITES)
    approve_everywhere(place, place.files)
    return place


def main(root: Path, subjects: int) -> None:
    """Kill each of the five parties once."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    os.environ["OMP_NUM_THREADS"] = "1"  # the same sums in the same order in every process
    console, seed = Console(), random.randrange(1000)
    random.seed(seed)
    console.print(f"seed {seed}")
    original = prepare(root / "original", subjects, console)
    whole = copy(original, root / "whole")
    run(whole, None, 0)
    rows = [["nobody", "", "", str(charged_once(whole))]]
    for victim in ("centre", *read_study(original.files.study).sites):
        number = random.randint(1, ROUNDS)
        place = copy(original, root / f"{victim}-{number}")
        run(place, victim, number)
        rows.append(
            [victim, str(number), str(maps(place) == maps(whole)), str(charged_once(place))]
        )
        shutil.rmtree(place.root)
    show("SIGKILL", ["killed", "in round", "same maps", "each round charged once"], rows)
    if any("False" in row for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main(Path("build/kill"), int(sys.argv[1]) if len(sys.argv) > 1 else 20)
