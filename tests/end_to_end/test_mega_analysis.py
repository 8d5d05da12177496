"""A mega-analysis as hospitals have it: their own files, their own agents, one page in the end."""

import csv
import re
from pathlib import Path

import nibabel
import numpy as np
import pytest
import yaml
from scipy.ndimage import gaussian_filter

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.simulation.dataset import start_derivatives
from consortium.space.study_space import study_space
from consortium.study.reader import parse_study
from tests.support.finished_run import carry_out
from tests.support.local_consortium import SITES, LocalConsortium, build, limit

SIZES = dict(zip(SITES, (260, 170, 120, 90), strict=True))
PARTS = dict(zip(SITES, (0.6, 0.45, 0.3, 0.5), strict=True))
OFFSET = 0.6
"""Of scanners, in standard deviations within groups."""
PRIVACY = {"epsilon": 8.0, "delta": 1e-5, "colluding_sites": 1}
PERSON = {
    "name": "person",
    "source": "table",
    "columns": {
        "diagnosis": {"levels": ["control", "patient"]},
        "age": {"low": 18, "high": 90},
    },
}

LOBES = {
    "frontal": ("superiorfrontal", "caudalmiddlefrontal", "rostralmiddlefrontal", "frontalpole"),
    "temporal": ("superiortemporal", "middletemporal", "inferiortemporal", "temporalpole"),
    "parietal": ("superiorparietal", "inferiorparietal", "precuneus", "supramarginal"),
    "occipital": ("cuneus", "lingual", "pericalcarine", "lateraloccipital"),
}
REGIONS = [region for lobe in LOBES.values() for region in lobe]
THINNER = {"superiorfrontal", "middletemporal", "precuneus"}
THICKNESS, DEVIATION = 2.5, 0.2


def groups_of(site: str) -> list[int]:
    """Controls and patients."""
    patients = round(SIZES[site] * PARTS[site])
    return [SIZES[site] - patients, patients]


