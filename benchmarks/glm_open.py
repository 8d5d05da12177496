"""``python -m benchmarks.glm_open FOLDER [SEEDS [EPSILON ...]]``: `glm` with an open cohort.

FOLDER has ``impac/`` (`benchmarks.real` describes its files) and ``openneuro/`` with
``fcon1000.csv`` and ``OpenNeuroTransfer_ct_*.csv`` of the PCNtoolkit's demonstrations (``sub_id``,
``age``, ``sex``, columns that end in ``_thickness``, and ``site`` in the latter). A missing folder
is left out. Nothing of the data is kept.

Every row is one effect in one cohort at one ε, with norms by one way: none, those of the open
cohort stated as numbers, its table, or a false table. Errors are distances from least squares over
the pooled private participants (a constant of each site), in its standard errors. `with open` is
the second column of the results. Noise has the exact law, one colluding site, δ = 1e-5.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.glm_data import Array
from benchmarks.glm_runs import TableData, Trial, found_by, least_squares, noise_of, run_trial
from benchmarks.real import AGES, THICKNESS, read
from benchmarks.timing import Tally, command, heading, line
from consortium.algorithms.base import Shape
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.kernels.contrast_regression import SITE_VARIANCE
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.algorithms.open_cohort import OpenTable
from consortium.views.table import TableView

Flags = NDArray[np.bool_]

_OPEN_SITES = slice(4, None, 5)  # of IMPAC
_WIDE_AGES = 4.0, 90.0
_WIDER, _SHIFT = 1.5, 0.5  # false tables: factor of deviations, and a shift in deviations


@dataclass(frozen=True, eq=False)
class Cohort:
    """Participants with thicknesses, sorted by site."""

    names: tuple[str, ...]
    outcomes: Array
    """Thicknesses in mm, V x n."""
    site: NDArray[np.int64]
    columns: dict[str, Array]
    """Age in years; sex and diagnosis, 0 or 1. Length n each."""

    def chosen(self, kept: Flags) -> Cohort:
        """Return some of the participants, with their sites renumbered."""
        site = np.unique(self.site[kept], return_inverse=True)[1].astype(np.int64)
        columns = {name: values[kept] for name, values in self.columns.items()}
        return Cohort(self.names, self.outcomes[:, kept], site, columns)


@dataclass(frozen=True, eq=False)
class Comparison:
    """An effect in private participants, and an open cohort."""

    name: str
    effect: str
    private: Cohort
    open: Cohort
    ages: tuple[float, float]
    declared: bool = False
    """Whether the study declares the sites' means."""


def comparisons(folder: Path) -> Iterator[Comparison]:
    """Yield the comparisons whose files are in a folder."""
    impac = folder / "impac"
    if impac.exists():
        yield _autism(impac)
    thickness = folder / "openneuro"
    if (thickness / "fcon1000.csv").exists():
        private, cohort = _fcon(thickness)
        yield Comparison("sex, fcon1000", "sex", private, cohort, _WIDE_AGES)
        yield Comparison("age, fcon1000", "age", private, cohort, _WIDE_AGES, declared=True)


def _autism(folder: Path) -> Comparison:
    people = read(folder)
    columns = {
        "age": people.age,
        "sex": people.sex.astype(np.float64),
        "diagnosis": people.autism.astype(np.float64),
    }
    every = Cohort(people.names, people.outcomes, people.site, columns)
    sites = np.unique(people.site)
    held = np.isin(people.site, sites[_OPEN_SITES])
    private, cohort = every.chosen(~held), every.chosen(held & ~people.autism)
    return Comparison("diagnosis, IMPAC", "diagnosis", private, cohort, AGES)


def _fcon(folder: Path) -> tuple[Cohort, Cohort]:
    rows = _rows(folder / "fcon1000.csv")
    for row in rows:
        row["site"] = row["sub_id"].rpartition("_sub")[0]
    other = [
        row for path in sorted(folder.glob("OpenNeuroTransfer_ct_*.csv")) for row in _rows(path)
    ]
    names = [n for n in rows[0] if n.endswith("_thickness") and "mean" not in n and n in other[0]]
    chosen = tuple(n for n in names if _measured(rows, n) and _measured(other, n))
    return _cohort(rows, chosen), _cohort(other, chosen)


def _measured(rows: list[dict[str, str]], name: str) -> bool:
    return all(_number(row[name]) > 0 for row in rows)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig") as lines:
        return [{k.lower(): cell for k, cell in row.items()} for row in csv.DictReader(lines)]


