"""Four agents, with series on the cortex in files of CIFTI and of GIFTI, find networks together."""

import csv
import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import nibabel as nib
import numpy as np
import pytest
import yaml

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.errors import DataError
from consortium.report.bids import label
from consortium.simulation.dataset import start_derivatives
from consortium.space.mesh import Mesh
from consortium.space.open_cohort import FEWEST
from consortium.space.study_space import image_space, study_space
from consortium.space.templates import read_surface_templates
from consortium.study.data_section import DataSection
from consortium.study.reader import read_study
from tests.support.command_line import enter
from tests.support.finished_run import carry_out
from tests.support.html_page import Page
from tests.support.local_consortium import SITES, LocalConsortium, build
from tests.support.surfaces import (
    below_cortex,
    sphere,
    write_dtseries,
    write_func_pair,
    write_sphere,
    write_values,
)

MESH, SCALE, PATCH = "fsLR-32k", 5.0, 31_300
"""A sphere so large that a patch of its vertices is as large as a cortex."""
VOLUMES, NETWORKS, SPOT, PERSONS = 30, 4, 30.0, 6
STUDY: dict[str, Any] = {
    "study": "rest",
    "title": "Networks on the cortex",
    "sites": list(SITES),
    "participants": dict.fromkeys(SITES, 10),
    "volumes": VOLUMES,
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
    mesh = mesh_in(public)
    for number, site in enumerate(SITES):
        make_site(folder / site / "bids", site, mesh, np.random.default_rng((34, number)), persons)


def mesh_in(public: Path) -> Mesh:
    mesh = image_space(DataSection.model_validate(STUDY["data"]), public).mesh
    assert mesh is not None
    return mesh


def make_site(
    folder: Path, site: str, mesh: Mesh, generator: np.random.Generator, persons: int
) -> None:
    """Write the data set of one site."""
    walls = [side.cortex for side in mesh.sides]
    labels = [f"{n:02d}" for n in range(persons)]
    start_derivatives(folder, "made-up persons", labels)
    for person in labels:
        func, stem = folder / f"sub-{person}" / "func", f"sub-{person}_task-rest"
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
    mesh = study_space(read_study(files.study), files.study.parent).mesh
    assert mesh is not None
    return mesh


def dense(algorithm: str, suffix: str) -> Path:
    (path,) = place(algorithm).files.out.glob(f"tpl-fsLR/func/*_desc-*_{suffix}.dscalar.nii")
    return path


@pytest.mark.parametrize("algorithm", ["group_ica", "template_networks"])
def test_maps_of_all_hospitals_show_the_networks(algorithm: str) -> None:
    path = dense(algorithm, "components")
    table = np.corrcoef(truth(mesh_of(algorithm)).T, nib.load(path).get_fdata())
    assert np.abs(table[:NETWORKS, NETWORKS:]).max(axis=1).min() > 0.85
    assert (
        path.name
        == f"tpl-fsLR_task-rest_den-32k_desc-rest{label(algorithm)}_components.dscalar.nii"
    )


def test_directions_of_all_hospitals_hold_the_networks() -> None:
    maps, wanted = nib.load(dense("pca", "components")).get_fdata(), truth(mesh_of("pca"))
    held = maps.T @ np.linalg.lstsq(maps.T, wanted, rcond=None)[0]
    assert np.corrcoef(held.T, wanted.T)[:NETWORKS, NETWORKS:].diagonal().min() > 0.85


@pytest.mark.parametrize("algorithm", list(ANALYSES))
def test_a_pair_of_gifti_holds_what_cifti_holds(algorithm: str) -> None:
    path = dense(algorithm, "components")
    mesh, values = mesh_of(algorithm), nib.load(path).get_fdata(dtype=np.float32)
    for side, rows in mesh.split(values.T):
        name = path.name.replace("_den-", f"_hemi-{side.side}_den-")
        arrays = nib.load(path.with_name(name.replace(".dscalar.nii", ".func.gii"))).darrays
        own = np.stack([each.data for each in arrays], axis=1)
        np.testing.assert_array_equal(own[side.cortex], rows)
        assert np.isnan(own[~side.cortex]).all()


@pytest.mark.parametrize("algorithm", list(ANALYSES))
def test_the_page_draws_cortices_and_speaks_of_vertices(algorithm: str) -> None:
    page = Page((place(algorithm).files.out / "report.html").read_text(encoding="utf-8"))
    assert any("on both cortices of fsLR-32k" in text for text in page.values("img", "alt"))
    assert "on the cortex (mesh fsLR-32k)" in page.text
    assert "without voxels of the files below the cortex" in page.text
    assert "voxel" not in page.text.replace("voxels of the files below the cortex", "")
    assert not (place(algorithm).files.out / "viewer.html").exists()


def test_the_files_on_a_mesh_are_made_again_and_contradict_nothing() -> None:
    said = enter("consortium", "verify", place("template_networks").files.out)
    assert said.code == 2  # single sites' vectors are not shown
    assert "Nothing contradicts" in said.out
    assert "tpl-fsLR" not in said.out


def test_a_hospitals_own_networks_stay_at_home(tmp_path: Path) -> None:
    files, target = place("group_ica").files, tmp_path / "home"
    rest = ("--roster", files.roster, "-f", place("group_ica").site("east"))
    said = enter("site-agent", "posterior", files.out, target, *rest)
    assert (said.code, said.err) == (0, ""), said.err
    assert "<img" in (target / "networks.html").read_text()
    mesh = mesh_of("group_ica")
    for name in ("own", "posterior", "release"):
        (path,) = target.glob(f"tpl-fsLR/func/*_desc-rest{name}_components.dscalar.nii")
        left = path.with_name(path.name.replace("_den-", "_hemi-L_den-"))
        pair = left.with_name(left.name.replace(".dscalar.nii", ".func.gii"))
        for each in (path, pair):
            if name == "release":
                assert read_surface_templates(each, mesh).count >= NETWORKS
                continue
            with pytest.raises(DataError, match="must not leave it"):
                read_surface_templates(each, mesh)
            assert read_surface_templates(each, mesh, at_home=True).count >= NETWORKS


def test_networks_of_single_participants_are_written_at_home(tmp_path: Path) -> None:
    made, target = place("template_networks"), tmp_path / "own"
    files = made.files
    rest = ("--roster", files.roster, "-f", made.site("north"))
    said = enter("site-agent", "networks", files.study, target, *rest)
    assert (said.code, said.err) == (0, ""), said.err
    stem = "sub-03_task-rest_space-fsLR_den-32k_desc-rest_components.dscalar.nii"
    maps = nib.load(target / "sub-03" / "func" / stem).get_fdata()
    assert maps.shape == (NETWORKS, mesh_of("template_networks").features)
    assert (
        target
        / "sub-03"
        / "func"
        / stem.replace("_space", "_hemi-R_space").replace(".dscalar.nii", ".func.gii")
    ).is_file()


def test_an_open_cohort_on_the_cortex_is_made_and_used(tmp_path: Path) -> None:
    def make(folder: Path, persons: int) -> None:
        make_scans(folder, persons)
        study = DemoFolders(folder.parent).files.study
        public = folder.parent / "public"
        make_site(public, "public", mesh_in(study.parent), np.random.default_rng(55), FEWEST)
        said = enter("consortium", "open-cohort", study, public)
        assert said.code == 0, said.err

    analysis = ANALYSES["group_ica"] | {"open": "cohort.npz", "replays": 10}
    text = yaml.safe_dump(STUDY | {"algorithm": "group_ica", "analysis": analysis})
    made = build(tmp_path / "town", text=text, subjects=PERSONS, make=make, most=100.0)
    out = carry_out(LocalConsortium(made))
    (table,) = out.glob("tables/*components_results.tsv")
    with table.open(encoding="utf-8") as file:
        networks = [row["network"] for row in csv.DictReader(file, delimiter="\t")]
    assert networks == ["found in these hospitals"] * NETWORKS
    assert f"{FEWEST} open participants" in (out / "report.html").read_text(encoding="utf-8")
    assert enter("consortium", "verify", out, "--exchange", made.files.exchange).code == 0
