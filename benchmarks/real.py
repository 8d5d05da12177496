"""``python -m benchmarks.real FOLDER [SEEDS [EPSILON ...]]``: `glm` on thicknesses of real persons.

FOLDER holds ``anatomy.csv`` (a line for each person: ``subject_id`` and columns that end in
``_thickness``, mm) and ``participants.csv`` (``subject_id``, ``site``, ``sex``, ``age``, ``asd``),
as the challenge on autism of 2018 published them, and perhaps ``norms.csv``, thicknesses of other
persons by the same names, which stand in a study as public norms. Nothing of the data is kept.

Every row is one effect (autism, sex, ten years of age) at one ε, beside least squares over the
pooled persons with a constant of each site, and beside every site of enough persons alone: noise of
the exact law, one colluding site, δ = 1e-5. Errors are in deviations of the pooled outcomes.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.glm import Tally
from benchmarks.glm_runs import (
    Array,
    TableData,
    Trial,
    found_by,
    least_squares,
    noise_of,
    run_trial,
)
from consortium.algorithms.base import Shape
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.views.table import TableView

Flags = NDArray[np.bool_]

LIMITS = 1.0, 4.5  # mm
AGES = 5.0, 65.0
USUAL_AGE = {"mean": 18, "deviation": 10}
EFFECTS = ("autism", "sex", "age")
_WAYS = (("none", False, False), ("stated", True, False), ("none, means declared", False, True))
_ALONE = 30  # persons of a site that is tried alone


@dataclass(frozen=True, eq=False)
class Real:
    """Persons in the order of their sites.

    Parameters
    ----------
    names : tuple of str
        Of the outcomes.
    outcomes : array, V x n
        mm.
    site : array of int, length n
    age : array, length n
        Years.
    sex, autism : array of bool, length n
        Whether male, and whether a patient.
    norms : mapping, optional
        Of a study: location and deviation.
    """

    names: tuple[str, ...]
    outcomes: Array
    site: NDArray[np.int64]
    age: Array
    sex: Flags
    autism: Flags
    norms: dict[str, tuple[float, ...]] | None


def read(folder: Path) -> Real:
    """Read persons who have every value."""
    anatomy = {row["subject_id"]: row for row in _rows(folder / "anatomy.csv")}
    names = tuple(name for name in next(iter(anatomy.values())) if name.endswith("_thickness"))
    names = tuple(name for name in names if "MeanThickness" not in name)
    people = [row for row in _rows(folder / "participants.csv") if row["subject_id"] in anatomy]
    people.sort(key=lambda row: int(float(row["site"])))
    values = np.array([[_number(anatomy[p["subject_id"]][n]) for n in names] for p in people]).T
    age = np.array([_number(p["age"]) for p in people])
    kept = np.isfinite(values).all(axis=0) & np.isfinite(age)
    sites = np.array([int(float(p["site"])) for p in people])[kept]
    return Real(
        names,
        values[:, kept],
        np.unique(sites, return_inverse=True)[1].astype(np.int64),
        age[kept],
        np.array([p["sex"] == "M" for p in people])[kept],
        np.array([float(p["asd"]) > 0 for p in people])[kept],
        _norms(folder / "norms.csv", names),
    )


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def _number(text: str) -> float:
    return float(text) if text.strip() else float("nan")


def _norms(path: Path, names: tuple[str, ...]) -> dict[str, tuple[float, ...]] | None:
    if not path.exists():
        return None
    table = np.array([[_number(row[name]) for name in names] for row in _rows(path)])
    return {
        "location": tuple(np.nanmean(table, axis=0).tolist()),
        "deviation": tuple(np.nanstd(table, axis=0).tolist()),
    }


def trial_of_real(people: Real, effect: str, *, norms: bool, declared: bool = False) -> Trial:
    """The study of one effect, adjusted for the others."""
    low, high = LIMITS
    outcomes = np.clip((people.outcomes - (low + high) / 2) / ((high - low) / 2), -1, 1)
    ages = (people.age - sum(AGES) / 2) / ((AGES[1] - AGES[0]) / 2)
    labels = [np.where(each, 1.0, -1.0) for each in (people.autism, people.sex)]
    table = np.vstack([outcomes, labels[0], ages, labels[1]])
    views = (("cortex", len(outcomes)), ("who", 3))
    sites = [np.flatnonzero(people.site == s) for s in range(int(people.site.max()) + 1)]
    names = tuple(f"s{s}" for s in range(len(sites)))
    column = {"autism": "diagnosis", "sex": "sex", "age": "age"}[effect]
    analysis: dict[str, Any] = {
        "outcomes": "cortex",
        "formula": "diagnosis + age + sex",
        "contrasts": {effect: column},
        "covariates": {"age": USUAL_AGE},
        "anyway": True,
    }
    if effect != "age":
        group = people.autism if effect == "autism" else people.sex
        analysis["groups"] = {
            n: [int((~group[p]).sum()), int(group[p].sum())]
            for n, p in zip(names, sites, strict=True)
        }
    if norms and people.norms is not None:
        analysis["norms"] = people.norms
    if declared:
        own = {"age": people.age, "sex": people.sex, "diagnosis": people.autism}
        own = {name: values for name, values in own.items() if effect == "age" or name != column}
        analysis["site_means"] = {
            name: {n: float(values[p].mean()) for n, p in zip(names, sites, strict=True)}
            for name, values in own.items()
        }
    sizes = tuple(len(part) for part in sites)
    shape = Shape(len(table), sizes, sizes, "subject", 0, views, names)
    data = tuple(TableData(table[:, part], views) for part in sites)
    return Trial(
        GlmParameters.model_validate(analysis, context={"features": _views(people)}), data, shape
    )


def _views(people: Real) -> tuple[TableView, ...]:
    limits = {"low": LIMITS[0], "high": LIMITS[1]}
    person = {
        "diagnosis": {"levels": ["control", "patient"]},
        "age": {"low": AGES[0], "high": AGES[1]},
        "sex": {"levels": ["F", "M"]},
    }
    every = (("cortex", dict.fromkeys(people.names, limits)), ("who", person))
    return tuple(
        TableView.model_validate({"name": name, "source": "table", "columns": columns})
        for name, columns in every
    )


def pooled_of(people: Real, effect: str, chosen: Flags | None = None) -> tuple[Array, Array, Array]:
    """Least squares with a constant of every site, in pooled deviations; per ten years of age."""
    here = np.ones(len(people.site), dtype=bool) if chosen is None else chosen
    columns = {"autism": people.autism, "sex": people.sex, "age": people.age / 10}
    order = (effect, *(name for name in EFFECTS if name != effect))
    own = [columns[name][here].astype(np.float64) for name in order]
    present = np.unique(people.site[here])
    constants = (people.site[here][None] == present[:, None]).astype(np.float64)
    unit = people.outcomes.std(axis=1)[:, None]
    return least_squares(np.vstack([*own, constants]), people.outcomes[:, here] / unit)


def one_run(
    people: Real, trial: Trial, pooled: tuple[Array, Array, Array], epsilon: float, seed: int
) -> dict[str, float]:
    """A run's errors and decisions against pooled least squares."""
    noise = noise_of(epsilon, len(trial.shape.subjects))
    result = run_trial(trial, noise, np.random.default_rng((seed, 61)))
    unit = result.arrays["deviation"] / people.outcomes.std(axis=1)
    effect, error, low, high = (result.arrays[n] * unit for n in ("effect", "error", "low", "high"))
    known, told = found_by(pooled[2]), result.arrays["q"] <= trial.parameters.discoveries
    told = told & ~result.arrays["withheld"]
    return {
        "square": float(np.mean(np.square(effect - pooled[0]))),
        "stated": float(np.mean(np.square(error))),
        "again": float(np.mean(np.square(result.numbers["forecast_error"] * unit))),
        "covered": float(np.mean((low <= pooled[0]) & (pooled[0] <= high))),
        "slope": float(effect @ pooled[0] / (pooled[0] @ pooled[0])),
        "found": float(told.sum()),
        "both": float((told & known).sum()),
        "withheld": float(result.arrays["withheld"].mean()),
    }


