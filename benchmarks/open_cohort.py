"""Group ICA with an open cohort, on real participants whose other half is the truth.

``python -m benchmarks.open_cohort FOLDER [SPLITS]`` reads FOLDER as `benchmarks.network_halves`
does, and prints, for several populations of private hospitals, the number of networks found in the
release by itself and with an open cohort of other hospitals, how well they agree with the truth,
and what was stated of that.

Populations: ``all`` participants of the private hospitals; ``patients`` of theirs, with an open
cohort of controls; ``children`` below 14 years, with one of adults; ``planted``, all with one
network that the open cohort lacks; ``removed``, all without three networks that the open cohort
has; ``mirrored``, the brains turned by 180 degrees; ``none``, smooth noise without networks.
"""

import csv
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from benchmarks.network_halves import _centres, _halved, _mean, _people, all_maps
from benchmarks.network_pool import answer, cosines, matched
from benchmarks.network_smooth import KEPT, VOLUMES, region_plan
from benchmarks.timing import show
from consortium.algorithms.base import Array
from consortium.algorithms.open_cohort import OpenDirections
from consortium.study.plan import Plan

EPSILONS = 1.0, 2.0, 4.0, 8.0
OPEN = 100
"""Participants of the open cohort."""
_ADULT = 18.0
_CHILD = 14.0
_REMOVED = 3
_SAME = 0.7
_FALSE = 0.5
_WIDTH = 16.0  # mm


@dataclass(frozen=True, eq=False)
class People:
    """Real participants."""

    directions: Array
    """Shape (n, d, K)."""
    hospitals: NDArray[np.str_]
    patients: NDArray[np.bool_]
    ages: Array
    centres: Array
    """Shape (d, 3), in mm."""


@dataclass(frozen=True, eq=False)
class Case:
    """One split of a population."""

    private: Array
    """Directions of the consortium's participants."""
    sizes: tuple[int, ...]
    truth: Array
    """Maps of the other halves, without noise."""
    cohort: OpenDirections
    special: Array | None = None
    """Maps that were planted or removed, d x k."""


def read_people(folder: Path) -> People:
    """Read directions, and what is known of the participants."""
    directions, hospitals = _people(folder)
    with (folder / "phenotypes.csv").open(encoding="utf-8") as lines:
        known = {int(row["SUB_ID"]): row for row in csv.DictReader(lines)}
    numbers = [
        int(re.search(r"(\d+)_rois", path.name)[1])  # type: ignore[index]
        for path in sorted((folder / "rois_cc200").glob("*.1D"))
    ]
    rows = [known[number] for number in numbers]
    patients = np.array([row["DX_GROUP"] == "1" for row in rows])
    ages = np.array([float(row["AGE_AT_SCAN"]) for row in rows])
    return People(directions, hospitals, patients, ages, _centres(folder))


def cases(people: People, population: str, seed: int) -> Case:
    """Split the participants of a population."""
    generator = np.random.default_rng((seed, 55))
    suitable = np.ones(len(people.hospitals), dtype=bool)
    if population == "patients":
        suitable = ~people.patients
    if population == "children":
        suitable = people.ages >= _ADULT
    openly = _open_hospitals(people.hospitals[suitable], generator)
    chosen = suitable & np.isin(people.hospitals, openly)
    private = ~np.isin(people.hospitals, openly)
    if population == "patients":
        private &= people.patients
    if population == "children":
        private &= people.ages < _CHILD
    who = generator.permutation(np.flatnonzero(chosen))[:OPEN]
    cohort = OpenDirections(
        people.directions[who], people.hospitals[who].astype(str), 0.0, "keep", str(seed)
    )
    rows = np.flatnonzero(private)
    hospitals = people.hospitals[rows]
    directions, special = _changed(people, population, people.directions[rows], cohort, generator)
    first = _halved(hospitals, seed)
    sizes = tuple(int(first[hospitals == name].sum()) for name in np.unique(hospitals))
    return Case(directions[first], sizes, all_maps(_mean(directions[~first])), cohort, special)


