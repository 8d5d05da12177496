"""A hospital's posterior, typed by its people: kept inside, and taken by no study."""

import re
import shutil
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.coordinator.open_cohort import make_open_cohort
from consortium.errors import DataError
from consortium.membership.roster import read_roster
from consortium.membership.signed_study import read_signed
from consortium.report.dataset import BIDS_VERSION
from consortium.simulation.bids import Recipe, make_consortium
from consortium.simulation.signals import SignalLevels
from consortium.space.grid import template_grid
from consortium.space.templates import read_templates
from consortium.study.reader import read_study
from site_agent.page.page import write_site_page
from site_agent.posterior import read_finished
from tests.support.command_line import enter, refused
from tests.support.finished_run import carry_out
from tests.support.local_consortium import SITES, LocalConsortium, build

STUDY = """\
study: small
sites: [north, east, south, west]
participants: {north: 10, east: 10, south: 10, west: 10}
data: {resolution: 16, standardize: subject, minimum_volumes: 10, volumes: 40}
privacy: {epsilon: 90, delta: 1.0e-5, boost: BOOST, colluding_sites: 1, dropouts: DROPOUTS}
algorithm: group_ica
analysis: {components: 5, replays: 10, anyway: true}
timing: {join: 4, answer: 4, late: 1}
"""


def make_scans(folder: Path, subjects: int) -> None:
    recipe = Recipe(
        SITES, subjects, 5, volumes=40, networks=5, resolution=16.0, levels=SignalLevels()
    )
    make_consortium(folder, recipe, workers=1)


@cache
def place() -> DemoFolders:
    """A consortium with a finished run."""
    made = build(Path(mkdtemp()) / "town", text=STUDY, subjects=6, make=make_scans, most=100.0)
    carry_out(LocalConsortium(made))
    return made


def words(target: Path, *more: object, output: Path | None = None) -> tuple[object, ...]:
    files = place().files
    rest = ("--roster", files.roster, "-f", place().site("east"), *more)
    return ("posterior", output or files.out, target, *rest)


@cache
def written() -> tuple[Path, str]:
    target = Path(mkdtemp()) / "home"
    said = enter("site-agent", *words(target))
    assert (said.code, said.err) == (0, ""), said.err
    return target, said.out


def image(name: str) -> Path:
    (found,) = written()[0].glob(f"tpl-*/func/*_desc-small{name}_components.nii.gz")
    return found


def test_the_folder_is_the_hospitals_and_says_why_it_stays() -> None:
    target, said = written()
    assert target.stat().st_mode & 0o777 == 0o700
    readme = (target / "README.md").read_text()
    assert "KEEP THIS FOLDER INSIDE THE HOSPITAL" in readme
    assert str(image("posterior")) in readme
    assert "By the networks found here and by all, this release gives a hospital" in said
    assert "Warning" not in said
    page = (target / "networks.html").read_text()
    assert "must not leave" in page
    assert page.count("<img") >= 2
    assert BIDS_VERSION in (target / "dataset_description.json").read_text()


def test_the_sites_page_says_what_the_release_is_worth() -> None:
    page = write_site_page(place().site("east"), datetime(2026, 11, 25, 12, tzinfo=UTC)).read_text()
    (told,) = re.findall(r"as much information as [\d.]+ more participants of its own would", page)
    files = place().files
    signed = read_signed(files.study, read_roster(files.roster))
    assert told in read_finished(files.out, signed).plan.analysis.worth()


def test_nothing_goes_to_the_exchange() -> None:
    before = sorted(path.name for path in place().files.exchange.rglob("*"))
    written()
    assert sorted(path.name for path in place().files.exchange.rglob("*")) == before


def test_no_study_takes_what_is_exact(tmp_path: Path) -> None:
    grid = template_grid(read_study(place().files.study).data.resolution)
    with pytest.raises(DataError, match="must not leave it"):
        read_templates(image("posterior"), grid)
    assert read_templates(image("release"), grid).count >= 2
    assert read_templates(image("posterior"), grid, at_home=True).count >= 2
    shutil.copyfile(image("posterior"), tmp_path / "maps.nii.gz")
    study = tmp_path / "study.yaml"
    text = STUDY.replace("BOOST", "exact").replace("DROPOUTS", "0").replace("group_ica", "network")
    text = text.replace(
        "network\nanalysis: {components: 5, replays: 10",
        "template_networks\nanalysis: {templates: maps.nii.gz",
    )
    study.write_text(text)
    said = refused("consortium", "plan", study, "--subjects", "6", "--volumes", "40")
    assert "must not leave it" in said


