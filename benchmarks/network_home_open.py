"""Networks at a hospital of real participants, of a study with an open cohort.

``python -m benchmarks.networks home_open FOLDER`` takes 100 participants of some hospitals as the
open cohort, as `benchmarks.open_cohort` does. Half of each other hospital is the consortium, and
the pool of the other halves is the truth. *Captured* is that of `benchmarks.network_home`. The
second table has the maps of the largest hospital in each split: the mean correlation of 20 true
networks with all maps, and for the maps that are found, the expected and the true correlation
and how often the range contains the truth.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.network_halves import _halved, _mean, all_maps
from benchmarks.network_home import GROUPS, Half, captured, leading
from benchmarks.network_pool import cosines, matched
from benchmarks.network_smooth import KEPT, is_found, region_plan
from benchmarks.open_cohort import OPEN, People, _open_hospitals, read_people
from benchmarks.timing import show
from consortium.algorithms.base import Array, Release, Result
from consortium.algorithms.group_ica.at_home import combine_three, results_at_home
from consortium.algorithms.group_ica.centre import GroupIca
from consortium.algorithms.group_ica.kernels.open_posterior import OpenMean, combine
from consortium.algorithms.open_cohort import OpenDirections
from consortium.kernels.home_posterior import Posterior, ReleaseShare, combine_projectors
from consortium.kernels.moments import pack_symmetric
from consortium.kernels.noise_law import SymmetricNoise

EPSILONS = 1.0, 4.0
SPLITS = 3


@dataclass(frozen=True, eq=False)
class Hospital:
    """A hospital of one split, with the release and the open cohort."""

    size: str
    own: Posterior
    release: Array
    deviation: float
    plan: GroupIca
    cohort: OpenDirections
    half: Half
    maps: Array
    """True maps."""


def home_open(folder: Path) -> None:
    """Print the tables."""
    people = read_people(folder)
    _print_directions(people)
    _print_networks(people)


def _print_directions(people: People) -> None:
    rows = []
    for epsilon in EPSILONS:
        parts: dict[str, list[tuple[float, ...]]] = defaultdict(list)
        for seed in range(SPLITS):
            for hospital in _hospitals(people, epsilon, seed):
                parts[hospital.size].append(_captured(hospital, seed))
        rows += [_row(epsilon, name, np.array(parts[name])) for name in GROUPS]
    show(
        f"Captured part of 20 directions, {OPEN} open participants, {SPLITS} splits",
        [
            "ε",
            "hospital of",
            "own",
            "release",
            "own, release",
            "open",
            "release, open",
            "all three",
            "pooled",
            "over the best source",
            "least",
            "weights",
        ],
        rows,
    )


def _print_networks(people: People) -> None:
    rows = []
    for epsilon in EPSILONS:
        outcomes: dict[str, list[Array]] = defaultdict(list)
        for seed in range(SPLITS):
            largest = max(
                _hospitals(people, epsilon, seed), key=lambda each: each.own.taken.persons
            )
            for whose, result in _results(largest).items():
                outcomes[whose].append(_outcome(result, largest.maps))
        for whose, each in outcomes.items():
            means = [f"{mean:.2f}" for mean in np.nanmean(each, axis=0)]
            rows.append([f"{epsilon:g}", whose, *means])
    show(
        f"Networks of the largest hospital, {SPLITS} splits",
        ["ε", "data", "mean of 20", "found", "expected", "true", "in its range"],
        rows,
    )


def _hospitals(people: People, epsilon: float, seed: int) -> Iterator[Hospital]:
    generator = np.random.default_rng((seed, 55))
    openly = np.isin(people.hospitals, _open_hospitals(people.hospitals, generator))
    who = generator.permutation(np.flatnonzero(openly))[:OPEN]
    sites = people.hospitals[who].astype(str)
    cohort = OpenDirections(people.directions[who], sites, 0.0, "keep", str(seed))
    rows, hospitals = people.directions[~openly], people.hospitals[~openly]
    first = _halved(hospitals, seed)
    members = [np.flatnonzero(first & (hospitals == name)) for name in np.unique(hospitals)]
    truth = _mean(rows[~first])
    half = Half(tuple(map(len, members)), members, _mean(rows[first]), leading(truth))
    made = region_plan(half.sizes, epsilon, people.centres)
    deviation = float(made.stages[0].mechanism.noise.aggregate())
    law = SymmetricNoise(len(half.matrix), deviation)
    release = half.matrix + law.draw(np.random.default_rng(seed))
    for own in members:
        taken = ReleaseShare(len(own), sum(half.sizes), len(half.sizes), deviation)
        for name, (low, high) in GROUPS.items():
            if low <= len(own) <= high:
                yield Hospital(
                    name,
                    combine_projectors(list(rows[own]), release, taken),
                    release,
                    deviation,
                    made.analysis,  # type: ignore[arg-type]
                    cohort,
                    half,
                    all_maps(truth),
                )


def _captured(hospital: Hospital, seed: int) -> tuple[float, ...]:
    """Return the captured part by each estimate, and the weights."""
    generator = np.random.default_rng(seed)
    own = hospital.own
    cohort = OpenMean.of(hospital.cohort.values)
    persons = own.taken.everybody
    published = combine(cohort, hospital.release, hospital.deviation, persons, generator)
    three = combine_three(own, hospital.release, cohort, generator)
    estimates = (own.own, hospital.release, own.matrix, cohort.matrix, published.matrix)
    parts = (
        captured(each, hospital.half.truth)
        for each in (*estimates, three.matrix, hospital.half.matrix)
    )
    return *parts, three.own_weight, three.release_weight


def _results(hospital: Hospital) -> dict[str, Result]:
    packed = Release(pack_symmetric(hospital.release), hospital.deviation)
    plan = hospital.plan
    openly = type(plan)(plan.parameters, replace(plan.shape, open_cohort=hospital.cohort))
    alone = results_at_home(hospital.own, packed, plan)
    both = results_at_home(hospital.own, packed, openly)
    return {
        "own": alone["own"],
        "own, release": alone["posterior"],
        "release, open": both["release"],
        "all three": both["posterior"],
    }


def _outcome(result: Result, truth: Array) -> Array:
    maps = result.arrays["maps"]
    found = is_found(result)
    agreed = float(np.sort(matched(maps, truth))[-KEPT:].mean()) if maps.shape[1] else 0.0
    if not found.any():
        return np.array([agreed, 0.0, np.nan, np.nan, np.nan])
    true = cosines(maps, truth).max(axis=0)[found]
    stated = [each for each in result.images["components"].accuracy if each.reported]
    within = [each.low <= r <= each.high for each, r in zip(stated, true, strict=True)]
    expected = np.mean([each.value for each in stated])
    return np.array([agreed, found.sum(), expected, true.mean(), np.mean(within)])


def _row(epsilon: float, name: str, told: Array) -> list[str]:
    own, others = told[:, -2].mean(), told[:, -1].mean()
    gain = told[:, 5] - told[:, [0, 1, 3]].max(axis=1)
    return [
        f"{epsilon:g}",
        name,
        *(f"{mean:.3f}" for mean in told[:, :7].mean(axis=0)),
        f"{gain.mean():+.3f}",
        f"{gain.min():+.3f}",
        f"{own:.2f}, {others:.2f}, {1.0 - own - others:.2f}",
    ]
