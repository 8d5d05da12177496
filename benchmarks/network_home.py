"""Networks at a hospital of real participants: its own mean, the release, and both together.

``python -m benchmarks.networks home FOLDER`` uses the participants and halves of
`benchmarks.network_halves`: half of every hospital is the consortium, the pool of the other halves
the truth. *Captured* is the fraction of the truth's 20 leading directions within 20 leading ones of
a matrix. The release is simulated, with the noise of a study of these sizes.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from benchmarks.network_halves import _centres, _halved, _mean, _people
from benchmarks.network_smooth import KEPT, region_plan
from benchmarks.timing import show
from consortium.algorithms.base import Array
from consortium.kernels.home_posterior import ReleaseShare, combine_projectors
from consortium.kernels.noise_law import SymmetricNoise
from consortium.study.plan import Plan

EPSILONS, SPLITS = (1.0, 2.0, 4.0, 8.0), 12
GROUPS = {"13 or fewer": (2, 13), "18 to 25": (18, 25), "88": (88, 88)}


@dataclass(frozen=True, eq=False)
class Half:
    """A split into the consortium and the truth."""

    sizes: tuple[int, ...]
    members: Sequence[NDArray[np.int64]]
    matrix: Array
    truth: Array


def home(folder: Path) -> None:
    """Measure the captured directions of hospitals of three sizes."""
    directions, hospitals = _people(folder)
    centres, rows = _centres(folder), []
    for epsilon in EPSILONS:
        told: dict[str, list[tuple[float, ...]]] = defaultdict(list)
        for seed in range(SPLITS):
            half = _half(directions, hospitals, seed)
            made = region_plan(half.sizes, epsilon, centres)
            _add(told, directions, half, made, seed)
        rows += [_row(epsilon, name, np.array(told[name])) for name in GROUPS]
    show(
        f"Captured part of 20 directions, {SPLITS} splits of real hospitals",
        [
            "ε",
            "hospital of",
            "alone",
            "release",
            "at home",
            "pooled",
            "over the better",
            "least",
            "below it by .02",
            "worth",
        ],
        rows,
    )


def _half(directions: Array, hospitals: Array, seed: int) -> Half:
    names, first = np.unique(hospitals), _halved(hospitals, seed)
    members = [np.flatnonzero(first & (hospitals == name)) for name in names]
    truth = leading(_mean(directions[~first]))
    return Half(tuple(map(len, members)), members, _mean(directions[first]), truth)


def _add(
    told: dict[str, list[tuple[float, ...]]], directions: Array, half: Half, made: Plan, seed: int
) -> None:
    deviation = float(made.stages[0].mechanism.noise.aggregate())
    law = SymmetricNoise(len(half.matrix), deviation)
    release = half.matrix + law.draw(np.random.default_rng(seed))
    shown, pooled = (captured(each, half.truth) for each in (release, half.matrix))
    for members in half.members:
        for name, (low, high) in GROUPS.items():
            if low <= len(members) <= high:
                taken = ReleaseShare(len(members), sum(half.sizes), len(half.sizes), deviation)
                found = combine_projectors(list(directions[members]), release, taken)
                alone, both = (captured(each, half.truth) for each in (found.own, found.matrix))
                told[name].append(
                    (alone, shown, both, pooled, found.spreads.worth(taken.everybody).persons)
                )


def leading(matrix: Array) -> Array:
    """Return the matrix's first 20 eigenvectors."""
    size = len(matrix)
    return np.asarray(eigh(matrix, subset_by_index=(size - KEPT, size - 1))[1])


def captured(matrix: Array, truth: Array) -> float:
    """Return the fraction of the truth's directions (d x 20) that is within the matrix's."""
    return float(np.sum((leading(matrix).T @ truth) ** 2) / truth.shape[1])


def _row(epsilon: float, name: str, told: Array) -> list[str]:
    alone, shown, both, pooled, worth = told.T
    gain = both - np.maximum(alone, shown)
    means = [f"{each.mean():.3f}" for each in (alone, shown, both, pooled)]
    ends = [f"{gain.mean():+.3f}", f"{gain.min():+.3f}", f"{np.mean(gain < -0.02):.0%}"]
    return [f"{epsilon:g}", name, *means, *ends, f"{np.median(worth):.1f}"]
