"""Participants who share a smooth covariance, without networks or with twelve networks.

Series are Gaussian. Series of voxels are white noise smoothed by a Gaussian kernel, whose
projection on the basis of `group_ica` is ΦᵀCΦ; series of regions have a covariance of
exp(-distance/25 mm).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.linalg import eigh

from benchmarks.network_pool import FALSE, HARD, answer, cosines, extent
from benchmarks.studies import study_of
from benchmarks.timing import show
from consortium.algorithms.base import Array, Extent, Result
from consortium.algorithms.subspace import smooth_basis
from consortium.study.plan import Plan, make_plan
from consortium.study.spec import Study

SIZES = {200: (75, 45, 30, 20, 12, 8, 5, 5), 400: HARD}
EPSILONS, FWHMS, LENGTH = (4.0, 8.0, 100.0), (13.0, 23.0, 32.0, 45.0), 25.0
REGIONS, NETWORKS, KEPT, VOLUMES = 120, 12, 20, 80
_FWHM = 2.3548
_ROWS = 500


@dataclass(frozen=True, eq=False)
class Group:
    """A covariance that all participants have, and maps of networks on top of it."""

    covariance: Array
    maps: Array

    def mean_projector(self, persons: int, generator: np.random.Generator) -> Array:
        """Return the mean projector of a number of participants."""
        values, vectors = np.linalg.eigh(self.covariance)
        root, size = vectors * np.sqrt(np.maximum(values, 0.0)), len(values)
        strong = self.maps * np.linspace(2.0, 1.0, self.maps.shape[1])
        total = np.zeros((size, size))
        for _ in range(persons):
            series = root @ generator.standard_normal((size, VOLUMES))
            series += strong @ generator.standard_normal((strong.shape[1], VOLUMES))
            _, right = eigh(series.T @ series, subset_by_index=(VOLUMES - KEPT, VOLUMES - 1))
            left = np.linalg.qr(series @ right)[0]
            total += left @ left.T / persons
        return total


def smooth() -> None:
    """Count runs that find a network where none exists, and networks found among twelve."""
    rows = []
    for persons in SIZES:
        for epsilon in EPSILONS:
            found = [str(sum(bool(is_found(r).any()) for r in _no_network(persons, epsilon)))]
            found += [str(_of_voxels(persons, epsilon, fwhm)) for fwhm in FWHMS]
            rows.append([str(persons), f"{epsilon:g}", *found, *_background(persons, epsilon)])
    voxels = (f"{fwhm:g} mm ({VOXEL_RUNS})" for fwhm in FWHMS)
    show(
        "Smooth covariance: runs that find something; number found of 12 networks on it",
        ["participants", "ε", f"atlas ({RUNS})", *voxels, "found of 12", "agree with none by .5"],
        rows,
    )


RUNS, VOXEL_RUNS, BACKGROUNDS = 20, 5, 4


@lru_cache(maxsize=1)
def _centres() -> Array:
    where = extent().places
    assert where is not None
    return np.asarray(kmeans2(where.coordinates, REGIONS, seed=3, minit="++")[0])


def _group(seed: int, networks: int) -> Group:
    centres, generator = _centres(), np.random.default_rng((seed, 1))
    apart = np.linalg.norm(centres[:, None] - centres, axis=2)
    maps, free = np.zeros((REGIONS, networks)), list(range(REGIONS))
    for column in maps.T:
        for _ in range(3):  # clusters of two regions, anywhere
            middle = generator.choice(free)
            near = sorted(free, key=apart[middle].__getitem__)[:2]
            column[near] = generator.uniform(0.7, 1.0, 2)
            free = [region for region in free if region not in near]
    return Group(np.exp(-apart / LENGTH), maps)


def of_regions(persons: int, epsilon: float, seed: int, networks: int) -> tuple[Result, Array]:
    """Return a study's result, and the true maps."""
    made, group = region_plan(SIZES[persons], epsilon, _centres()), _group(seed, networks)
    matrix = group.mean_projector(persons, np.random.default_rng(seed))
    return answer(matrix, made, seed), group.maps


def _no_network(persons: int, epsilon: float) -> Iterator[Result]:
    return (of_regions(persons, epsilon, seed, 0)[0] for seed in range(RUNS))


def _background(persons: int, epsilon: float) -> list[str]:
    told, false = 0, 0
    for seed in range(BACKGROUNDS):
        result, maps = of_regions(persons, epsilon, seed, NETWORKS)
        found = is_found(result)
        if found.any():
            told += int(found.sum())
            false += int(np.sum(cosines(result.arrays["maps"], maps).max(axis=0)[found] < FALSE))
    return [f"{told / BACKGROUNDS:.1f}", f"{false / max(told, 1):.2f}"]


def _of_voxels(persons: int, epsilon: float, fwhm: float) -> int:
    study = _study(SIZES[persons], epsilon, {"resolution": 8})
    sizes = SIZES[persons]
    shape = extent().shape(sizes, tuple(VOLUMES * size for size in sizes), "subject")
    made = make_plan(study, shape)
    known: Any = made.analysis
    seen = _seen(known.cutoff, fwhm)
    group = Group(seen, np.zeros((len(seen), 0)))
    runs = range(VOXEL_RUNS)
    matrices = (group.mean_projector(persons, np.random.default_rng(seed)) for seed in runs)
    told = [answer(matrix, made, seed) for seed, matrix in zip(runs, matrices, strict=True)]
    return sum(bool(is_found(result).any()) for result in told)


@lru_cache(maxsize=8)
def _seen(cutoff: float, fwhm: float) -> Array:
    """Return ΦᵀCΦ of smoothed white noise."""
    where, width = extent().places, fwhm / _FWHM
    assert where is not None
    places, basis = where.coordinates, smooth_basis(where, cutoff).matrix
    total = np.zeros((basis.shape[1],) * 2)
    for start in range(0, len(places), _ROWS):
        part = slice(start, start + _ROWS)
        squares = np.sum((places[part, None] - places) ** 2, axis=2)
        total += basis[part].T @ (np.exp(-squares / (4.0 * width**2)) @ basis)
    return total


def is_found(result: Result) -> Array:
    """Return whether each component is found."""
    images = result.images.get("components")
    told = images.accuracy if images else ()
    return np.array([each.state == "found" for each in told], dtype=bool)


def region_plan(sizes: tuple[int, ...], epsilon: float, centres: Array, **analysis: Any) -> Plan:
    """Plan a study over regions at these places."""
    study = _study(sizes, epsilon, {"atlas": "atlas.nii.gz"}, **analysis)
    where = replace(Extent(len(centres)), region_places=centres)
    shape = where.shape(sizes, tuple(VOLUMES * size for size in sizes), "subject")
    return make_plan(study, shape)


def _study(sizes: tuple[int, ...], epsilon: float, data: dict[str, Any], **analysis: Any) -> Study:
    asked = {"anyway": True, "components": KEPT, **analysis}
    return study_of("group_ica", asked, len(sizes), epsilon, data=data)