def people_of(
    folder: Path, site: str, generator: np.random.Generator
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Start a data set; returns labels, who is a patient, and ages."""
    labels = [f"{number:03d}" for number in range(SIZES[site])]
    patient = generator.permutation(np.repeat([0, 1], groups_of(site)))
    age = generator.normal(45, 12, SIZES[site]).clip(18, 90)
    columns = {
        "diagnosis": [("control", "patient")[one] for one in patient],
        "age": [f"{years:.1f}" for years in age],
    }
    start_derivatives(folder, "made-up persons", labels, columns)
    return labels, patient, age


def make_stats(folder: Path, subjects: int) -> None:
    """FreeSurfer's stats files of every person; age thins the cortex, and scanners differ."""
    del subjects
    for number, site in enumerate(SITES):
        generator = np.random.default_rng((7, number))
        labels, patient, age = people_of(folder / site / "bids", site, generator)
        scanner = OFFSET * generator.standard_normal(len(REGIONS))
        shared = generator.standard_normal(len(labels))
        for one, label in enumerate(labels):
            own = generator.standard_normal(len(REGIONS))
            u = scanner + 0.5 * shared[one] + np.sqrt(0.75) * own - 0.02 * (age[one] - 45)
            u -= 0.7 * patient[one] * np.isin(REGIONS, sorted(THINNER))
            lines = ["# ColHeaders StructName NumVert SurfArea GrayVol ThickAvg"]
            values = THICKNESS + DEVIATION * u
            lines += [f"{r} 1000 700 2000 {v:.3f}" for r, v in zip(REGIONS, values, strict=True)]
            stats = folder / site / "bids" / "freesurfer" / f"sub-{label}" / "stats"
            stats.mkdir(parents=True)
            text = "\n".join(lines) + "\n"
            (stats / "lh.aparc.stats").write_text(text, encoding="utf-8")


REGIONAL = {
    "study": "thickness",
    "title": "Where the cortex of patients is thinner",
    "sites": list(SITES),
    "participants": SIZES,
    "features": [
        {
            "name": "cortex",
            "source": "table",
            "file": "freesurfer/sub-*/stats/lh.aparc.stats",
            "columns": {f"{region}_ThickAvg": {"low": 1.0, "high": 4.5} for region in REGIONS},
        },
        PERSON,
    ],
    "privacy": PRIVACY,
    "algorithm": "glm",
    "analysis": {
        "outcomes": "cortex",
        "formula": "diagnosis + age",
        "contrasts": {"patients": "diagnosis"},
        "shares": PARTS,
        "averages": {n: [f"{r}_ThickAvg" for r in regions] for n, regions in LOBES.items()},
        "norms": {"location": THICKNESS, "deviation": 1.2 * DEVIATION},
        "covariates": {"age": {"mean": 45, "deviation": 12}},
    },
    "timing": {"join": 4, "answer": 4},
}
IMAGES = {
    "study": "faces",
    "title": "Where patients respond more to faces",
    "sites": list(SITES),
    "participants": SIZES,
    "data": {"resolution": 30},
    "features": [
        {
            "name": "faces",
            "source": "fmri",
            "measure": "image",
            "image": "desc-faces_statmap",
            "center": False,
            "normalize": False,
        },
        PERSON,
    ],
    "privacy": PRIVACY,
    "algorithm": "glm",
    "analysis": {
        "outcomes": "faces",
        "formula": "diagnosis + age",
        "contrasts": {"patients": "diagnosis"},
        "groups": {site: groups_of(site) for site in SITES},
        "norms": {"deviation": 1.2, "correlation": 0.25},
        "covariates": {"age": {"mean": 45, "deviation": 12}},
    },
    "timing": {"join": 4, "answer": 4},
}


def save_contrast(home: Path, label: str, grid, values: np.ndarray) -> None:
    """A person's contrast image, where a site looks for it."""
    stem = f"sub-{label}_task-faces_space-MNI152NLin2009cAsym_desc-faces_statmap"
    path = home / f"sub-{label}" / "func" / f"{stem}.nii.gz"
    path.parent.mkdir(parents=True)
    nibabel.save(grid.image(values.astype(np.float32)), path)


def make_contrasts(folder: Path, subjects: int) -> None:
    """A contrast image of every person; patients' is higher where x is above 20 mm."""
    del subjects
    grid = study_space(parse_study(yaml.safe_dump(IMAGES)), folder).grid
    where = responding(grid)
    for number, site in enumerate(SITES):
        generator = np.random.default_rng((8, number))
        home = folder / site / "bids"
        labels, patient, _ = people_of(home, site, generator)
        scanner = OFFSET * generator.standard_normal(len(where))
        for one, label in enumerate(labels):
            shared = 0.5 * generator.standard_normal()
            values = scanner + shared + np.sqrt(0.75) * generator.standard_normal(len(where))
            values += 0.8 * patient[one] * where
            save_contrast(home, label, grid, values)


SMOOTHNESS = 30.0
"""Of the persons' images in mm."""
SMOOTH = {
    **IMAGES,
    "study": "smooth-faces",
    "data": {"resolution": 12},
    "analysis": {**IMAGES["analysis"], "basis": "smooth", "smoothness": SMOOTHNESS},
}


def smoothed(grid, generator: np.random.Generator, count: int) -> np.ndarray:
    """Smooth Gaussian fields of variance one over the voxels, one a row."""
    sigma = SMOOTHNESS / np.sqrt(8 * np.log(2)) / grid.edge
    whole = generator.standard_normal((count, *grid.shape))
    inside = gaussian_filter(whole, (0, sigma, sigma, sigma), mode="wrap")[:, grid.mask]
    return inside / inside.std()


def make_smooth_contrasts(folder: Path, subjects: int) -> None:
    """As `make_contrasts`, with smooth images and a difference around one place."""
    del subjects
    grid = study_space(parse_study(yaml.safe_dump(SMOOTH)), folder).grid
    where = blob(grid)
    for number, site in enumerate(SITES):
        generator = np.random.default_rng((9, number))
        home = folder / site / "bids"
        labels, patient, _ = people_of(home, site, generator)
        scanner = OFFSET * smoothed(grid, generator, 1)
        values = scanner + smoothed(grid, generator, len(labels)) + np.outer(0.8 * patient, where)
        for label, own in zip(labels, values, strict=True):
            save_contrast(home, label, grid, own)


def blob(grid) -> np.ndarray:
    """One at 36, -24, 12 mm, and half of it 20 mm away."""
    squared = np.square(grid.coordinates - (36, -24, 12)).sum(axis=1)
    return np.exp(-squared * np.log(2) / 20**2)


def responding(grid) -> np.ndarray:
    places = np.argwhere(grid.mask) @ grid.affine[:3, :3].T + grid.affine[:3, 3]
    return places[:, 0] > 20


def finished(root: Path, study: dict, make) -> tuple[DemoFolders, Path]:
    place = build(root, text=yaml.safe_dump(study, sort_keys=False), make=make)
    for name in SITES:
        limit(place, name, 20.0)
    return place, carry_out(LocalConsortium(place))


def rows_of(out: Path, end: str) -> list[dict[str, str]]:
    (path,) = (out / "tables").glob(f"*{end}_results.tsv")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_stats_files_of_four_hospitals_become_a_page_and_their_groups_are_counted(tmp_path):
    _, out = finished(tmp_path / "place", REGIONAL, make_stats)
    rows = rows_of(out, "contrastpatients")
    found = {row["entry"].removesuffix("_ThickAvg") for row in rows if row["found"] == "yes"}
    assert found >= THINNER
    assert len(found - THINNER) <= 1
    each = {row["entry"].removesuffix("_ThickAvg"): row for row in rows}
    for region in THINNER:
        assert float(each[region]["low"]) <= -0.7 / 1.2 <= float(each[region]["high"])
    assert {row["group"] for row in rows_of(out, "averagespatients")} == set(LOBES)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("outcomes differ") == 1
    assert "frontal (superiorfrontal_ThickAvg, caudalmiddlefrontal_ThickAvg" in page
    assert "Difference of &#39;patient&#39; from &#39;control&#39;" in page
    assert "released with noise of about" in page


def test_contrast_images_of_four_hospitals_become_maps_by_the_names_that_nilearn_gives(tmp_path):
    place, out = finished(tmp_path / "place", IMAGES, make_contrasts)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "is released with noise of about" in page
    assert "robust z" not in page  # the maps that are drawn are of t
    grid = study_space(parse_study(place.files.study.read_text()), place.root).grid
    where = responding(grid)
    maps = {}
    for stat in ("effect", "variance", "t", "z", "p", "q"):
        (path,) = out.rglob(f"*_contrast-patients_stat-{stat}_*statmap.nii.gz")
        maps[stat] = nibabel.load(path).get_fdata()[grid.mask]
    assert np.mean((maps["q"] < 0.05) == where) > 0.8
    assert maps["effect"][where].mean() > 0.4
    assert maps["t"] == pytest.approx(maps["effect"] / np.sqrt(maps["variance"]), rel=1e-3)


def test_smooth_images_of_four_hospitals_become_maps_of_fewer_numbers(tmp_path):
    place, out = finished(tmp_path / "place", SMOOTH, make_smooth_contrasts)
    page = (out / "report.html").read_text(encoding="utf-8")
    told = re.search(r"The maps are computed from (\d+) numbers: details finer than", page)
    assert told
    grid = study_space(parse_study(place.files.study.read_text()), place.root).grid
    assert int(told[1]) < grid.features / 4
    assert f"voxels, in maps computed from {told[1]} numbers, differ by &#39;patients&#39;" in page
    assert "interpolated linearly at the study&#39;s voxels without smoothing" in page
    assert not list(out.rglob("*_task-rest_*"))
    maps = {}
    for stat in ("effect", "variance", "q"):
        (path,) = out.rglob(f"*_contrast-patients_stat-{stat}_*statmap.nii.gz")
        maps[stat] = nibabel.load(path).get_fdata()[grid.mask]
    truth = blob(grid)
    assert np.corrcoef(maps["effect"], truth)[0, 1] > 0.6
    assert np.mean(maps["q"][truth > 0.6] < 0.05) > 0.8
    assert np.mean(maps["q"][truth < 0.05] < 0.05) < 0.05
    away = np.abs(maps["effect"] - 0.8 * truth / 1.2) / np.sqrt(maps["variance"])
    assert np.mean(away < 1.96) > 0.85
    top = grid.coordinates[np.argmax(maps["effect"])]
    assert np.linalg.norm(top - (36, -24, 12)) < 25
