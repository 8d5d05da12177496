"""Thickness maps of four hospitals, each with files of its own kind, become one map."""

from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest
import yaml

from consortium.simulation.dataset import start_derivatives
from consortium.space.study_space import study_space
from consortium.study.reader import read_study
from tests.support.command_line import enter
from tests.support.html_page import Page
from tests.support.surfaces import sphere, write_cifti, write_sphere, write_values

MESH, SCALE, PATCH = "fsLR-32k", 5.0, 31_300
"""A sphere so large that a patch of its vertices is as large as a cortex."""
SIZES = {"north": (130, 120), "east": (90, 80), "south": (60, 60), "west": (50, 50)}
SMOOTHNESS, DEVIATION, THICKNESS = 25.0, 0.25, 2.5
FILES = {
    "north": "sub-{0}_space-fsLR_den-91k_thickness.dscalar.nii",
    "east": "sub-{0}_hemi-{1}_space-fsLR_den-32k_thickness.shape.gii",
    "south": "{2}h.thickness.fsLR.mgh",
    "west": "sub-{0}_thickness.dscalar.nii",
}
STUDY: dict[str, Any] = {
    "study": "thickness",
    "title": "Where patients' cortex is thinner",
    "sites": list(SIZES),
    "participants": {site: sum(sizes) for site, sizes in SIZES.items()},
    "features": [
        {
            "name": "cortex",
            "source": "surface",
            "mesh": MESH,
            "values": "thickness",
            "surfaces": ["L.surf.gii", "R.surf.gii"],
            "cortex": ["L.wall.gii", "R.wall.gii"],
        },
        {
            "name": "person",
            "source": "table",
            "columns": {"diagnosis": {"levels": ["control", "patient"]}},
        },
    ],
    "privacy": {"epsilon": 8.0, "delta": 1e-5, "colluding_sites": 1},
    "algorithm": "glm",
    "analysis": {
        "outcomes": "cortex",
        "formula": "diagnosis",
        "contrasts": {"patients": "diagnosis"},
        "basis": "smooth",
        "smoothness": SMOOTHNESS,
        "groups": {site: list(sizes) for site, sizes in SIZES.items()},
        "norms": {"location": THICKNESS, "deviation": DEVIATION},
    },
}


def write_study(folder: Path) -> Path:
    """The study with its public surfaces and walls."""
    vertices = len(sphere(32_492)[0])
    for side in "LR":
        write_sphere(folder / f"{side}.surf.gii", MESH, SCALE)
        write_values(folder / f"{side}.wall.gii", np.arange(vertices) >= PATCH)
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(STUDY, sort_keys=False))
    return path


def fields(places: Any, generator: np.random.Generator, count: int) -> np.ndarray:
    """Smooth fields of variance one along both cortices, one a row."""
    found = []
    for side in places.modes:
        weights, _ = side.heat((SMOOTHNESS / np.sqrt(8 * np.log(2))) ** 2)
        draws = generator.standard_normal((len(weights), count))
        found.append(side.vectors @ (np.sqrt(weights)[:, None] * draws))
    values = np.concatenate(found).T
    return values / values.std()


def write_person(home: Path, name: str, label: str, sides: list[np.ndarray]) -> None:
    """A person's files; the medial wall holds zeros where a file has vertices there."""
    if name.endswith(".dscalar.nii"):
        write_cifti(home / name.format(label), *sides, MESH)
        return
    for side, values in zip("LR", sides, strict=True):
        write_values(home / name.format(label, side, side.lower()), np.nan_to_num(values))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray, Any]:
    """Where the run's output is, the true difference in mm, and the mesh."""
    root = tmp_path_factory.mktemp("place")
    path = write_study(root)
    space = study_space(read_study(path), root)
    places, mesh = space.extent.surface_places["cortex"], space.mesh_of("cortex")
    middle = mesh.coordinates[400]
    away = np.square(mesh.coordinates - middle).sum(axis=1)
    left = np.arange(mesh.features) < mesh.left.features
    truth = -0.9 * DEVIATION * left * np.exp(-away / 2 / 40**2)
    for number, (site, sizes) in enumerate(SIZES.items()):
        generator = np.random.default_rng((34, number))
        group = generator.permutation(np.repeat([0, 1], sizes))
        labels = [f"{n:03d}" for n in range(len(group))]
        levels = [("control", "patient")[one] for one in group]
        start_derivatives(root / site, "made-up persons", labels, {"diagnosis": levels})
        noise = fields(places, generator, len(group)) + 0.6 * fields(places, generator, 1)
        values = THICKNESS + DEVIATION * noise + np.outer(group, truth)
        for label, own in zip(labels, values, strict=True):
            sides = []
            for side, part in mesh.split(own):
                whole = np.full(len(side.cortex), np.nan, dtype=np.float32)
                whole[side.cortex] = part
                sides.append(whole)
            write_person(root / site / f"sub-{label}" / "anat", FILES[site], label, sides)
    folders = [word for site in SIZES for word in ("--data", f"{site}={root / site}")]
    said = enter("consortium", "simulate", path, *folders, "--out", root / "out")
    assert said.code == 0, said
    return root / "out", truth, mesh


def test_one_map_of_all_hospitals_shows_where_patients_are_thinner(finished: Any) -> None:
    out, truth, mesh = finished
    maps = {}
    for stat in ("effect", "variance", "q"):
        (path,) = out.rglob(f"tpl-fsLR_den-32k_contrast-patients_stat-{stat}_*.dscalar.nii")
        maps[stat] = nib.load(path).get_fdata()[0]
        assert len(maps[stat]) == mesh.features
    assert np.corrcoef(maps["effect"], truth)[0, 1] > 0.8
    assert np.mean(maps["q"][truth < -0.6 * DEVIATION] < 0.05) > 0.8
    assert np.mean(maps["q"][truth > -0.02 * DEVIATION] < 0.05) < 0.1
    away = np.abs(maps["effect"] - truth / DEVIATION) / np.sqrt(maps["variance"])
    assert np.mean(away < 1.96) > 0.85


def test_the_files_of_a_hemisphere_hold_the_same_numbers(finished: Any) -> None:
    out, _, mesh = finished
    (dense,) = out.rglob("tpl-fsLR_den-32k_contrast-patients_stat-t_*.dscalar.nii")
    (left,) = out.rglob("tpl-fsLR_hemi-L_den-32k_contrast-patients_stat-t_*.func.gii")
    values = nib.load(dense).get_fdata(dtype=np.float32)[0][: mesh.left.features]
    np.testing.assert_array_equal(nib.load(left).darrays[0].data[PATCH:], values)


def test_the_page_draws_the_map_and_says_what_it_is_made_of(finished: Any) -> None:
    page = Page((finished[0] / "report.html").read_text(encoding="utf-8"))
    (text,) = (each for each in page.values("img", "alt") if "cortices" in each)
    assert text.startswith("Patients, cortex on both cortices of fsLR-32k")
    assert "lowest modes of the cortex's Laplace-Beltrami operator" in page.text
    assert "vertices of the mesh fsLR-32k outside the medial wall" in page.text
    assert "vertices, in maps computed from" in page.text
    assert "voxel" not in page.text
