"""``python -m benchmarks.real FOLDER [SEEDS [EPSILON ...]]``: `glm` on real participants.

FOLDER contains ``anatomy.csv`` (a line for each participant: ``subject_id`` and columns that end in
``_thickness``, mm) and ``participants.csv`` (``subject_id``, ``site``, ``sex``, ``age``, ``asd``),
as the challenge on autism of 2018 published them, and perhaps ``norms.csv``, thicknesses of other
participants by the same names, which are a study's public norms. Or it contains series of regions
(`benchmarks.real_networks`). The data are not stored.

Every row is one effect (autism, sex, ten years of age; for networks, autism with and without their
connections) at one ε, compared with least squares over the pooled participants with a constant of
each site, and with every single site of enough participants: noise of the exact law, one colluding
site, δ = 1e-5. Errors are in deviations of the pooled outcomes.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.glm_data import Array
from benchmarks.glm_runs import (
    TableData,
    Trial,
    found_by,
    judged,
    least_squares,
    noise_of,
    run_trial,
)
from benchmarks.real_networks import DEFAULT_MODE, is_networks, read_networks
from benchmarks.timing import Tally, command, heading, line
from consortium.algorithms.base import Shape
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.views.table import TableView

Flags = NDArray[np.bool_]

THICKNESS = 1.0, 4.5  # mm
_STRENGTH, _CONNECTION = (0.1, 0.6), (-1.0, 1.0)
AGES = 5.0, 65.0
USUAL_AGE = {"mean": 18, "deviation": 10}
EFFECTS = ("autism", "sex", "age")
_WAYS = (("none", False, False), ("stated", True, False), ("none, means declared", False, True))
_TOLD = "effect", "error", "low", "high", "p", "withheld"
_ALONE = 30  # fewest participants of a site that is analysed separately


@dataclass(frozen=True, eq=False)
class Real:
    """Participants in the order of their sites."""

    names: tuple[str, ...]
    """Norms of the outcomes."""
    limits: Array
    """V x 2. Public ones of the outcomes."""
    outcomes: Array
    """V x n."""
    site: NDArray[np.int64]
    """Whole numbers, length n."""
    age: Array
    """Length n. Years."""
    sex: Flags
    autism: Flags
    """True or false, length n. Whether male, and whether a patient."""
    norms: dict[str, tuple[float, ...]] | None
    """Location and deviation that the study states."""

    @property
    def kinds(self) -> dict[str, Flags]:
        """Outcomes of one kind, such as strengths, by the first word of their names."""
        first = np.array([name.partition("_")[0] for name in self.names])
        if "strength" not in first:
            return {"": np.ones(len(first), dtype=bool)}
        return {kind: first == kind for kind in dict.fromkeys(first.tolist())}

    def only(self, kind: str) -> Real:
        """Return the same participants with outcomes of one kind."""
        chosen = self.kinds[kind]
        names = tuple(np.array(self.names)[chosen].tolist())
        return replace(
            self, names=names, limits=self.limits[chosen], outcomes=self.outcomes[chosen]
        )


def read(folder: Path) -> Real:
    """Read participants, of thicknesses or of networks."""
    return _read_networks(folder) if is_networks(folder) else _read_thicknesses(folder)


def _read_networks(folder: Path) -> Real:
    """Read participants with the strengths and connections of their networks."""
    names, outcomes, people = read_networks(folder)
    sites = np.array([person["SITE_ID"] for person in people])
    order = np.argsort(sites, kind="stable")
    limits = [_STRENGTH if name.startswith("strength") else _CONNECTION for name in names]
    return Real(
        names,
        np.array(limits),
        outcomes[:, order],
        np.unique(sites, return_inverse=True)[1].astype(np.int64)[order],
        np.array([float(person["AGE_AT_SCAN"]) for person in people])[order],
        np.array([person["SEX"] == "1" for person in people])[order],
        np.array([person["DX_GROUP"] == "1" for person in people])[order],
        None,
    )


def _read_thicknesses(folder: Path) -> Real:
    """Read participants who have every value."""
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
        np.tile(THICKNESS, (len(names), 1)),
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
    """Return the study of one effect, adjusted for the others."""
    low, high = people.limits.T[:, :, None]
    outcomes = np.clip((people.outcomes - (low + high) / 2) / ((high - low) / 2), -1, 1)
    ages = (people.age - sum(AGES) / 2) / ((AGES[1] - AGES[0]) / 2)
    labels = [np.where(each, 1.0, -1.0) for each in (people.autism, people.sex)]
    table = np.vstack([outcomes, labels[0], ages, labels[1]])
    views = (("brain", len(outcomes)), ("who", 3))
    sites = [np.flatnonzero(people.site == s) for s in range(int(people.site.max()) + 1)]
    names = tuple(f"s{s}" for s in range(len(sites)))
    column = {"autism": "diagnosis", "sex": "sex", "age": "age"}[effect]
    analysis: dict[str, Any] = {
        "outcomes": "brain",
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
    limits = [{"low": float(low), "high": float(high)} for low, high in people.limits]
    person = {
        "diagnosis": {"levels": ["control", "patient"]},
        "age": {"low": AGES[0], "high": AGES[1]},
        "sex": {"levels": ["F", "M"]},
    }
    every = (("brain", dict(zip(people.names, limits, strict=True))), ("who", person))
    return tuple(
        TableView.model_validate({"name": name, "source": "table", "columns": columns})
        for name, columns in every
    )


def pooled_of(people: Real, effect: str, chosen: Flags | None = None) -> tuple[Array, Array, Array]:
    """Return pooled least squares with a constant per site, in pooled deviations and decades."""
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
) -> dict[str, dict[str, float]]:
    """Return a run's errors and decisions relative to pooled least squares, by kind of outcome."""
    noise = noise_of(epsilon, len(trial.shape.subjects))
    result = run_trial(trial, noise, np.random.default_rng((seed, 61)))
    unit = result.arrays["deviation"] / people.outcomes.std(axis=1)
    known = found_by(pooled[2])
    told = (result.arrays["q"] <= trial.parameters.discoveries) & ~result.arrays["withheld"]
    forecast = np.square(result.numbers["forecast_error"] * unit)
    found = {}
    for kind, chosen in people.kinds.items():
        own = {name: values[chosen] for name, values in result.arrays.items() if name in _TOLD}
        effect, right = own["effect"] * unit[chosen], pooled[0][chosen]
        found[kind] = {
            **judged(own, right, right == 0, unit[chosen]),
            "again": float(np.mean(forecast[chosen])),
            "slope": _slope(effect, right),
            "found": float(told[chosen].sum()),
            "both": float((told & known)[chosen].sum()),
            "withheld": float(own["withheld"].mean()),
            "default mode": float(DEFAULT_MODE in np.array(people.names)[chosen & told]),
        }
    return found