def _open_hospitals(hospitals: NDArray[np.str_], generator: np.random.Generator) -> list[str]:
    """Draw hospitals until there are enough open participants; the largest ones stay private."""
    names, many = np.unique(hospitals, return_counts=True)
    found: list[str] = []
    total = 0
    for place in generator.permutation(len(names)):
        if total < OPEN and many[place] < OPEN:
            found.append(str(names[place]))
            total += int(many[place])
    return found


def _changed(
    people: People,
    population: str,
    directions: Array,
    cohort: OpenDirections,
    generator: np.random.Generator,
) -> tuple[Array, Array | None]:
    """Return directions of the private participants, and maps that were planted or removed."""
    if population == "planted":
        maps = _smooth_maps(people.centres, 1, generator)
        own = maps[:, 0] + 0.5 * _unit(generator.standard_normal((len(directions), len(maps))))
        stacked = np.concatenate([own[:, :, None], directions[:, :, :-1]], axis=2)
        return np.linalg.qr(stacked)[0], maps
    if population == "removed":
        maps = all_maps(_mean(cohort.values))[:, :KEPT]
        maps = np.linalg.qr(maps[:, generator.permutation(KEPT)[:_REMOVED]])[0]
        return np.linalg.qr(directions - maps @ (maps.T @ directions))[0], maps
    if population == "mirrored":
        turned = people.centres * np.array([1.0, -1.0, -1.0])
        turned += people.centres.mean(axis=0) - turned.mean(axis=0)
        _, order = linear_sum_assignment(cdist(people.centres, turned))
        return directions[:, order], None
    if population == "none":
        return np.array(list(_noise(people.centres, len(directions), generator))), None
    return directions, None


def _unit(values: Array) -> Array:
    return np.asarray(values / np.linalg.norm(values, axis=-1, keepdims=True))


def _smooth_maps(centres: Array, many: int, generator: np.random.Generator) -> Array:
    """Draw maps that consist of two smooth bumps, orthonormal: d x many."""
    maps = []
    for _ in range(many):
        places = centres[generator.choice(len(centres), 2, replace=False)]
        maps.append(np.exp(-np.square(cdist(centres, places) / _WIDTH)).sum(axis=1))
    values = np.array(maps).T
    return np.asarray(np.linalg.qr(values - values.mean(axis=0))[0])


def smooth_series(centres: Array, volumes: int, generator: np.random.Generator) -> Array:
    """Draw a series of smooth noise without networks, d x T."""
    values, vectors = eigh(np.exp(-np.square(cdist(centres, centres) / _WIDTH)))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(root @ generator.standard_normal((len(centres), volumes)))


def _noise(centres: Array, persons: int, generator: np.random.Generator) -> Iterator[Array]:
    """Draw participants without networks."""
    for _ in range(persons):
        series = smooth_series(centres, VOLUMES, generator)
        yield np.linalg.svd(series, full_matrices=False)[0][:, :KEPT]


def with_cohort(made: Plan, cohort: OpenDirections | None) -> Plan:
    """Return the plan with an open cohort in its shape."""
    return replace(made, shape=replace(made.shape, open_cohort=cohort))


@dataclass(frozen=True)
class Outcome:
    """Outcome of one run."""

    agreed: float
    """Mean correlation of 20 true networks with all maps, whether these are found or not."""
    found: float
    false: float
    """Found maps that agree with no true one by 0.5."""
    expected: float
    true: float
    within: float
    special: float
    """Planted or removed networks among the found maps."""
    new: float
    between: float
    weight: float


