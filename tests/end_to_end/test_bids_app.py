"""Networks of a data set's participants by the command line of BIDS Apps, and what describes it."""

import json
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import typer.main

from consortium import __version__
from consortium.coordinator.demo.prepare import DemoFolders
from consortium.simulation.networks import network_maps
from consortium.space.grid import template_grid
from consortium.study.reader import read_study
from site_agent.cli import app
from tests.support.bids_validator import objections
from tests.support.command_line import enter, refused
from tests.support.forgery import settle

DESCRIPTOR = Path(__file__).parents[2] / "deploy" / "boutiques" / "bids-app.json"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> DemoFolders:
    return settle(tmp_path_factory.mktemp("place") / "town")


@pytest.fixture(scope="module")
def maps(place: DemoFolders) -> Path:
    grid = template_grid(read_study(place.files.study).data.resolution)
    _, found = network_maps(grid.affine, grid.shape, grid.mask, count=2)
    nib.save(grid.image(found), place.root / "maps.nii.gz")
    return place.root / "maps.nii.gz"


def words(place: DemoFolders, target: Path, maps: Path, *labels: object) -> tuple[object, ...]:
    resolution = read_study(place.files.study).data.resolution
    named = ("--participant_label", *labels) if labels else ()
    rest = ("participant", *named, "--templates", maps, "--resolution", resolution)
    return ("bids-app", place.dataset("east"), target, *rest)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_participants_one_by_one_are_what_all_are_together(
    place: DemoFolders, maps: Path, tmp_path: Path
) -> None:
    said = enter("site-agent", *words(place, tmp_path / "all", maps))
    assert (said.code, said.err) == (0, "")
    assert said.out == f"Networks of 3 participants are in {tmp_path / 'all'}.\n"
    assert (tmp_path / "all").stat().st_mode & 0o777 == 0o700
    people = sorted(path.name for path in (tmp_path / "all").glob("sub-*"))
    assert len(people) == 3
    for labels in ([people[0]], [label.removeprefix("sub-") for label in people[1:]]):
        assert enter("site-agent", *words(place, tmp_path / "apart", maps, *labels)).code == 0
    assert contents(tmp_path / "apart") == contents(tmp_path / "all")
    assert objections(tmp_path / "all", "TOO_FEW_AUTHORS") == []
    hidden = (tmp_path / "all" / ".bidsignore").read_text().split()
    (tmp_path / "all" / ".bidsignore").unlink()
    told = "\n".join(objections(tmp_path / "all"))
    for pattern in hidden:  # none without need
        assert f"{pattern.removeprefix('sub-*/func/*').removesuffix('*')}" in told, pattern


def test_it_writes_the_numbers_of_the_sites_own_command(
    place: DemoFolders, maps: Path, tmp_path: Path
) -> None:
    files = place.files
    where = ("--roster", files.roster, "-f", place.site("east"), "--templates", maps)
    assert enter("site-agent", "networks", files.study, tmp_path / "own", *where).code == 0
    assert enter("site-agent", *words(place, tmp_path / "app", maps)).code == 0
    own, other = (sorted((tmp_path / name).rglob("*_components.nii.gz")) for name in ("own", "app"))
    assert len(own) == len(other) == 3
    for one, two in zip(own, other, strict=True):
        assert one.parts[-3] == two.parts[-3]
        assert np.array_equal(nib.load(one).dataobj, nib.load(two).dataobj)


def test_what_is_not_fit_is_one_sentence(place: DemoFolders, maps: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    said = refused("site-agent", *words(place, target, maps, "nobody"))
    assert "has no folder sub-nobody" in said
    said = refused("site-agent", *words(place, target, maps), "--high-pass", 20)
    assert "high_pass" in said
    assert "has no" in refused("site-agent", *words(place, target, maps), "--task", "other")
    assert list(target.iterdir()) == []  # nothing of anybody stays
    target.joinpath("notes.txt").write_text("somebody's")
    assert "is not empty" in refused("site-agent", *words(place, target, maps))
    label = sorted(place.dataset("east").glob("sub-*"))[0].name
    assert enter("site-agent", *words(place, tmp_path / "two", maps, label)).code == 0
    one = nib.load(maps).slicer[..., :1]
    nib.save(one, tmp_path / "one.nii.gz")
    said = refused("site-agent", *words(place, tmp_path / "two", tmp_path / "one.nii.gz"))
    assert "other templates" in said
    assert enter("site-agent", *words(place, target, maps), "07").code == 2
    group = ["group" if word == "participant" else word for word in words(place, target, maps)]
    assert enter("site-agent", *group).code == 2


def test_the_descriptor_is_of_the_command_as_it_is() -> None:
    told = json.loads(DESCRIPTOR.read_text(encoding="utf-8"))
    command = typer.main.get_command(app).commands["bids-app"]  # type: ignore[attr-defined]
    params = {each.name: each for each in command.params if each.name != "more_labels"}
    inputs = {each["id"]: each for each in told["inputs"]}
    assert inputs.keys() == params.keys()
    for name, each in inputs.items():
        param = params[name]
        assert each["optional"] is not param.required, name
        assert ("command-line-flag" in each) == (param.param_type_name == "option"), name
        assert each.get("command-line-flag", name) in (*param.opts, name), name
        assert each.get("default-value") == (None if param.default in ("", None) else param.default)
        assert each["value-key"] in told["command-line"]
    assert told["command-line"].startswith("site-agent bids-app [BIDS_DIR] [OUTPUT_DIR] ")
    assert told["tool-version"] == __version__
