"""Two results side by side."""

import csv

import numpy as np
import pytest

from consortium.algorithms.base import Result, Table
from consortium.errors import DataError, OutputError
from consortium.report.comparison import differences, match_components, read_outcome
from consortium.report.comparison_page import write_comparison
from consortium.report.outputs import write_outputs
from consortium.space.grid import template_grid
from consortium.space.mesh import read_mesh
from consortium.space.study_space import Space, ViewSpace
from consortium.views.meshes import MeshFiles
from tests.support.html_page import Page
from tests.support.report_samples import blob, box_grid, finished, finished_maps, sample_study
from tests.support.surfaces import write_wall

PLACES = ((0.0, -52.0, 28.0), (-8.0, -88.0, 0.0), (40.0, 20.0, 30.0))
HOSTILE = "<img src=x onerror=alert(1)>"


def components(folder, name, edge, order, signs, seed):
    grid = template_grid(edge)
    noise = np.random.default_rng(seed).standard_normal((grid.features, len(order)))
    maps = np.stack(
        [s * (30 - 4 * k) * blob(grid, PLACES[k], 16.0) for k, s in zip(order, signs, strict=True)],
        axis=1,
    )
    write_outputs(folder, finished_maps(sample_study(study=name), grid, maps + noise), pages=False)
    return folder


def effects(folder, name, rows, epsilon=4.0, contrast="group"):
    study = sample_study(study=name)
    privacy = study.privacy.model_copy(update={"epsilon": epsilon})
    table = Table("Effects.", ("view", "entry", "effect", "error"), rows)
    result = Result({}, tables={f"contrast-{contrast}": table})
    run = finished(study.model_copy(update={"privacy": privacy}), Space(box_grid()), result)
    write_outputs(folder, run, pages=False)
    return folder


def test_components_are_matched_across_orders_signs_and_grids(tmp_path):
    one = read_outcome(components(tmp_path / "one", "first", 10.0, (0, 1, 2), (1, 1, -1), 0))
    other = read_outcome(components(tmp_path / "two", "second", 12.0, (2, 0, 1), (1, -1, 1), 1))
    matching = match_components(one, other)
    pairs = list(matching.pairs)
    assert matching.correlations.shape == (3, 3)
    assert matching.first == matching.second == (1, 2, 3)
    # In each run the one with most variance comes first, so that the same are matched.
    assert {(pair.first, pair.second) for pair in pairs} == {(1, 1), (2, 2), (3, 3)}
    assert all(pair.correlation > 0.6 for pair in pairs)
    assert pairs == sorted(pairs, key=lambda pair: -pair.correlation)
    assert matching.names[0] == {
        1: "precuneus",
        2: "posterior occipital",
        3: "dorsal frontal cortex",
    }
    # Each run keeps the names in its own report, as peaks differ between grids.
    assert matching.names[1] == dict(enumerate(other.about["Names"], start=1))
    assert matching.names[1][2] == "posterior occipital"


def on_mesh(folder, order, cortex=None):
    files = MeshFiles("fsaverage5", None, cortex)
    mesh = read_mesh(files, folder.parent)
    spots = mesh.coordinates[[100, 5000, 9000]]
    away = np.square(mesh.coordinates[:, None] - spots).sum(axis=2)
    maps = (30 - 4 * np.arange(3)) * np.exp(-away / 400) + 0.1 * np.sin(away)
    write_outputs(folder, finished_maps(sample_study(), mesh, maps[:, order]), pages=False)
    return read_outcome(folder)


def test_components_on_a_mesh_are_matched_at_its_vertices(tmp_path):
    matching = match_components(on_mesh(tmp_path / "a", [0, 1, 2]), on_mesh(tmp_path / "b", [1, 2]))
    assert matching.correlations.shape == (3, 2)
    assert {(pair.first, pair.second) for pair in matching.pairs} == {(2, 1), (3, 2)}
    assert all(pair.correlation == pytest.approx(1, abs=1e-6) for pair in matching.pairs)


