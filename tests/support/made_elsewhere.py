"""A finished run made in a process of its own: `python -m tests.support.made_elsewhere KIND DIR`.

So that BLAS can be given its threads and its kernel by the environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from consortium.simulation.bids import Recipe, make_consortium
from consortium.simulation.signals import Levels
from tests.support.finished_run import play
from tests.support.local_consortium import SITES, build

_STUDY = """\
study: small
sites: [north, east, south, west]
data: {resolution: 16, standardize: subject, minimum_volumes: 10, volumes: 40}
privacy:
  {unit: subject, epsilon: 90, delta: 1.0e-5, scheme: SCHEME, colluding_sites: 1}
timing: {join: 4, answer: 4, late: 1}
"""
_ANALYSES = {
    "group_ica": "algorithm: group_ica\nanalysis: {components: 6, anyway: true, replays: 10}\n",
    "ica": "algorithm: ica\nanalysis: {components: 5, rounds: 4}\n",
}
_LEVELS = Levels(signal=0.026, noise=0.014, autocorrelation=0.6, weakest=0.54)


def made(kind: str, folder: Path, variables: Mapping[str, str]) -> Path:
    """Make a run with these variables of the environment; returns its output folder."""
    command = [sys.executable, "-m", "tests.support.made_elsewhere", kind, str(folder)]
    subprocess.run(command, check=True, env=_environment(variables), timeout=600)
    return folder / "output"


def verified(folder: Path, variables: Mapping[str, str]) -> tuple[int, str]:
    """Exit code and words of `consortium verify`, with these variables of the environment."""
    command = [sys.executable, "-m", "consortium", "verify", str(folder)]
    done = subprocess.run(
        command,
        check=False,
        env=_environment(variables),
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done.returncode, done.stdout + done.stderr


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    own = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    return {**own, **variables}


def _scans(folder: Path, subjects: int) -> None:
    recipe = Recipe(SITES, subjects, 5, volumes=40, networks=6, resolution=16.0, levels=_LEVELS)
    make_consortium(folder, recipe, workers=1)


def _main(kind: str, folder: Path) -> None:
    text = _STUDY + _ANALYSES[kind]
    play(build(folder, scheme="secure-sum", text=text, subjects=6, make=_scans, most=100.0))


if __name__ == "__main__":
    _main(sys.argv[1], Path(sys.argv[2]))