def _cohort(rows: list[dict[str, str]], names: tuple[str, ...]) -> Cohort:
    rows = sorted(rows, key=lambda row: row["site"])
    site = np.unique([row["site"] for row in rows], return_inverse=True)[1]
    values = np.array([[_number(row[name]) for row in rows] for name in names])
    columns = {name: np.array([_number(row[name]) for row in rows]) for name in ("age", "sex")}
    made = Cohort(names, values, site.astype(np.int64), columns)
    kept = np.isfinite(values).all(axis=0) & (values > 0).all(axis=0)
    return made.chosen(kept & np.isfinite(columns["age"]) & np.isfinite(columns["sex"]))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def table_of(cohort: Cohort) -> OpenTable:
    """Return the open cohort as a table of a study."""
    names = ("site", *cohort.columns, *cohort.names)
    levels = {"sex": ("0", "1"), "diagnosis": ("control", "patient")}
    columns = [[f"s{s}" for s in cohort.site.tolist()]]
    for name, values in cohort.columns.items():
        texts = values.tolist()
        columns.append([levels[name][int(v)] if name in levels else repr(v) for v in texts])
    columns += [[repr(v) for v in row] for row in cohort.outcomes.tolist()]
    return OpenTable(names, tuple(zip(*columns, strict=True)), "0" * 64)


def trial_of_cohort(case: Comparison, way: str) -> Trial:
    """Return the study of one effect with norms by one way."""
    people = case.private
    low, high = THICKNESS if case.ages == AGES else (0.5, 5.0)
    middle, half = sum(case.ages) / 2, (case.ages[1] - case.ages[0]) / 2
    order = [case.effect, *(name for name in people.columns if name != case.effect)]
    scaled = {n: 2 * v - 1 for n, v in people.columns.items() if n != "age"}
    scaled["age"] = np.clip((people.columns["age"] - middle) / half, -1, 1)
    outcomes = np.clip((people.outcomes - (low + high) / 2) / ((high - low) / 2), -1, 1)
    who = {
        "diagnosis": {"levels": ["control", "patient"]},
        "age": {"low": case.ages[0], "high": case.ages[1]},
        "sex": {"levels": ["0", "1"]},
    }
    features = (
        {"name": "brain", "columns": {n: {"low": low, "high": high} for n in people.names}},
        {"name": "who", "columns": {n: who[n] for n in order}},
    )
    table = np.vstack([outcomes, *(scaled[name] for name in order)])
    views = (("brain", len(outcomes)), ("who", len(order)))
    parts = [np.flatnonzero(people.site == s) for s in range(int(people.site.max()) + 1)]
    sites = tuple(f"h{s}" for s in range(len(parts)))
    analysis: dict[str, Any] = {
        "outcomes": "brain",
        "formula": " + ".join(order),
        "contrasts": {case.effect: case.effect},
        "anyway": True,
    }
    by_site = dict(zip(sites, parts, strict=True))
    if case.effect != "age":
        of = people.columns[case.effect]
        groups = {n: [int((of[p] == 0).sum()), int((of[p] == 1).sum())] for n, p in by_site.items()}
        analysis["groups"] = groups
    if case.declared:
        own = {
            n: {s: float(v[p].mean()) for s, p in by_site.items()}
            for n, v in people.columns.items()
        }
        analysis["site_means"] = own
    tables = _tables()
    cohort = None
    analysis["covariates"] = {"age": _usual_age(people)}
    if way in tables:
        analysis["open"] = "cohort.tsv"
        cohort = table_of(tables[way](case.open))
    if way == "norms":
        analysis["norms"] = _norms_of(case.open)
    counts = tuple(len(part) for part in parts)
    shape = Shape(len(table), counts, counts, "subject", 0, views, sites, open_cohort=cohort)
    context = {"features": [TableView.model_validate({"source": "table"} | f) for f in features]}
    data = tuple(TableData(table[:, part], views) for part in parts)
    return Trial(GlmParameters.model_validate(analysis, context=context), data, shape)


def _usual_age(people: Cohort) -> dict[str, float]:
    """Return mean and deviation of the hospitals' ages in whole years, as a study would."""
    ages = people.columns["age"]
    return {
        n: float(5 * round(v / 5)) for n, v in (("mean", ages.mean()), ("deviation", ages.std()))
    }


def _norms_of(cohort: Cohort) -> dict[str, Any]:
    spread = np.sqrt(1 - SITE_VARIANCE) * cohort.outcomes.std(axis=1)
    return {
        "location": tuple(cohort.outcomes.mean(axis=1).tolist()),
        "deviation": tuple(spread.tolist()),
    }


def _tables() -> dict[str, Callable[[Cohort], Cohort]]:
    return {
        "open table": lambda cohort: cohort,
        "false: SD 1.5": partial(_moved, factor=_WIDER, shift=0.0),
        "false: half off": partial(_moved, factor=1.0, shift=_SHIFT),
        "false: permuted": _permuted,
    }


def _moved(cohort: Cohort, factor: float, shift: float) -> Cohort:
    means = cohort.outcomes.mean(axis=1, keepdims=True)
    spread = cohort.outcomes.std(axis=1, keepdims=True)
    outcomes = means + factor * (cohort.outcomes - means) + shift * spread
    return replace(cohort, outcomes=outcomes)