def test_other_meshes_and_voxels_are_not_compared(tmp_path):
    walls = [write_wall(tmp_path / f"{side}.wall.gii", "fsaverage5").name for side in "LR"]
    one, other = on_mesh(tmp_path / "a", [0]), on_mesh(tmp_path / "b", [0], tuple(walls))
    with pytest.raises(DataError, match=r"have other medial walls. Compare two runs on one mesh"):
        match_components(one, other)
    voxels = read_outcome(components(tmp_path / "v", "third", 14.0, (0,), (1,), 2))
    for pair in ((one, voxels), (voxels, one)):
        with pytest.raises(DataError, match="one has vertices of a mesh and the other voxels"):
            match_components(*pair)


def test_differences_have_the_errors_of_both(tmp_path):
    one = effects(tmp_path / "one", "first", (("net", "1", 0.5, 0.3), ("net", "2", 0.1, 0.3)))
    other = effects(tmp_path / "two", "second", (("net", "1", 0.1, 0.4), ("net", "9", 1.0, 0.1)))
    (found,) = differences(read_outcome(one), read_outcome(other))
    assert (found.contrast, found.view, found.entry) == ("group", "net", "1")
    assert found.value == pytest.approx(-0.4)
    assert found.error == pytest.approx(0.5)
    assert found.z == pytest.approx(-0.8)


def test_the_page_tells_both_plans_and_escapes_what_files_say(tmp_path):
    one = effects(tmp_path / "one", "first", (("net", HOSTILE, 0.5, 0.3),))
    other = effects(tmp_path / "two", "second", (("net", HOSTILE, 0.1, 0.4),), epsilon=2.0)
    path, _ = write_comparison(tmp_path / "out", read_outcome(one), read_outcome(other))
    page = Page(path.read_text(encoding="utf-8"))
    assert HOSTILE in page.text
    assert not {"img", "script"} & set(page.tags)
    rows = [row.split() for row in page.text.split("\n") if "promised against" in row]
    assert any("4" in row[-1] and "2" in row[-1] for row in rows), rows


def test_runs_with_nothing_in_common_are_called_so(tmp_path):
    one = effects(tmp_path / "one", "first", (("net", "1", 0.5, 0.3),))
    other = components(tmp_path / "two", "second", 14.0, (0,), (1,), 2)
    path, _ = write_comparison(tmp_path / "out", read_outcome(one), read_outcome(other))
    assert "no maps and no effects in common" in path.read_text(encoding="utf-8")


def test_contrasts_of_other_names_are_said_to_be_the_reason(tmp_path):
    rows = (("net", "1", 0.5, 0.3),)
    one, other, elsewhere = (
        read_outcome(effects(tmp_path / name, name, which, contrast=contrast))
        for name, which, contrast in (
            ("one", rows, "patients"),
            ("two", rows, "ill"),
            ("three", (("net", "2", 0.5, 0.3),), "ill"),
        )
    )
    path, (told,) = write_comparison(tmp_path / "out", one, other)
    assert "the first run reports 'patients' and the second 'ill'" in told
    assert "one name in both studies" in told
    assert "one name in both studies" in path.read_text(encoding="utf-8")
    _, (told,) = write_comparison(tmp_path / "out", other, elsewhere)
    assert "Both runs report 'ill', but no outcome has the same view and entry" in told


def test_a_damaged_table_is_an_output_error(tmp_path):
    folder = effects(tmp_path / "one", "first", (("net", "1", 0.5, 0.3),))
    (path,) = (folder / "tables").glob("*contrast*.tsv")
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter="\t").writerows(
            [["view", "entry", "effect", "error"], [1, 2, "x", 3]]
        )
    with pytest.raises(OutputError, match="damaged"):
        read_outcome(folder)


def test_a_folder_without_a_result_is_an_output_error(tmp_path):
    with pytest.raises(OutputError):
        read_outcome(tmp_path)


def test_runs_without_component_maps_name_their_analysis(tmp_path):
    view = {"name": "who", "source": "table", "columns": {"age": {"low": 0, "high": 9}}}
    for name in ("one", "two"):
        study = sample_study(study=name, features=[view])
        space = Space(box_grid(), views=(ViewSpace(study.features[0], 1),))
        told = Result({"mean": np.ones((1, 1))}, loadings="mean")
        write_outputs(tmp_path / name, finished(study, space, told), pages=False)
    one, two = (read_outcome(tmp_path / name) for name in ("one", "two"))
    path, _ = write_comparison(tmp_path, one, two)
    cells = Page(path.read_text(encoding="utf-8")).text
    assert "Analysisaverageaverage" in "".join(cells.split())
