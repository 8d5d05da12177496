"""Networks of real persons: half of every hospital is the consortium, the other half the truth.

``python -m benchmarks.networks halves FOLDER`` reads FOLDER/rois_cc200/*.1D and, for the regions'
places, FOLDER/CC200.nii.gz (see `benchmarks.real_networks`). Hospitals are the files' prefixes,
without a, b, c or d of one hospital's samples.
The truth are the maps of the other halves' pooled data, separated in the same way without noise.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from nibabel.affines import apply_affine
from numpy.typing import NDArray
from scipy.linalg import eigh

from benchmarks.network_pool import answer, cosines, matched
from benchmarks.network_smooth import KEPT, is_found, region_plan
from benchmarks.timing import show
from consortium.algorithms.base import Array
from consortium.study.plan import Plan

EPSILONS, SPLITS = (1.0, 2.0, 4.0, 8.0), 5


def halves(folder: Path) -> None:
    """Both separations: agreement, what is found, and what is said of it."""
    directions, hospitals = _people(folder)
    centres, rows = _centres(folder), []
    for epsilon in EPSILONS:
        for separation in ("varimax", "fastica"):
            told = [
                _split(directions, hospitals, centres, epsilon, separation, seed)
                for seed in range(SPLITS)
            ]
            agreed, found, expected, true, within = np.nanmean(told, axis=0)
            figures = [f"{agreed:.2f}", f"{found:.1f}", f"{expected:.2f}", f"{true:.2f}"]
            rows.append([f"{epsilon:g}", separation, *figures, f"{within:.2f}"])
    show(
        f"Halves of real hospitals: agreement with the other halves' pool, {SPLITS} splits",
        ["ε", "separation", "mean of 20", "found", "expected", "true", "in its range"],
        rows,
    )


def _people(folder: Path) -> tuple[Array, Array]:
    """Leading directions (n x d x K) and hospitals (n)."""
    found, hospitals = [], []
    for path in sorted((folder / "rois_cc200").glob("*.1D")):
        series = np.loadtxt(path).T
        series = series - series.mean(axis=1, keepdims=True)
        series = series / np.maximum(series.std(axis=1, keepdims=True), 1e-9)
        size = len(series)
        _, vectors = eigh(series @ series.T, subset_by_index=(size - KEPT, size - 1))
        found.append(vectors)
        hospitals.append(re.sub("_[a-d]$", "", path.name.partition("_00")[0]))
    return np.array(found), np.array(hospitals)


def _centres(folder: Path) -> Array:
    atlas: Any = nibabel.load(folder / "CC200.nii.gz")
    labels = np.asarray(atlas.dataobj).round().astype(np.int64)
    places, own = apply_affine(atlas.affine, np.argwhere(labels > 0)), labels[labels > 0]
    return np.array([places[own == region].mean(axis=0) for region in np.unique(own)])


def _split(
    directions: Array, hospitals: Array, centres: Array, epsilon: float, separation: str, seed: int
) -> tuple[float, ...]:
    first = _halved(hospitals, seed)
    sizes = tuple(int(first[hospitals == name].sum()) for name in np.unique(hospitals))
    made = _plan(sizes, epsilon, centres, separation)
    result = answer(_mean(directions[first]), made, seed)
    maps, found = result.arrays["maps"], is_found(result)
    truth = answer(_mean(directions[~first]), made, None).arrays["maps"]
    agreed = matched(maps, truth).mean()
    if not found.any():
        return float(agreed), 0.0, np.nan, np.nan, np.nan
    told = [each for each in result.images["components"].accuracy if each.state == "found"]
    true = cosines(maps, truth).max(axis=0)[found]
    within = [t.low <= r <= t.high for t, r in zip(told, true, strict=True)]
    expected = float(np.mean([each.value for each in told]))
    return float(agreed), float(found.sum()), expected, float(true.mean()), float(np.mean(within))


def _halved(hospitals: Array, seed: int) -> NDArray[np.bool_]:
    """Who is in the first half of their hospital."""
    generator, first = np.random.default_rng(seed), np.zeros(len(hospitals), dtype=bool)
    for name in np.unique(hospitals):
        order = generator.permutation(np.flatnonzero(hospitals == name))
        first[order[: (len(order) + 1) // 2]] = True
    return first


def _plan(sizes: tuple[int, ...], epsilon: float, centres: Array, separation: str) -> Plan:
    return region_plan(sizes, epsilon, centres, separation=separation)


def _mean(directions: Array) -> Array:
    flat = directions.transpose(1, 0, 2).reshape(directions.shape[1], -1)
    return np.asarray(flat @ flat.T / len(directions))