def test_templates_of_a_run_are_refused_if_they_are_exact(tmp_path: Path) -> None:
    said = refused("consortium", "templates", written()[0], tmp_path / "maps.nii.gz")
    assert "must not leave it" in said
    copied = Path(shutil.copytree(place().files.out, tmp_path / "out"))
    (published,) = copied.glob("tpl-*/func/*_components.nii.gz")
    shutil.copyfile(image("posterior"), published)
    said = refused("consortium", "templates", copied, tmp_path / "maps.nii.gz")
    assert "must not leave it" in said
    assert not (tmp_path / "maps.nii.gz").exists()


def test_single_participants_have_maps_by_them(tmp_path: Path) -> None:
    files = place().files
    rest = ("--roster", files.roster, "-f", place().site("east"), "--templates", image("posterior"))
    said = enter("site-agent", "networks", files.study, tmp_path / "own", *rest)
    assert (said.code, said.err) == (0, "")
    assert len(list((tmp_path / "own").glob("sub-*"))) == 6


def test_own_patients_weigh_own_data_no_less(tmp_path: Path) -> None:
    said = enter("site-agent", *words(tmp_path / "own", "--own-patients"))
    assert (said.code, said.err) == (0, "")
    assert "this hospital's own patients" in said.out


def test_what_does_not_fit_is_one_sentence(tmp_path: Path) -> None:
    inside = place().files.exchange / "home"
    assert "is on the exchange" in refused("site-agent", *words(inside))
    published = place().files.out / "home"
    assert "is in the published folder" in refused("site-agent", *words(published))
    said = refused("site-agent", *words(tmp_path / "x", output=tmp_path / "y"))
    assert "is not an output folder" in said
    changed = Path(shutil.copytree(place().files.out, tmp_path / "out"))
    (values, *_) = changed.glob("transcript/*.npy")
    ring = np.load(values)
    ring[0] += 1
    np.save(values, ring)
    said = refused("site-agent", *words(tmp_path / "x", output=changed))
    assert "not those that the centre released" in said
    assert not (tmp_path / "x").exists()


def test_who_came_later_is_told(tmp_path: Path) -> None:
    town = Path(shutil.copytree(place().root, tmp_path / "town"))
    moved = DemoFolders(town)
    site = moved.site("east") / "site.yaml"
    site.write_text(site.read_text().replace(str(place().root), str(town)))
    gone = sorted(moved.dataset("east").glob("sub-*"))[0]
    shutil.rmtree(gone)
    files = moved.files
    rest = ("--roster", files.roster, "-f", moved.site("east"))
    said = refused("site-agent", "posterior", files.out, tmp_path / "home", *rest)
    assert "6 participants of this hospital took part in small-0001, and 5 would now" in said


def make_with_cohort(folder: Path, subjects: int) -> None:
    make_scans(folder, subjects)
    openly = Recipe(("open",), 32, 8, volumes=40, networks=5, resolution=16.0)
    source = make_consortium(folder.parent / "public", openly, workers=1).sites["open"]
    make_open_cohort(DemoFolders(folder.parent).files.study, source)


def test_an_open_cohort_of_the_study_is_a_third_source(tmp_path: Path) -> None:
    text = STUDY.replace("anyway: true", "anyway: true, open: cohort.npz")
    made = build(tmp_path / "town", text=text, subjects=6, make=make_with_cohort, most=100.0)
    carry_out(LocalConsortium(made))
    target = tmp_path / "home"
    rest = ("--roster", made.files.roster, "-f", made.site("east"))
    said = enter("site-agent", "posterior", made.files.out, target, *rest)
    assert (said.code, said.err) == (0, ""), said.err
    told = " ".join(said.out.split())
    (shares,) = re.findall(
        r"own data by ([\d.]+) %, the others' by ([\d.]+) %, and the study's open cohort by "
        r"([\d.]+) %",
        told,
    )
    assert sum(map(float, shares)) == pytest.approx(100.0, abs=1.0)
    assert min(map(float, shares)) > 1.0
    assert "of all three sources together" in told
    (maps,) = target.glob("tpl-*/func/*_desc-smallposterior_components.nii.gz")
    with pytest.raises(DataError, match="must not leave it"):
        read_templates(maps, template_grid(read_study(made.files.study).data.resolution))
