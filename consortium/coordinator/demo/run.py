"""The command ``demo``: four hospitals, end to end."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from consortium.coordinator.demo.one_study import prepare_full_brain, prepare_real, run_one
from consortium.coordinator.demo.story import tell_story
from flows import need_prefect


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

    Raises
    ------
    ConsortiumError
        If any part fails.
    """
    need_prefect()
    if real:
        run_one(prepare_real(root, real), console)
    elif full_brain:
        place = prepare_full_brain(root, subjects=subjects, seed=seed, console=console)
        run_one(place, console)
    else:
        tell_story(root, subjects=subjects, seed=seed, console=console)
