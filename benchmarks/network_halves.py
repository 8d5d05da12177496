"""Networks of real participants: half of every hospital is the consortium, the rest the truth.

``python -m benchmarks.networks halves FOLDER`` reads FOLDER/rois_cc200/*.1D and, for the regions'
places, FOLDER/CC200.nii.gz (see `benchmarks.real_networks`). Hospitals are the files' prefixes,
without a, b, c or d of one hospital's samples. The truth is the 25 maps into which the other
halves' pooled data are separated, without noise. 20 networks are estimated among a quarter more
directions; without noise, chance decides which 20 come first.
"""

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
from consortium.kernels.moments import pack_symmetric, unpack_symmetric
from consortium.kernels.separations import separate_weighted
from consortium.privacy.gdp import mu_of
from consortium.study.plan import Plan

EPSILONS, SPLITS = (1.0, 2.0, 4.0, 8.0), 5


def halves(folder: Path) -> None:
    """Measure the agreement of networks, the number found, and the reported accuracy."""
    directions, hospitals = _people(folder)
    centres, rows = _centres(folder), []
    for epsilon in EPSILONS:
        told = [_split(directions, hospitals, centres, epsilon, seed) for seed in range(SPLITS)]
        agreed, alone, unhidden, found, *rest = np.nanmean(told, axis=0)
        figures = [f"{each:.2f}" for each in (agreed, alone, unhidden)]
        rows.append([f"{epsilon:g}", *figures, f"{found:.1f}", *(f"{each:.2f}" for each in rest)])
    show(
        f"Halves of real hospitals: agreement with the other halves' pool, {SPLITS} splits",
        [
            "ε",
            "mean of 20",
            "largest alone",
            "no noise",
            "found",
            "expected",
            "true",
            "in its range",
        ],
        rows,
    )


def _people(folder: Path) -> tuple[Array, Array]:
    """Return leading directions (n x d x K) and hospitals (n)."""
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
    directions: Array, hospitals: Array, centres: Array, epsilon: float, seed: int
) -> tuple[float, ...]:
    first = _halved(hospitals, seed)
    sizes = tuple(int(first[hospitals == name].sum()) for name in np.unique(hospitals))
    largest = first & (hospitals == np.unique(hospitals)[int(np.argmax(sizes))])
    made = region_plan(sizes, epsilon, centres)
    result = answer(_mean(directions[first]), made, seed)
    maps, found = result.arrays["maps"], is_found(result)
    truth = all_maps(_mean(directions[~first]))
    every = maps, *_alone(directions[largest], made, seed)
    agreed = [float(matched(truth, each).mean()) for each in every]
    if not found.any():
        return *agreed, 0.0, np.nan, np.nan, np.nan
    told = [each for each in result.images["components"].accuracy if each.state == "found"]
    true = cosines(maps, truth).max(axis=0)[found]
    within = [t.low <= r <= t.high for t, r in zip(told, true, strict=True)]
    expected = float(np.mean([each.value for each in told]))
    return *agreed, float(found.sum()), expected, float(true.mean()), float(np.mean(within))


def _alone(directions: Array, made: Plan, seed: int) -> tuple[Array, Array]:
    """Return one hospital's first 20 maps, without noise, and with its own noise for the same ε."""
    matrix, privacy = _mean(directions), made.study.privacy
    noise = np.sqrt(2 * KEPT) / len(directions) / mu_of(privacy.epsilon, privacy.delta)
    packed = pack_symmetric(matrix)
    packed = packed + noise * np.random.default_rng(seed).standard_normal(len(packed))
    return all_maps(unpack_symmetric(packed))[:, :KEPT], all_maps(matrix)[:, :KEPT]


def _halved(hospitals: Array, seed: int) -> NDArray[np.bool_]:
    """Return who is in the first half of their hospital."""
    generator, first = np.random.default_rng(seed), np.zeros(len(hospitals), dtype=bool)
    for name in np.unique(hospitals):
        order = generator.permutation(np.flatnonzero(hospitals == name))
        first[order[: (len(order) + 1) // 2]] = True
    return first


def all_maps(matrix: Array) -> Array:
    """Separate a mean of projectors without noise into maps, d x 25."""
    values, vectors = eigh(matrix)
    many = round(1.25 * KEPT)
    excess = np.maximum(values[::-1][:many] - np.median(values), 0.0)
    return separate_weighted(vectors[:, ::-1][:, :many], excess)[0]


def _mean(directions: Array) -> Array:
    flat = directions.transpose(1, 0, 2).reshape(directions.shape[1], -1)
    return np.asarray(flat @ flat.T / len(directions))