def _permuted(cohort: Cohort) -> Cohort:
    order = np.random.default_rng(0).permutation(len(cohort.names))
    ages = cohort.columns["age"]
    columns = cohort.columns | {"age": ages.max() + ages.min() - ages}
    return replace(cohort, outcomes=cohort.outcomes[order], columns=columns)


def pooled_of(case: Comparison, who: Cohort) -> tuple[Array, Array, Array]:
    """Return least squares in mm (per ten years of age), with a constant of each site."""
    order = [case.effect, *(name for name in who.columns if name != case.effect)]
    own = [who.columns[n] / (10 if n == "age" else 1) for n in order]
    own = [values for values in own if np.ptp(values) > 0]
    constants = (who.site[None] == np.unique(who.site)[:, None]).astype(np.float64)
    return least_squares(np.vstack([*own, constants]), who.outcomes)


def one_run(
    case: Comparison, trial: Trial, plan: Glm, pooled: tuple[Array, Array, Array], seed: int
) -> dict[str, float]:
    """Return a run's errors and discoveries against pooled least squares."""
    result = run_trial(trial, plan.shape.noise, np.random.default_rng((seed, 71)), plan=plan)
    unit = result.arrays["deviation"]
    if case.effect == "age":
        unit = unit * 10 / plan.parameters.covariates["age"].deviation
    effect, low, high = (unit * result.arrays[name] for name in ("effect", "low", "high"))
    shown = np.isfinite(effect)
    size = float(np.sqrt(np.mean(np.square(pooled[1]))))
    told = (result.arrays["q"] <= plan.parameters.discoveries) & shown
    known = found_by(pooled[2])
    off = (effect - pooled[0])[shown]
    found = {
        "square": float(np.mean(np.square(off))) / size**2 if shown.any() else np.nan,
        "stated": float(np.mean(np.square(unit * result.arrays["error"])[shown])) / size**2
        if shown.any()
        else np.nan,
        "covered": float(np.mean((low <= pooled[0]) & (pooled[0] <= high) & shown)) / shown.mean()
        if shown.any()
        else np.nan,
        "slope": float(effect[shown] @ pooled[0][shown] / np.square(pooled[0][shown]).sum())
        if shown.any()
        else np.nan,
        "found": float(told.sum()),
        "both": float((told & known).sum()),
        "withheld": float(1 - shown.mean()),
        "second": np.nan,
        "second told": np.nan,
    }
    if "with_open" in result.arrays:
        second = unit * result.arrays["with_open"]
        told_error = unit * result.arrays["with_open_error"]
        found["second"] = float(np.nanmean(np.square(second - pooled[0]))) / size**2
        found["second told"] = float(np.nanmean(np.square(told_error))) / size**2
    return found


_COLUMNS = (
    "effect (found by pooled) | norms | ε | error over pooled SE | stated | pooled in interval | "
    "slope on pooled | found (of pooled ones) | withheld | with open | stated"
)


def main(folder: Path, seeds: int = 4, *epsilons: float) -> None:
    """Print the table in Markdown, a row as soon as it is known."""
    heading(_COLUMNS)
    for case in comparisons(folder):
        pooled = pooled_of(case, case.private)
        size = float(np.sqrt(np.mean(np.square(pooled[1]))))
        many = f"{case.private.outcomes.shape[1]:,} at {int(case.private.site.max()) + 1}"
        title = f"{case.name}, {many}, open {case.open.outcomes.shape[1]}"
        title += f" ({int(found_by(pooled[2]).sum())} of {len(case.private.names)})"
        if np.ptp(case.open.columns[case.effect]) > 0:
            alone = pooled_of(case, case.open)[0]
            error = float(np.sqrt(np.mean(np.square(alone - pooled[0])))) / size
            line(title, "open cohort alone", "–", f"{error:.2f}", *["–"] * 7)
        for way in ("none", "norms", *_tables()):
            trial = trial_of_cohort(case, way)
            for epsilon in epsilons or (1.0, 2.0, 4.0, 8.0):
                noise = noise_of(epsilon, len(trial.shape.subjects))
                plan = Glm(trial.parameters, replace(trial.shape, noise=noise))
                tally = Tally()
                for seed in range(seeds):
                    tally.add(**one_run(case, trial, plan, pooled, seed))
                line(title, way, f"{epsilon:g}", *_row(tally))


def _row(tally: Tally) -> list[str]:
    return [
        f"{tally.root('square'):.2f}",
        f"{tally.root('stated'):.2f}",
        f"{tally.mean('covered'):.3f}",
        f"{tally.mean('slope'):.2f}",
        f"{tally.mean('found'):.1f} ({tally.mean('both'):.1f})",
        f"{tally.mean('withheld'):.2f}",
        f"{tally.root('second'):.2f}",
        f"{tally.root('second told'):.2f}",
    ]


if __name__ == "__main__":
    command(main)