def outcome(case: Case, made: Plan, seed: int, *, openly: bool) -> Outcome:
    """Run a study, and compare what it finds with the truth."""
    plan = with_cohort(made, case.cohort if openly else None)
    result = answer(_mean(case.private), plan, seed)
    images = result.images.get("components")
    accuracy = images.accuracy if images is not None else ()
    shown = np.array([each.reported for each in accuracy], dtype=bool)
    agreed = _mean_of_best(result.arrays["maps"], case)
    between, weight = _sources(result)
    if not shown.any():
        return Outcome(
            agreed=agreed,
            found=0.0,
            false=0.0,
            expected=np.nan,
            true=np.nan,
            within=np.nan,
            special=0.0,
            new=0.0,
            between=between,
            weight=weight,
        )
    maps = result.arrays["maps"][:, shown]
    true = cosines(maps, case.truth).max(axis=0)
    stated = [each for each in accuracy if each.reported]
    within = [a.low <= t <= a.high for a, t in zip(stated, true, strict=True)]
    special = 0.0
    if case.special is not None:
        special = float((cosines(maps, case.special).max(axis=1) >= _SAME).sum())
    words = [row[-2] for row in result.tables["components"].rows]
    return Outcome(
        agreed=agreed,
        found=float(shown.sum()),
        false=float((true < _FALSE).sum()),
        expected=float(np.mean([each.value for each in stated])),
        true=float(true.mean()),
        within=float(np.mean(within)),
        special=special,
        new=float(words.count("new in these hospitals")),
        between=between,
        weight=weight,
    )


def _sources(result: object) -> tuple[float, float]:
    numbers = getattr(result, "numbers", {})
    return float(numbers.get("between_populations", np.nan)), float(
        numbers.get("release_weight", np.nan)
    )


POPULATIONS = "all", "patients", "children", "planted", "removed", "mirrored", "none"


def main(folder: Path, splits: int, populations: tuple[str, ...] = POPULATIONS) -> None:
    """Print the table."""
    people = read_people(folder)
    for population in populations:
        rows = []
        made = [cases(people, population, seed) for seed in range(splits)]
        for epsilon in EPSILONS:
            plans = [region_plan(case.sizes, epsilon, people.centres) for case in made]
            alone, both = (
                [
                    outcome(case, plan, seed, openly=openly)
                    for seed, (case, plan) in enumerate(zip(made, plans, strict=True))
                ]
                for openly in (False, True)
            )
            rows.append([f"{epsilon:g}", *_row(alone)[:3], *_row(both)])
        persons = [sum(case.sizes) for case in made]
        show(
            f"{population}: {min(persons)} to {max(persons)} private participants, {OPEN} open, "
            f"{splits} splits",
            [
                "ε",
                "release: mean of 20",
                "found",
                "false",
                "both: mean of 20",
                "found",
                "false",
                "expected",
                "true",
                "in range",
                "special",
                "new",
                "b",
                "weight",
            ],
            rows,
        )
        sources = zip(*((case.cohort.values, case.private) for case in made), strict=True)
        mean_alone, mean_pooled = (
            np.mean([_agreement(each, case) for each, case in zip(source, made, strict=True)])
            for source in sources
        )
        print(
            f"mean of 20: open cohort by itself {mean_alone:.3f}, pooled {mean_pooled:.3f}",
            flush=True,
        )


def _agreement(directions: Array, case: Case) -> float:
    """Return the mean agreement of participants' own maps, without noise, with 20 true ones."""
    return _mean_of_best(all_maps(_mean(directions)), case)


def _mean_of_best(maps: Array, case: Case) -> float:
    return float(np.sort(matched(maps, case.truth))[-KEPT:].mean())


def _row(outcomes: list[Outcome]) -> list[str]:
    keys = [each.name for each in fields(Outcome)]
    with np.errstate(all="ignore"):
        means = [np.nanmean([getattr(each, key) for each in outcomes]) for key in keys]
    return [f"{mean:.2f}" for mean in means]


if __name__ == "__main__":
    splits = int(sys.argv[2]) if len(sys.argv) > len("FS") else 6
    main(Path(sys.argv[1]), splits, tuple(sys.argv[3:]) or POPULATIONS)
