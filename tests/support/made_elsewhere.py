"""Finished runs made and verified in processes of their own.

So that BLAS can be given its threads and its kernel by the environment. To start one and to draw
the first page takes longer than all else: each serves several runs.
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from consortium.simulation.bids import Recipe, make_consortium
from consortium.simulation.signals import SignalLevels
from tests.support.finished_run import play
from tests.support.local_consortium import SITES, build
from tests.support.patience import PATIENCE

_STUDY = """\
study: small
sites: [north, east, south, west]
participants: {north: 10, east: 10, south: 10, west: 10}
data: {resolution: 16, standardize: subject, minimum_volumes: 10, volumes: 40}
privacy:
  {unit: subject, epsilon: 90, delta: 1.0e-5, boost: BOOST, colluding_sites: 1}
timing: {join: 4, answer: 4, late: 1}
"""
_ANALYSES = {
    "group_ica": "algorithm: group_ica\nanalysis: {components: 6, anyway: true, replays: 10}\n",
    "ica": "algorithm: ica\nanalysis: {components: 5, rounds: 4}\n",
}
_VERIFY = """
import sys
from consortium.coordinator.cli import main
sys.stderr = sys.stdout
for folder in sys.argv[1:]:
    sys.argv = ["consortium", "verify", folder]
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code
    print(f"\\0{code or 0}\\0", end="")
"""
_LEVELS = SignalLevels(signal=0.026, noise=0.014, autocorrelation=0.6, weakest=0.54)


def made(kinds: Iterable[str], folder: Path, variables: Mapping[str, str]) -> dict[str, Path]:
    """Make runs with these variables of the environment; returns their output folders."""
    kinds = tuple(kinds)
    command = [sys.executable, "-m", "tests.support.made_elsewhere", str(folder), *kinds]
    subprocess.run(command, check=True, env=_environment(variables), timeout=PATIENCE)
    return {kind: folder / kind / "output" for kind in kinds}


def verified(folders: Iterable[Path], variables: Mapping[str, str]) -> list[tuple[int, str]]:
    """Return exit codes and output of `consortium verify`, with these environment variables."""
    done = subprocess.run(
        [sys.executable, "-c", _VERIFY, *map(str, folders)],
        check=False,
        env=_environment(variables),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    *told, rest = done.stdout.split("\0")
    assert not rest
    return [(int(code), said) for said, code in zip(told[::2], told[1::2], strict=True)]


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    own = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    return {**own, **variables}


def _scans(folder: Path, subjects: int) -> None:
    recipe = Recipe(SITES, subjects, 5, volumes=40, networks=6, resolution=16.0, levels=_LEVELS)
    make_consortium(folder, recipe, workers=1)


def _main(folder: Path, kinds: Iterable[str]) -> None:
    for kind in kinds:
        text = _STUDY + _ANALYSES[kind]
        place = build(folder / kind, text=text, subjects=6, make=_scans, most=100.0)
        play(place)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), sys.argv[2:])
