"""The command ``demo``: four hospitals, end to end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from consortium.coordinator.demo.agents import agents
from consortium.coordinator.demo.prepare import prepare_demo
from consortium.coordinator.demo.score import score_maps
from consortium.coordinator.run import run_study
from consortium.engine.clock import Clock
from consortium.report.statement import summary
from consortium.study.reader import load_study


def run_demo(
    root: Path,
    *,
    subjects: int,
    seed: int,
    real: Sequence[Path],
    console: Console,
    full_brain: bool = False,
) -> None:
    """Make hospitals, run the study over their agents, and judge the maps.

    Parameters
    ----------
    root : Path
        Replaced if it holds an earlier demo.
    subjects : int
        Per hospital.
    seed : int
        Of the made-up scans; noise and keys are never seeded.
    real : sequence of Path
        4-D NIfTI files to deal out instead of making scans up.
    console : Console
    full_brain : bool
        Scans of 70,000 voxels instead of a coarse grid.

    Raises
    ------
    ConsortiumError
        If any part fails.
    """
    place = prepare_demo(
        root, subjects=subjects, seed=seed, real=real, console=console, full_brain=full_brain
    )
    study = load_study(place.files.study)
    console.print("Four hospital agents start; each has its own folder, keys and ledger.")
    with agents(place, study):
        report = run_study(place.files, Clock(), console)
    if not real:
        console.print(score_maps(place, study))
    maps = getattr(study.analysis, "components", 1)
    console.print(f"Output: {place.files.out} (open report.html)", soft_wrap=True)
    console.print(f"{maps} components found; {summary(report)}", soft_wrap=True)
