"""The command ``demo``: four hospitals, end to end.

Demos of a single study: real series cut into pieces, and brains of 70,000 voxels.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from consortium.coordinator.demo.prepare import (
    DemoFolders,
    agents,
    approve_everywhere,
    clear_demo,
    found_consortium,
    make_scans,
    write_study,
)
from consortium.coordinator.demo.story import LEVELS, SCANNERS, found_maps, score_lines, tell_story
from consortium.coordinator.run import run_study
from consortium.engine.clock import Clock
from consortium.report.statement import summary
from consortium.simulation.bids import Recipe
from consortium.simulation.real import split_over_sites
from consortium.study.reader import read_study
from flows import need_prefect


def prepare_full_brain(root: Path, *, subjects: int, seed: int, console: Console) -> DemoFolders:
    """Make hospitals whose scans have 70,000 voxels, and their study."""
    place = clear_demo(root)
    write_study(place.files, "full-brain.yaml")
    study = read_study(place.files.study)
    recipe = Recipe(
        study.sites,
        subjects,
        seed,
        volumes=study.data.volumes or 80,
        networks=int(getattr(study.analysis, "components", 14)),
        resolution=study.data.resolution,
        levels=LEVELS,
        scanners=SCANNERS,
    )
    make_scans(place, recipe, console)
    return place


def prepare_real(root: Path, images: Sequence[Path]) -> DemoFolders:
    """Deal pieces of real series out: a check of the whole path, not science."""
    place = clear_demo(root)
    sites = ("north", "east", "south", "west")
    split_over_sites(root / "hospitals", images, sites=sites, pieces=4)
    shutil.copy(root / "hospitals" / "mask.nii.gz", root / "mask.nii.gz")
    write_study(place.files, "real.yaml")
    return place


def run_one(place: DemoFolders, console: Console) -> None:
    """Run the study of a prepared place over its hospitals' agents, and judge its maps."""
    study = read_study(place.files.study)
    found_consortium(place, study.sites)
    approve_everywhere(place, place.files)
    console.print("Four hospital agents start; each has its own folder, keys and ledger.")
    with agents(place, study):
        report = run_study(place.files, Clock(), console)
    if place.truth.exists():
        console.print("\n".join(score_lines(place, found_maps(place.files))))
    console.print(f"Output: {place.files.out} (open report.html)", soft_wrap=True)
    console.print(summary(report), soft_wrap=True)


def run_demo(
    root: Path,
    *,
    subjects: int,
    seed: int,
    real: Sequence[Path],
    console: Console,
    full_brain: bool = False,
) -> None:
    """Make hospitals, run studies over their agents, and judge what they found.

    Raises ConsortiumError if any part fails.

    Parameters
    ----------
    root : Path
        Replaced if it holds an earlier demo.
    subjects : int
        Per hospital, in the mean.
    seed : int
        Of the made-up scans; noise and keys are never seeded.
    real : sequence of Path
        4-D NIfTI files to deal out instead of making scans up.
    full_brain : bool
        One study of scans of 70,000 voxels.
    """
    need_prefect()
    if real:
        run_one(prepare_real(root, real), console)
    elif full_brain:
        place = prepare_full_brain(root, subjects=subjects, seed=seed, console=console)
        run_one(place, console)
    else:
        tell_story(root, subjects=subjects, seed=seed, console=console)
