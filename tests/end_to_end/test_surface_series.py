"""Four agents, with series on the cortex in files of CIFTI and of GIFTI, find networks together."""

import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import nibabel as nib
import numpy as np
import pytest
import yaml

from consortium.coordinator.demo.layout import DemoFolders
from consortium.simulation.dataset import start_dataset
from consortium.space.mesh import Mesh
from consortium.space.study_space import study_space
from consortium.study.reader import load_study
from tests.support.finished_run import carry_out
from tests.support.local_consortium import SITES, LocalConsortium, build
from tests.support.surfaces import (
    below_cortex,
    sphere,
    write_dtseries,
    write_func_pair,
    write_sphere,
    write_values,
)

pytestmark = pytest.mark.slow
MESH, SCALE, PATCH = "fsLR-32k", 5.0, 31_300
"""A sphere so large that a patch of its vertices is as large as a cortex."""
VOLUMES, NETWORKS, SPOT, PERSONS = 30, 4, 30.0, 10
STUDY: dict[str, Any] = {
    "study": "rest",
    "title": "Networks on the cortex",
    "sites": list(SITES),
    "data": {
        "mesh": MESH,
        "surfaces": ["L.surf.gii", "R.surf.gii"],
        "cortex": ["L.wall.gii", "R.wall.gii"],
        "confounds": ["drift"],
        "high_pass": 0.01,
    },
    "privacy": {"epsilon": 90, "delta": 1e-5, "colluding_sites": 1},
    "timing": {"join": 4, "answer": 4, "late": 1},
}
ANALYSES: dict[str, dict[str, Any]] = {
    "group_ica": {"components": NETWORKS, "replays": 20, "anyway": True},
    "pca": {"components": NETWORKS, "solver": "subspace"},
    "template_networks": {"templates": "maps.dscalar.nii", "anyway": True},
}


def write_public(folder: Path) -> None:
    """The study's surfaces and walls."""
    vertices = len(sphere(32_492)[0])
    for side in "LR":
        write_sphere(folder / f"{side}.surf.gii", MESH, SCALE)
        write_values(folder / f"{side}.wall.gii", np.arange(vertices) >= PATCH)


def truth(mesh: Mesh) -> np.ndarray:
    """Maps of networks, each with a spot on either side: D x K."""
    places = np.split(mesh.coordinates, [mesh.left.features])
    maps = []
    for k in range(NETWORKS):
        spots = [own[(k + 1) * len(own) // (NETWORKS + 1)] for own in places]
        away = [np.square(own - spot).sum(axis=1) for own, spot in zip(places, spots, strict=True)]
        maps.append(np.exp(-np.concatenate(away) / 2 / SPOT**2))
    return np.array(maps).T


def series(mesh: Mesh, generator: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
    """A person's values at all vertices of each side (T x N), and a drift in all of them."""
    drift = np.cumsum(generator.standard_normal(VOLUMES))
    courses = generator.standard_normal((VOLUMES, NETWORKS))
    values = courses @ truth(mesh).T + 0.3 * generator.standard_normal((VOLUMES, mesh.features))
    values += 100.0 + 3.0 * drift[:, None]
    sides = []
    for side, own in mesh.split(values.T):
        whole = np.zeros((len(side.cortex), VOLUMES), dtype=np.float32)
        whole[side.cortex] = own
        sides.append(whole.T)
    return sides, drift


def make_scans(folder: Path, persons: int) -> None:
    """Write each hospital's data as fMRIPrep names them, and the study's public files."""
    public = DemoFolders(folder.parent).files.study.parent
    write_public(public)
    mesh = study_space(load_study(DemoFolders(folder.parent).files.study), public).mesh
    assert mesh is not None
    walls = [side.cortex for side in mesh.sides]
    for number, site in enumerate(SITES):
        generator = np.random.default_rng((34, number))
        labels = [f"{n:02d}" for n in range(persons)]
        start_dataset(folder / site / "bids", "made-up persons", labels)
        for label in labels:
            func, stem = folder / site / "bids" / f"sub-{label}" / "func", f"sub-{label}_task-rest"
            sides, drift = series(mesh, generator)
            if site == "east":
                write_func_pair(func, stem, "fsLR_den-32k", sides)
                about = func / f"{stem}_hemi-L_space-fsLR_den-32k_bold.json"
                about.write_text(json.dumps({"RepetitionTime": 2.0}))
            else:
                more = [below_cortex()] if site == "north" else []
                name = f"{stem}_space-fsLR_den-91k_bold.dtseries.nii"
                write_dtseries(func / name, sides, walls, *more)
            table = func / f"{stem}_desc-confounds_timeseries.tsv"
            table.write_text("\n".join(["drift", *map(str, drift)]) + "\n")


@cache
def place(algorithm: str) -> DemoFolders:
    """A consortium whose run is finished."""
    text = yaml.safe_dump(STUDY | {"algorithm": algorithm, "analysis": ANALYSES[algorithm]})
    found = Path(mkdtemp()) / "town"
    if algorithm == "template_networks":
        public = DemoFolders(found).files.study.parent
        public.mkdir(parents=True)
        (public / "maps.dscalar.nii").write_bytes(dense("group_ica", "components").read_bytes())
    made = build(found, text=text, subjects=PERSONS, make=make_scans, most=100.0)
    carry_out(LocalConsortium(made))
    return made


def mesh_of(algorithm: str) -> Mesh:
    files = place(algorithm).files
    mesh = study_space(load_study(files.study), files.study.parent).mesh
    assert mesh is not None
    return mesh


def dense(algorithm: str, suffix: str) -> Path:
    (path,) = place(algorithm).files.out.glob(f"tpl-fsLR/func/*_desc-*_{suffix}.dscalar.nii")
    return path


def likeness(path: Path, mesh: Mesh) -> np.ndarray:
    """Correlation of each true network with the map most like it."""
    maps = nib.load(path).get_fdata()
    table = np.abs(np.corrcoef(truth(mesh).T, maps)[:NETWORKS, NETWORKS:])
    return np.asarray(table.max(axis=1))


@pytest.mark.parametrize("algorithm", list(ANALYSES))
def test_maps_of_all_hospitals_show_the_networks(algorithm: str) -> None:
    mesh, path = mesh_of(algorithm), None
    if algorithm == "pca":
        path = dense(algorithm, "components")
        maps = nib.load(path).get_fdata()
        found = np.linalg.lstsq(maps.T, truth(mesh), rcond=None)[0]
        assert np.corrcoef((maps.T @ found).T, truth(mesh).T)[:4, 4:].diagonal().min() > 0.8
    else:
        path = next(p for p in [dense_all(algorithm)["components"]])
        assert likeness(path, mesh).min() > 0.8
    assert path.name.startswith("tpl-fsLR_task-rest_den-32k_desc-")


def dense_all(algorithm: str) -> dict[str, Path]:
    paths = place(algorithm).files.out.glob("tpl-fsLR/func/*.dscalar.nii")
    return {p.name.rsplit("_", 1)[1].removesuffix(".dscalar.nii"): p for p in paths}
