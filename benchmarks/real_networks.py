"""Networks of real participants at rest: strengths and connections, for `benchmarks.real`.

FOLDER contains ``rois_cc200/*.1D`` (a file for each participant, named SITE_0NUMBER_rois_cc200.1D:
a header of region numbers and a line for each volume), ``phenotypes.csv`` (of the Preprocessed
Connectomes Project), ``CC200.nii.gz`` (the regions) and ``rsn10.nii.gz`` (ten published maps on the
same grid).

A network's time series is the mean of the regions' standardized series, weighed by the positive
part of its map; its strength is the time series' standard deviation, and a connection is the
correlation of two time series. A region without signal is left out of its participant's means.
"""

import csv
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from nibabel.affines import apply_affine

from benchmarks.glm_data import Array

NETWORKS = 10
DEFAULT_MODE = "strength_4"  # the fourth of the ten maps
_TINY = 1e-9


def is_networks(folder: Path) -> bool:
    """Return whether a folder contains series of regions."""
    return (folder / "rois_cc200").is_dir()


def read_networks(folder: Path) -> tuple[tuple[str, ...], Array, list[dict[str, str]]]:
    """Return names of the outcomes, outcomes (V x n), and each participant's phenotypes."""
    with (folder / "phenotypes.csv").open(encoding="utf-8") as lines:
        known = {int(row["SUB_ID"]): row for row in csv.DictReader(lines)}
    weights = np.maximum(published_maps(folder), 0.0)
    pairs = np.triu_indices(NETWORKS, 1)
    names = [f"strength_{k + 1}" for k in range(NETWORKS)]
    names += [f"connection_{i + 1}_{j + 1}" for i, j in zip(*pairs, strict=True)]
    found, people = [], []
    for path in sorted((folder / "rois_cc200").glob("*.1D")):
        number = int(path.name.partition("_rois_")[0].rpartition("_")[2])
        series = np.loadtxt(path)
        found.append(_of_person(series, weights, pairs))
        people.append(known[number])
    return tuple(names), np.array(found).T, people


def published_maps(folder: Path) -> Array:
    """Return the mean of each published map over each region: regions x networks."""
    atlas: Any = nibabel.load(folder / "CC200.nii.gz")
    maps: Any = nibabel.load(folder / "rsn10.nii.gz")
    labels = np.asarray(atlas.dataobj).round().astype(np.int64)
    voxels = np.argwhere(labels > 0)
    places = apply_affine(np.linalg.inv(maps.affine), apply_affine(atlas.affine, voxels))
    values = np.asarray(maps.dataobj, dtype=np.float64)[tuple(np.rint(places).astype(int).T)]
    own = labels[tuple(voxels.T)]
    return np.array([values[own == region].mean(axis=0) for region in np.unique(own)])


def _of_person(series: Array, weights: Array, pairs: Any) -> Array:
    """Return strengths and connections of one participant's series (volumes x regions)."""
    deviations = series.std(axis=0)
    standard = (series - series.mean(axis=0)) / np.maximum(deviations, _TINY)
    kept = weights * (deviations > _TINY)[:, None]
    courses = standard @ (kept / kept.sum(axis=0))
    return np.concatenate([courses.std(axis=0), np.corrcoef(courses.T)[pairs]])
