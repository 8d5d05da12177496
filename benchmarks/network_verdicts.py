"""Whether the forecasts, findings and reports of `group_ica` agree with the truth.

``found FOLDER``: halves of real hospitals (see `benchmarks.network_halves`), some with fewer
participants: components that the plan forecasts, those that the result finds, and those whose true
correlation with the other halves' networks is 0.7 or more.

``shapes``: participants without networks whose noise is smooth: isotropic, anisotropic along the
axes or oblique, left-right symmetric, or both.

``overlap FOLDER``: simulated participants with six published networks that overlap.

``yardstick FOLDER``: the result of random maps, and of one hospital without noise, in the measure
of ``halves``.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.spatial.transform import Rotation

from benchmarks.network_halves import _centres as centres_of
from benchmarks.network_halves import _halved, _mean, _people, all_maps
from benchmarks.network_pool import FALSE, FOUND, answer, cosines, extent, matched
from benchmarks.network_smooth import (
    KEPT,
    VOLUMES,
    Group,
    _centres,
    _study,
    is_found,
    region_plan,
)
from benchmarks.real_networks import published_maps
from benchmarks.timing import show
from consortium.algorithms.base import Array, Result
from consortium.algorithms.group_ica.forecast import FOUND as FORECAST
from consortium.algorithms.group_ica.kernels.agreement import expected_range
from consortium.algorithms.subspace import smooth_basis
from consortium.study.plan import Plan, make_plan

CELLS = ((200, 4.0), (200, 8.0), (400, 2.0), (400, 4.0), (521, 2.0), (521, 4.0), (521, 8.0))
SPLITS = 4


def found(folder: Path) -> None:
    """Count components that are forecast, found, and true."""
    directions, hospitals = _people(folder)
    centres, rows = centres_of(folder), []
    for persons, epsilon in CELLS:
        told = []
        for seed in range(SPLITS):
            first = _halved(hospitals, seed)
            some = _fewer(np.flatnonzero(first), hospitals, persons, seed)
            sizes = tuple(int((hospitals[some] == name).sum()) for name in np.unique(hospitals))
            made = region_plan(sizes, epsilon, centres)
            forecast = {each.name: each.value for each in made.analysis.expect()}[FORECAST]
            result = answer(_mean(directions[some]), made, seed)
            told.append((forecast, *_verdicts(result, all_maps(_mean(directions[~first])))))
        rows.append([str(persons), f"{epsilon:g}", *_figures(told)])
    show(
        f"Halves of real hospitals, {SPLITS} splits: components that are found",
        ["participants", "ε", "forecast", *_HEADS],
        rows,
    )


_HEADS = ("found", "truly ≥ .7", "found, truly < .5", "expected", "true", "in range")


def _verdicts(result: Result, truth: Array) -> tuple[float, ...]:
    """Count found, true (≥ 0.7) and false maps; return expected and true correlation, coverage."""
    true, which = cosines(result.arrays["maps"], truth).max(axis=0), is_found(result)
    expected = result.arrays["expected"][which]
    low, high = expected_range(expected)
    covered = (low <= true[which]) & (true[which] <= high)
    means = [np.mean(each) if which.any() else np.nan for each in (expected, true[which], covered)]
    counts = which.sum(), np.sum(true >= FOUND), np.sum(true[which] < FALSE)
    return *map(float, counts), *map(float, means)


def _figures(told: list[tuple[float, ...]]) -> list[str]:
    each = np.array(told)
    counts, means = each[:, :4].mean(axis=0), each[:, 4:]
    weights = np.where(np.isnan(means), 0.0, each[:, 1:2])
    together = np.nansum(means * weights, axis=0) / np.maximum(weights.sum(axis=0), 1.0)
    return [*(f"{c:.1f}" for c in counts), *(f"{m:.2f}" for m in together)]


def _fewer(first: NDArray[np.int_], hospitals: Array, persons: int, seed: int) -> NDArray[np.int_]:
    """Select about the given number of participants, the same fraction of each hospital."""
    generator, kept = np.random.default_rng(1000 + seed), []
    for name in np.unique(hospitals):
        own = generator.permutation(first[hospitals[first] == name])
        kept.append(own[: max(1, round(len(own) * persons / len(first)))])
    return np.concatenate(kept)


FWHM = 2.3548
MIRROR = np.array([-1.0, 1.0, 1.0])
OBLIQUE = Rotation.from_euler("xyz", [25.0, 40.0, 15.0], degrees=True).as_matrix()
SHAPES: Mapping[str, tuple[tuple[float, float, float], float]] = {
    "13 mm": ((13.0, 13.0, 13.0), 0.0),
    "23 mm": ((23.0, 23.0, 23.0), 0.0),
    "11, 29, 16 mm": ((11.0, 29.0, 16.0), 0.0),
    "13, 26, 16 mm": ((13.0, 26.0, 16.0), 0.0),
    "11, 29, 16 mm, oblique": ((11.0, 29.0, 16.0), 0.0),
    "16 mm, symmetric .80": ((16.0, 16.0, 16.0), 0.8),
    "16 mm, symmetric .90": ((16.0, 16.0, 16.0), 0.9),
    "16 mm, symmetric .98": ((16.0, 16.0, 16.0), 0.98),
    "25 mm, symmetric .90": ((25.0, 25.0, 25.0), 0.9),
    "11, 29, 16 mm, symmetric .90": ((11.0, 29.0, 16.0), 0.9),
}
"""Width at half height along each axis, and correlation of mirrored places."""
RUNS, EPSILONS = {200: 3, 600: 20, 2000: 3}, (4.0, 8.0)
"""Studies over regions by number of participants, and ε."""
SHARES = np.array([75, 45, 30, 20, 12, 8, 5, 5]) / 200
VOXEL_RUNS, VOXEL_PERSONS, VOXEL_EPSILON = 1, 600, 4.0
_ROWS = 500


def shapes() -> None:
    """Count studies of participants without networks that find something."""
    rows = [[name, *_of_shape(name)] for name in SHAPES]
    cells = [
        f"{persons:,}, ε {epsilon:g} (of {runs})"
        for persons, runs in RUNS.items()
        for epsilon in EPSILONS
    ]
    cells.append(f"voxels, {VOXEL_PERSONS}, ε {VOXEL_EPSILON:g} (of {VOXEL_RUNS})")
    show(
        "Smooth noise without networks: studies over regions, and over voxels, that find something",
        ["width at half height", *cells],
        rows,
    )


def _of_shape(name: str) -> list[str]:
    counts, places = [], _centres()
    seen = covariance(places, places, name)
    for persons, runs in RUNS.items():
        plans = [region_plan(_sizes(persons), epsilon, places) for epsilon in EPSILONS]
        counts += _count(seen, persons, plans, runs)
    made = _voxel_plan()
    known: Any = made.analysis
    counts += _count(_in_basis(known.cutoff, name), VOXEL_PERSONS, [made], VOXEL_RUNS)
    return [str(each) for each in counts]


def _count(seen: Array, persons: int, plans: list[Plan], runs: int) -> list[int]:
    """Count studies that find something, for each plan."""
    group, found = Group(seen, np.zeros((len(seen), 0))), np.zeros(len(plans), dtype=int)
    for seed in range(runs):
        matrix = group.mean_projector(persons, np.random.default_rng(seed))
        found += [bool(is_found(answer(matrix, made, seed)).any()) for made in plans]
    return found.tolist()


def covariance(places: Array, others: Array, name: str) -> Array:
    """Return the covariance of smooth noise between places in mm (n x 3, m x 3), n x m."""
    widths, mirrored = SHAPES[name]
    turn = OBLIQUE if name.endswith("oblique") else np.eye(3)
    scale = turn / (2.0 * np.array(widths) / FWHM)
    direct = np.exp(-cdist(places @ scale, others @ scale, "sqeuclidean"))
    if not mirrored:
        return np.asarray(direct)
    across = cdist(places @ scale, (others * MIRROR) @ scale, "sqeuclidean")
    return np.asarray(direct + mirrored * np.exp(-across))


@lru_cache(maxsize=2)
def _in_basis(cutoff: float, name: str) -> Array:
    """Return ΦᵀCΦ."""
    where = extent().places
    assert where is not None
    places, basis = where.coordinates, smooth_basis(where, cutoff).matrix
    total = np.zeros((basis.shape[1],) * 2)
    for start in range(0, len(places), _ROWS):
        part = slice(start, start + _ROWS)
        total += basis[part].T @ (covariance(places[part], places, name) @ basis)
    return total


def _voxel_plan() -> Plan:
    sizes = _sizes(VOXEL_PERSONS)
    shape = extent().shape(sizes, tuple(VOLUMES * size for size in sizes), "subject")
    return make_plan(_study(sizes, VOXEL_EPSILON, {"resolution": 8}), shape)


def _sizes(persons: int) -> tuple[int, ...]:
    return tuple(int(each) for each in np.rint(SHARES * persons))


OVERLAPPING, OVERLAP_RUNS = 6, 8


def overlap(folder: Path) -> None:
    """Measure expected and true correlation of the found ones among networks that overlap."""
    centres, maps = centres_of(folder), np.maximum(published_maps(folder), 0.0)
    maps = maps / maps.max(axis=0)
    smooth = 0.3 * np.exp(-(cdist(centres, centres) / 25.0))
    rows = []
    for persons, epsilon in ((400, 4.0), (400, 8.0), (1000, 4.0), (1000, 8.0)):
        told = []
        for seed in range(OVERLAP_RUNS):
            generator = np.random.default_rng(seed)
            some = maps[:, generator.permutation(maps.shape[1])[:OVERLAPPING]]
            group = Group(smooth + 0.3 * np.eye(len(smooth)), 0.5 * some)
            matrix = group.mean_projector(persons, generator)
            made = region_plan(_sizes(persons), epsilon, centres)
            result = answer(matrix, made, seed)
            own = all_maps(group.mean_projector(persons, generator))
            told.append((*_verdicts(result, some), *_verdicts(result, own)))
        rows.append([str(persons), f"{epsilon:g}", *_of_both(told)])
    show(
        f"{OVERLAPPING} overlapping networks, {OVERLAP_RUNS} draws",
        ["participants", "ε", *_BOTH],
        rows,
    )


_BOTH = ("found", "expected", "true", "in range", "as pooled maps", "in range of these")


def _of_both(told: list[tuple[float, ...]]) -> list[str]:
    """Compare found maps with the networks, and with maps of other participants without noise."""
    each = np.array(told)
    kept = each[each[:, 0] > 0]
    if not len(kept):
        return ["0.0", *("" for _ in _BOTH[1:])]
    means = np.average(kept[:, [3, 4, 5, 10, 11]], axis=0, weights=kept[:, 0])
    return [f"{each[:, 0].mean():.1f}", *(f"{mean:.2f}" for mean in means)]


ALONE = (15, 88, 150)
_BLOB = 20.0  # mm, standard deviation


def yardstick(folder: Path) -> None:
    """Measure the mean correlation of random maps, and of one hospital's, with 20 networks."""
    directions, hospitals = _people(folder)
    centres, scores = centres_of(folder), {"random smooth maps": list[float]()}
    scores |= {f"one hospital of {many}": [] for many in ALONE}
    for seed in range(SPLITS):
        first, generator = _halved(hospitals, seed), np.random.default_rng(seed)
        for name in np.unique(hospitals):
            own = np.flatnonzero(hospitals == name)
            others = all_maps(_mean(directions[~first & (hospitals != name)]))
            for many in ALONE:
                if len(own) >= many:
                    maps = all_maps(_mean(directions[generator.permutation(own)[:many]]))
                    agreed = matched(others, maps[:, :KEPT]).mean()
                    scores[f"one hospital of {many}"].append(float(agreed))
        middles = centres[generator.choice(len(centres), KEPT, replace=False)]
        blobs = np.exp(-0.5 * (cdist(centres, middles) / _BLOB) ** 2)
        truth = all_maps(_mean(directions[~first]))
        scores["random smooth maps"].append(float(matched(truth, blobs).mean()))
    rows = [[name, str(len(each)), f"{np.mean(each):.2f}"] for name, each in scores.items()]
    show("Mean correlation with 20 networks of other participants", ["maps", "cases", ""], rows)
