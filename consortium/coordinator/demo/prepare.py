"""Made-up hospitals: scans, keys, roster and approvals.

The scans are made up from networks that are known, and the truth is kept apart from every
hospital, so that what the study finds can be judged.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import nibabel as nib
from rich.console import Console

from consortium.coordinator.demo.layout import EXCHANGE, DemoFolders
from consortium.errors import OutputError
from consortium.membership.admission import JoinRequest, admit, read_request
from consortium.membership.keys import create_identity, load_identity
from consortium.membership.roster_file import found_roster, save_roster
from consortium.membership.signed_study import sign_study
from consortium.space.grid import study_grid
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


def prepare_demo(
    root: Path,
    *,
    subjects: int,
    seed: int,
    real: Sequence[Path],
    console: Console,
    full_brain: bool = False,
) -> DemoFolders:
    """Make scans, keys, roster and approvals; nothing is started.

    Raises
    ------
    OutputError
        If the folder holds something that is not a demo.
    """
    _clear(root)
    place = DemoFolders(root)
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


def _make_scans(
    place: DemoFolders, study: Study, subjects: int, seed: int, console: Console
) -> None:
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


def _real_study(place: DemoFolders, images: Sequence[Path]) -> Study:
    """A study over pieces of real series: a check of the whole path, not science."""
    sites = ("north", "east", "south", "west")
    split_over_sites(place.root / "hospitals", images, sites=sites, pieces=4)
    shutil.copy(place.root / "hospitals" / "mask.nii.gz", place.root / "mask.nii.gz")
    _write_study(place.files.study, _template("real.yaml"))
    return load_study(place.files.study)


def _join(place: DemoFolders, name: str, centre: bytes) -> JoinRequest:
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
