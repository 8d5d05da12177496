"""Four hospitals on one machine: real processes, real files, separate folders and keys.

The hospitals' scans are made up from networks that are known, and the truth is
kept apart from every hospital, so that what the study finds can be judged.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import nibabel as nib
import numpy as np
from nilearn.image import resample_img
from rich.console import Console

from consortium.coordinator.run import RunFiles, run_study
from consortium.engine.clock import Clock
from consortium.errors import OutputError
from consortium.membership.admission import JoinRequest, admit, read_request
from consortium.membership.keys import create_identity, load_identity
from consortium.membership.roster_file import found_roster, save_roster
from consortium.membership.signed_study import sign_study
from consortium.report.bids import map_stem
from consortium.report.statement import summary
from consortium.space.grid import study_grid
from consortium.space.study_space import study_space
from consortium.study.reader import load_study
from consortium.study.spec import Study
from consortium.synthetic.bids import Recipe, make_consortium
from consortium.synthetic.blocks import cube_atlas
from consortium.synthetic.real import split_over_sites
from consortium.synthetic.signals import Levels
from site_agent.approval.approval import Terms, approve
from site_agent.config import SiteConfig
from site_agent.enrolment.request import join_consortium
from site_agent.policy.policy import Policy

_MARK = ".consortium-demo"
STORED = 10.0
"""Coarsest voxels of the made-up scans, in mm."""
CUBE = 24.0
"""Edge of the full-brain study's regions, in mm."""
EXCHANGE = "exchange"


@dataclass(frozen=True)
class Place:
    """The demo's folders.

    Parameters
    ----------
    root : Path
    """

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

    def site(self, name: str) -> Path:
        """A hospital's own folder."""
        return self.root / "hospitals" / name / "agent"

    def dataset(self, name: str) -> Path:
        """A hospital's BIDS data set."""
        return self.root / "hospitals" / name / "bids"

    @property
    def truth(self) -> Path:
        """What the made-up scans were made of."""
        return self.root / "hospitals" / "truth"


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
        console.print(judge(place, study))
    maps = getattr(study.analysis, "components", 1)
    console.print(f"Output: {place.files.out} (open report.html)", soft_wrap=True)
    console.print(f"{maps} components found; {summary(report)}", soft_wrap=True)


def prepare_demo(
    root: Path,
    *,
    subjects: int,
    seed: int,
    real: Sequence[Path],
    console: Console,
    full_brain: bool = False,
) -> Place:
    """Make scans, keys, roster and approvals; nothing is started.

    Raises
    ------
    OutputError
        If the folder holds something that is not a demo.
    """
    _clear(root)
    place = Place(root)
    files = place.files
    if real:
        study = _real_study(place, real)
    else:
        _write_study(files.study, _template("full-brain.yaml" if full_brain else "demo.yaml"))
        study = load_study(files.study)
        _make_scans(place, study, subjects, seed, console)
        if study.data.atlas:
            grid = study_grid(study.data, root)
            nib.save(cube_atlas(grid, CUBE), root / study.data.atlas)
    (root / EXCHANGE).mkdir()
    files.keys.mkdir()
    consortium = create_identity(files.keys, secrets.token_bytes(64))
    members = found_roster(consortium.public)
    for name in study.sites:
        members = admit(members, _join(place, name, consortium.public))
    save_roster(files.roster, members, consortium.key)
    sign_study(files.study, members, consortium.key)
    for name in study.sites:
        folder = place.site(name)
        approve(folder, name, load_identity(folder), files.study, files.roster, Terms())
    return place


@contextmanager
def agents(place: Place, study: Study) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
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


def start_agent(place: Place, name: str) -> subprocess.Popen[bytes]:
    """Start one hospital's agent; it stops after the run."""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with (place.site(name) / "agent.log").open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "site_agent", "start", "--once", "--folder", place.site(name)],
            stdout=log,
            stderr=log,
            env=os.environ | threads,
        )


def judge(place: Place, study: Study) -> str:
    """Compare every true network with its best map.

    Returns
    -------
    str
        A line for each network with its correlation, on the study's grid.
    """
    scores = match(place, study)
    lines = [f"  {name:<22} {score:.3f}" for name, score in scores.items()]
    least = min(scores.values())
    return "\n".join(["Correlation of each true network with its best map:", *lines]) + (
        f"\nLeast correlation: {least:.3f}"
    )


def match(place: Place, study: Study) -> dict[str, float]:
    """Largest absolute correlation of each true network with any map."""
    space = study_space(study, place.files.study.parent)
    grid = space.maps if getattr(study.analysis, "maps", False) else space.grid
    folder = place.files.out / f"tpl-{study.data.space}" / "func"
    maps = nib.load(folder / f"{map_stem(study, grid)}_components.nii.gz").get_fdata()[grid.mask]
    truth = resample_img(
        nib.load(place.truth / "networks.nii.gz"),
        target_affine=grid.affine,
        target_shape=grid.shape,
        interpolation="linear",
        force_resample=True,
        copy_header=True,
    ).get_fdata()[grid.mask]
    names = _network_names(place.truth)
    count = truth.shape[1]
    table = np.abs(np.corrcoef(truth.T, maps.T)[:count, count:])
    return {name: float(row.max()) for name, row in zip(names, table, strict=True)}


def _network_names(truth: Path) -> list[str]:
    return list(json.loads((truth / "truth.json").read_text(encoding="utf-8"))["networks"])


def _make_scans(place: Place, study: Study, subjects: int, seed: int, console: Console) -> None:
    recipe = Recipe(
        study.sites,
        subjects,
        seed,
        volumes=study.data.volumes or 80,
        networks=int(getattr(study.analysis, "components", 8)),
        # A coarse study's scans are finer than it; those of a full brain have its own voxels.
        resolution=min(study.data.resolution, STORED),
        levels=Levels(signal=0.04),
    )
    done = 0
    with console.status("Making up scans") as status:

        def count(_: str) -> None:
            nonlocal done
            done += 1
            status.update(f"Making up scans: {done} of {subjects * len(study.sites)} subjects")

        make_consortium(place.root / "hospitals", recipe, progress=count)
    console.print(f"{len(study.sites)} hospitals with {subjects} made-up subjects each.")


def _real_study(place: Place, images: Sequence[Path]) -> Study:
    """A study over pieces of real series: a check of the whole path, not science."""
    sites = ("north", "east", "south", "west")
    split_over_sites(place.root / "hospitals", images, sites=sites, pieces=4)
    shutil.copy(place.root / "hospitals" / "mask.nii.gz", place.root / "mask.nii.gz")
    _write_study(place.files.study, _template("real.yaml"))
    return load_study(place.files.study)


def _join(place: Place, name: str, centre: bytes) -> JoinRequest:
    """Make one hospital's agent and let it ask to be admitted."""
    folder = place.site(name)
    folder.mkdir(parents=True, exist_ok=True)
    SiteConfig.create(name, place.dataset(name), str(place.files.exchange)).save(folder)
    Policy().save(folder)
    create_identity(folder, secrets.token_bytes(64))
    path, _ = join_consortium(folder, name, centre.hex())
    return read_request(path)


def _template(name: str = "demo.yaml") -> str:
    return (resources.files("consortium") / "synthetic" / name).read_text(encoding="utf-8")


def _write_study(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _clear(root: Path) -> None:
    if root.exists():
        if any(root.iterdir()) and not (root / _MARK).exists():
            raise OutputError(f"{root} holds other files; choose another folder with --out.")
        shutil.rmtree(root)
    root.mkdir(parents=True)
    (root / _MARK).touch()