def _slope(effect: Array, right: Array) -> float:
    """Return the slope of the reported effects on the pooled ones; NaN if none is reported."""
    shown = np.isfinite(effect)
    if not shown.any():
        return np.nan
    return float(effect[shown] @ right[shown] / (right[shown] @ right[shown]))


_COLUMNS = (
    "effect | norms | ε | rms error against pooled | over pooled SE | stated SE | "
    "pooled in interval | slope on pooled | found | pooled ones of these | withheld | "
    "forecast / stated | default mode found"
)


def main(folder: Path, seeds: int = 6, *epsilons: float) -> None:
    """Print the table, a row as soon as it is known."""
    people = read(folder)
    count, networks = int(people.site.max()) + 1, DEFAULT_MODE in people.names
    print(f"{len(people.site):,} participants at {count} sites, {len(people.names)} outcomes\n")
    heading(_COLUMNS)
    for effect in EFFECTS[: 1 if networks else None]:
        _tell_pooled(people, effect, pooled_of(people, effect))
        _tell_studies(people, effect, seeds, epsilons or (1.0, 2.0, 4.0, 8.0))
        if networks:
            _tell_studies(people.only("strength"), effect, seeds, epsilons or (1.0, 2.0, 4.0, 8.0))


def _tell_studies(people: Real, effect: str, seeds: int, epsilons: tuple[float, ...]) -> None:
    """Print rows of every way to ask, at every ε."""
    pooled, many = pooled_of(people, effect), len(people.names)
    for name, norms, declared in _WAYS:
        if norms and people.norms is None:
            continue
        trial = trial_of_real(people, effect, norms=norms, declared=declared)
        for epsilon in epsilons:
            tallies = {kind: Tally() for kind in people.kinds}
            for seed in range(seeds):
                for kind, found in one_run(people, trial, pooled, epsilon, seed).items():
                    tallies[kind].add(**found)
            for kind, tally in tallies.items():
                size = float(np.sqrt(np.mean(np.square(pooled[1][people.kinds[kind]]))))
                what = f"{effect}, {kind} of {many}" if kind else effect
                line(*_row(what, name, epsilon, tally, size))


def _tell_pooled(people: Real, effect: str, pooled: tuple[Array, Array, Array]) -> None:
    """Print rows of pooled participants, of the best single site, and of the largest."""
    blank, here = " – |" * 4, np.array(people.names) == DEFAULT_MODE
    size, own = float(np.sqrt(np.mean(np.square(pooled[1])))), found_by(pooled[2])
    told_own = _told(own, here)
    print(f"| {effect} | pooled | | | 1 | {size:.3f} | – | 1 | {own.sum()} |{blank} {told_own}")
    errors, told = [], {}
    for s in range(int(people.site.max()) + 1):
        chosen = people.site == s
        group = people.autism[chosen] if effect == "autism" else people.sex[chosen]
        if chosen.sum() < _ALONE or (effect != "age" and len(np.unique(group)) < 2):
            continue
        alone = pooled_of(people, effect, chosen)
        errors.append(float(np.sqrt(np.mean(np.square(alone[0] - pooled[0])))))
        told[int(chosen.sum())] = _told(found_by(alone[2]), here)
    best, most = min(errors), max(told)
    print(
        f"| {effect} | best single site | | {best:.3f} | {best / size:.1f} |{blank}\n"
        f"| {effect} | largest single site ({most}) | | | | | | | |{blank} {told[most]}"
    )
    if here.any():
        default = f"{pooled[0][here][0]:.2f}, p {pooled[2][here][0]:.1g}"
        print(f"| {effect} | default mode, pooled: {default} |")


def _told(found: Flags, here: Flags) -> str:
    return f"{found[here][0]:d} |" if here.any() else ""


def _row(effect: str, name: str, epsilon: float, tally: Tally, size: float) -> list[str]:
    return [
        effect.strip(),
        name,
        f"{epsilon:g}",
        *tally.over(1.0, "square"),
        *tally.over(size, "square", digits=2),
        *tally.over(1.0, "stated"),
        *tally.texts("covered"),
        *tally.texts("slope", digits=2),
        *tally.texts("found", "both", digits=1),
        *tally.texts("withheld", digits=2),
        *tally.over(tally.root("stated"), "again", digits=2),
        *tally.texts("default mode", digits=2),
    ]


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    command(main)
