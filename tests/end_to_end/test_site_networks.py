"""Each person's own networks, typed by a hospital's people, for this hospital alone."""

import csv
import json
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.simulation.networks import network_maps
from consortium.space.grid import template_grid
from consortium.study.reader import read_study
from consortium.views.table import TableView
from site_agent.data.tsv import read_table
from tests.support.bids_validator import objections
from tests.support.command_line import enter, refused
from tests.support.forgery import settle


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> DemoFolders:
    return settle(tmp_path_factory.mktemp("place") / "town")


@pytest.fixture
def maps(place: DemoFolders, tmp_path: Path) -> Path:
    grid = template_grid(read_study(place.files.study).data.resolution)
    _, found = network_maps(grid.affine, grid.shape, grid.mask, count=2)
    nib.save(grid.image(found), tmp_path / "maps.nii.gz")
    return tmp_path / "maps.nii.gz"


def words(place: DemoFolders, target: Path, *more: object) -> tuple[object, ...]:
    files = place.files
    rest = ("--roster", files.roster, "-f", place.site("east"), *more)
    return ("networks", files.study, target, *rest)


def test_every_person_has_maps_courses_and_connectivity(
    place: DemoFolders, maps: Path, tmp_path: Path
) -> None:
    before = sorted(path.name for path in place.files.exchange.rglob("*"))
    said = enter("site-agent", *words(place, tmp_path / "own", "--templates", maps))
    assert (said.code, said.err) == (0, "")
    assert "Networks of 3 participants" in said.out
    assert sorted(path.name for path in place.files.exchange.rglob("*")) == before
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o700
    people = sorted((tmp_path / "own").glob("sub-*"))
    assert len(people) == 3
    grid = template_grid(read_study(place.files.study).data.resolution)
    for person in people:
        (image,) = person.glob("func/*_components.nii.gz")
        found = np.asarray(nib.load(image).dataobj)[grid.mask]
        assert np.sqrt(np.mean(np.square(found), axis=0)) == pytest.approx([1, 1], rel=1e-4)
        (about,) = person.glob("func/*_components.json")
        assert json.loads(about.read_text())["Networks"] == ["network1", "network2"]
        courses, matrix = (
            list(csv.reader(next(person.glob(f"func/*_{end}.tsv")).open(), delimiter="\t"))
            for end in ("timeseries", "relmat")
        )
        assert (courses[0], len(courses)) == (["network1", "network2"], 25)
        told = np.array(matrix[1:], dtype=float)
        assert told == pytest.approx(np.corrcoef(np.array(courses[1:], dtype=float).T), abs=1e-4)
    assert objections(tmp_path / "own", "TOO_FEW_AUTHORS") == []


def test_what_is_written_can_be_a_studys_table(
    place: DemoFolders, maps: Path, tmp_path: Path
) -> None:
    own = tmp_path / "derivatives" / "networks"
    assert enter("site-agent", *words(place, own, "--templates", maps)).code == 0
    first = next(own.glob("sub-*/func/*_relmat.tsv")).relative_to(tmp_path)
    person = first.parts[2]
    view = {"name": "edges", "source": "table", "file": str(first).replace(person, "sub-*")}
    named = {"columns": {"*-*": {"low": -1, "high": 1}}, "regions": ["network[1-2]"]}
    matrices, lacking = read_table(tmp_path, TableView.model_validate(view | named))
    view["file"] = view["file"].replace("_relmat", "_timeseries")
    courses, _ = read_table(tmp_path, TableView.model_validate(view | named))
    assert (len(matrices), lacking) == (3, {})
    for label, vector in matrices.items():
        assert vector == pytest.approx(courses[label], abs=1e-4)
        assert abs(vector[0]) < 1


def test_what_is_not_fit_is_one_sentence(place: DemoFolders, maps: Path, tmp_path: Path) -> None:
    said = refused("site-agent", *words(place, tmp_path / "own"))
    assert "names no templates" in said
    given = ("--templates", maps)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("somebody's")
    assert "is not empty" in refused("site-agent", *words(place, tmp_path / "full", *given))
    inside = place.files.exchange / "own"
    assert "is on the exchange" in refused("site-agent", *words(place, inside, *given))
    grid = template_grid(read_study(place.files.study).data.resolution)
    twice = np.repeat(np.asarray(nib.load(maps).dataobj)[grid.mask][:, :1], 2, axis=1)
    nib.save(grid.image(twice), tmp_path / "twice.nii.gz")
    given = ("--templates", tmp_path / "twice.nii.gz")
    assert "depend on each other" in refused("site-agent", *words(place, tmp_path / "own", *given))
    assert not (tmp_path / "own").exists()
    assert not inside.exists()