_COLUMNS = (
    *("effect", "norms", "ε", "rms error against pooled", "over pooled SE", "stated SE"),
    *("pooled in interval", "slope on pooled", "found", "pooled ones of these", "withheld"),
    "forecast / stated",
)


def main(folder: Path, seeds: int, epsilons: list[float]) -> None:
    """Print the table, a row as soon as it is known."""
    people = read(folder)
    count = int(people.site.max()) + 1
    print(f"{len(people.site):,} persons at {count} sites, {len(people.names)} outcomes\n")
    print(f"| {' | '.join(_COLUMNS)} |\n|{' --- |' * len(_COLUMNS)}", flush=True)
    for effect in EFFECTS:
        pooled = pooled_of(people, effect)
        _tell_pooled(people, effect, pooled)
        for name, norms, declared in _WAYS:
            if norms and people.norms is None:
                continue
            trial = trial_of_real(people, effect, norms=norms, declared=declared)
            for epsilon in epsilons:
                tally = Tally()
                for seed in range(seeds):
                    tally.add(**one_run(people, trial, pooled, epsilon, seed))
                print(_row(effect, name, epsilon, tally, pooled), flush=True)


def _tell_pooled(people: Real, effect: str, pooled: tuple[Array, Array, Array]) -> None:
    """Rows of pooled persons, and of the site that does best alone."""
    blank = " – |" * 4
    size = float(np.sqrt(np.mean(np.square(pooled[1]))))
    print(
        f"| {effect} | pooled | | | 1 | {size:.3f} | – | 1 | {found_by(pooled[2]).sum()} |{blank}"
    )
    errors = []
    for s in range(int(people.site.max()) + 1):
        here = people.site == s
        group = people.autism[here] if effect == "autism" else people.sex[here]
        if here.sum() < _ALONE or (effect != "age" and len(np.unique(group)) < 2):
            continue
        alone = pooled_of(people, effect, here)
        errors.append(float(np.sqrt(np.mean(np.square(alone[0] - pooled[0])))))
    print(f"| {effect} | best site alone | | {min(errors):.3f} | {min(errors) / size:.1f} |{blank}")


def _row(
    effect: str, name: str, epsilon: float, tally: Tally, pooled: tuple[Array, Array, Array]
) -> str:
    size = float(np.sqrt(np.mean(np.square(pooled[1]))))
    cells = [
        effect,
        name,
        f"{epsilon:g}",
        f"{tally.root('square'):.3f}",
        f"{tally.root('square') / size:.2f}",
        f"{tally.root('stated'):.3f}",
        f"{tally.mean('covered'):.3f}",
        f"{tally.mean('slope'):.2f}",
        f"{tally.mean('found'):.1f}",
        f"{tally.mean('both'):.1f}",
        f"{tally.mean('withheld'):.2f}",
        f"{tally.root('again') / tally.root('stated'):.2f}",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    given = [float(text) for text in sys.argv[3:]] or [1.0, 2.0, 4.0, 8.0]
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 6, given)
