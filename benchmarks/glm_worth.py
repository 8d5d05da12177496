"""``python -m benchmarks.glm_worth STUDIES [FOLDER]``: forecasts compared with real errors.

Simulated studies have 400 to 3,000 participants, 8 to 68 outcomes, 4 to 16 sites and ε of 2 to 8.
The table has how many of them the plan calls worth it without a condition, how many of these were
stopped after the first round although their real error is within the limit, and how many studies
whose real error exceeds the limit were stopped. The limit is `detect`, or the error of the largest
site by itself without noise.

FOLDER contains ``fcon1000.csv`` and ``OpenNeuroTransfer_ct_tr.csv`` and ``_te.csv`` of the
repository predictive-clinical-neuroscience/PCNtoolkit-demo. Real errors there are the root of the
squared difference from pooled least squares and the squared pooled standard error, in the unit of
reported effects: stated standard deviations, or the learned one of all outcomes. Releases have
noise of the exact distribution, one colluding site, δ = 1e-5.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.glm_data import Array, deviation_within, make_people
from benchmarks.glm_runs import (
    TableData,
    Trial,
    least_squares,
    make_trial,
    noise_of,
    run_trial,
)
from benchmarks.timing import command, heading, line
from consortium.algorithms.base import Result, Shape
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.algorithms.glm.power import DETECTABLE, forecast_power, judge_worth
from consortium.views.table import TableView

_RUNS = 6  # for the real error of a simulated study
_REAL_RUNS = 12  # for that of real participants
_DETECT = 0.5
_RATIOS = "plan / real | after round 1 / real"
_KINDS = {
    "stated numbers are right": (1.0, 0.3),
    "groups 1.3 apart in age": (1.0, 1.3),
    "outcomes vary twice as stated": (2.0, 0.3),
    "outcomes vary 3 times as stated": (3.0, 0.3),
}
_NUCLEI = ("Caudate", "Putamen", "Pallidum", "Hippocampus", "Amygdala", "Accumbens-area")
_LIMITS = {"age": (0.0, 90.0), "icv": (4e5, 2.4e6)}
_HEADS = 1.0e6, 2.2e6  # mm³; sizes beyond are failures of the segmentation


@dataclass(frozen=True)
class Judged:
    """A study that the plan calls worth it."""

    plainly: bool
    """Whether it does so without a condition."""
    stopped: bool
    exceeds: float
    """Real error over the limit."""


def simulated(number: int, wide: float, gap: float) -> Judged | None:
    """Judge a drawn study; nothing if the plan does not call it worth it."""
    rng = np.random.default_rng((number, 404))
    persons, entries, sites = (
        int(rng.choice(x)) for x in ((400, 800, 1600, 3000), (8, 20, 68), (4, 8, 16))
    )
    epsilon = float(rng.choice([2.0, 4.0, 8.0]))
    people = make_people(persons, entries, sites, rng, effect=0.0)
    covariates = people.covariates.copy()
    covariates[0] += (gap - 0.3) * 0.9 * (people.group - 0.5)
    moved = people.slopes[:, :1] * (covariates[:1] - people.covariates[:1])
    people = replace(people, covariates=covariates, outcomes=people.outcomes + moved)
    own = deviation_within(people.outcomes, people.group, people.site)
    location = people.outcomes.mean(axis=1)
    people = replace(people, deviation=own / wide, location=location, truth=np.zeros(entries))
    trial = make_trial(people, anyway=False)
    noise = noise_of(epsilon, sites)
    plan = Glm(trial.parameters, replace(trial.shape, noise=noise))
    verdict = judge_worth(plan, forecast_power(plan))
    if not verdict.startswith(("yes", "only if")):
        return None
    stopped = "effect" not in run_trial(trial, noise, rng, plan=plan).arrays
    anyway = make_trial(people, anyway=True)
    runs = [run_trial(anyway, noise, rng) for _ in range(_RUNS)]
    squares = [np.square(r.arrays["effect"] * r.arrays["deviation"] / own) for r in runs]
    error = float(np.sqrt(np.nanmean(squares)))
    alone = _alone(people.design, people.outcomes, people.group, people.site, own)
    return Judged(
        verdict == "yes", stopped, max(error / alone, DETECTABLE * wide * error / _DETECT)
    )


def _alone(
    design: Any, outcomes: Array, group: NDArray[np.bool_], site: NDArray[np.int64], unit: Array
) -> float:
    """Return the standard error of the site with most information, by least squares."""
    counts = np.bincount(site)
    share = np.bincount(site, group) / counts
    chosen = site == int(np.argmax(counts * share * (1 - share)))
    errors = least_squares(design(chosen), outcomes[:, chosen])[1]
    return float(np.sqrt(np.mean(np.square(errors / unit))))


@dataclass(frozen=True, eq=False)
class RealTable:
    """Participants of a table, in the order of their sites."""

    outcomes: Array
    columns: dict[str, Array]
    site: NDArray[np.int64]
    limits: Array
    """V x 2."""


def read_table(folder: Path, names: Sequence[str], *, nuclei: bool) -> RealTable:
    """Read thicknesses, or volumes of nuclei, of complete participants."""
    rows = [row for name in names for row in _rows(folder / name)]
    heads = [head for head in rows[0] if head.endswith("_thickness") and "Mean" not in head]
    if nuclei:
        heads = [f"{side}-{name}" for side in ("Left", "Right") for name in _NUCLEI]
    values = np.array([[_number(row[head]) for row in rows] for head in heads])
    icv = np.array([_number(row["eTIV"]) for row in rows])
    fits = (values > 0).all(axis=0) & (_HEADS[0] < icv) & (icv < _HEADS[1])
    where = np.unique([row["site"] for row in rows], return_inverse=True)[1].astype(np.int64)
    order = np.flatnonzero(fits)[np.argsort(where[fits], kind="stable")]
    columns = {
        name: np.array([_number(row[name]) for row in rows])[order] for name in ("age", "sex")
    }
    values = values[:, order]
    limits = np.stack([values.min(axis=1) / 2, 1.2 * values.max(axis=1)], axis=1)
    if not nuclei:
        limits[:] = 1.0, 4.5
    site = np.unique(where[order], return_inverse=True)[1].astype(np.int64)
    return RealTable(values, columns | {"icv": icv[order]}, site, limits)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def _number(text: str) -> float:
    return float(text) if text.strip() else np.nan


def real_trial(data: RealTable, formula: str, **analysis: Any) -> Trial:
    """Return the study of the formula's first column."""
    terms = formula.split(" + ")
    low, high = data.limits.T[:, :, None]
    rows = [np.clip((data.outcomes - (low + high) / 2) / ((high - low) / 2), -1, 1)]
    columns: dict[str, Any] = {}
    for term in terms:
        if term in _LIMITS:
            least, most = _LIMITS[term]
            columns[term] = {"low": least, "high": most}
            rows.append((data.columns[term] - (least + most) / 2)[None] / ((most - least) / 2))
        else:
            columns[term] = {"levels": ["no", "yes"]}
            rows.append(2 * data.columns[term][None] - 1)
    parts = [np.flatnonzero(data.site == s) for s in range(int(data.site.max()) + 1)]
    values: dict[str, Any] = {
        "outcomes": "brain",
        "formula": formula,
        "contrasts": {terms[0]: terms[0]},
        **analysis,
    }
    if terms[0] not in _LIMITS:
        second = [int(data.columns[terms[0]][part].sum()) for part in parts]
        values["groups"] = {
            f"s{s}": [len(part) - many, many]
            for s, (part, many) in enumerate(zip(parts, second, strict=True))
        }
    table = np.vstack(rows)
    views = (("brain", len(rows[0])), ("who", len(terms)))
    sizes = tuple(len(part) for part in parts)
    names = tuple(f"s{s}" for s in range(len(parts)))
    outcomes = {f"x{v}": {"low": a, "high": b} for v, (a, b) in enumerate(data.limits.tolist())}
    known = [
        TableView.model_validate({"name": name, "source": "table", "columns": each})
        for name, each in (("brain", outcomes), ("who", columns))
    ]
    return Trial(
        GlmParameters.model_validate(values, context={"features": known}),
        tuple(TableData(table[:, part], views) for part in parts),
        Shape(
            features=len(table),
            subjects=sizes,
            samples=sizes,
            unit="subject",
            voxels=0,
            views=views,
            sites=names,
        ),
    )


def real_row(
    data: RealTable, formula: str, epsilon: float, unit: float = 1.0, **analysis: Any
) -> list[str]:
    """Return errors, forecasts over them, verdict and stops of a study of real participants.

    Parameters
    ----------
    unit : float
        Step of the column that a slope is reported for, in the column's own unit.
    """
    terms = formula.split(" + ")
    constants = (data.site[None] == np.unique(data.site)[:, None]).astype(np.float64)
    others = [data.columns[name] - data.columns[name].mean() for name in terms[1:]]
    design = np.vstack([data.columns[terms[0]] / unit, *others, constants])
    design /= np.where(np.abs(design).max(axis=1) > 1e3, 1e5, 1.0)[:, None]
    effects, errors, _ = least_squares(design, data.outcomes)
    trial = real_trial(data, formula, anyway=True, **analysis)
    noise = noise_of(epsilon, len(trial.sites))
    plan = Glm(trial.parameters, replace(trial.shape, noise=noise))
    runs = [
        run_trial(trial, noise, np.random.default_rng((seed, 77)), plan=plan)
        for seed in range(_REAL_RUNS)
    ]
    units = [r.arrays["deviation"] for r in runs]
    apart = [r.arrays["effect"] - effects / each for r, each in zip(runs, units, strict=True)]
    if np.isnan(apart).all():
        return [f"{epsilon:g}", "all withheld", "–", "–", "–", "–", "–"]
    pooled = np.mean([np.square(errors / each) for each in units])
    error = float(np.sqrt(np.nanmean(np.square(apart)) + pooled))
    again = float(np.sqrt(np.mean([_again(r) ** 2 for r in runs])))
    careful = real_trial(data, formula, anyway=False, **analysis)
    stops = [
        "effect"
        not in run_trial(careful, noise, np.random.default_rng((seed, 5)), plan=None).arrays
        for seed in range(_REAL_RUNS)
    ]
    planned = forecast_power(plan)
    return [
        f"{epsilon:g}",
        f"{error:.3f}",
        f"{np.nanmean(apart):+.3f}",
        f"{planned.error / error:.2f}",
        f"{again / error:.2f}",
        judge_worth(plan, planned),
        f"{sum(stops)} of {len(stops)}",
    ]


def _again(result: Result) -> float:
    return float(result.numbers["forecast_error"])


def _real_rows(folder: Path) -> Iterator[list[str]]:
    many = ("fcon1000.csv",)
    few = ("OpenNeuroTransfer_ct_tr.csv", "OpenNeuroTransfer_ct_te.csv")
    thick = read_table(folder, many, nuclei=False)
    norms = {
        "location": tuple(thick.outcomes.mean(axis=1).tolist()),
        "deviation": tuple(deviation_within(thick.outcomes, thick.site < 0, thick.site).tolist()),
    }
    age: dict[str, float] = {"mean": 29, "deviation": 15}
    head: dict[str, float] = {"mean": 1.5e6, "deviation": 1.6e5}
    for epsilon in (4.0, 8.0):
        for name, given in (("", age), (", within 8.25", age | {"within": 8.25})):
            row = real_row(
                thick, "age + sex", epsilon, 15.0, norms=norms, covariates={"age": given}
            )
            yield [f"fcon1000, 148 thicknesses, age{name}", *row]
        for name, stated in (("no norms", {}), ("norms", norms)):
            row = real_row(thick, "sex + age", epsilon, norms=stated, covariates={"age": age})
            yield [f"fcon1000, 148 thicknesses, sex, {name}", *row]
        for source, files in (("fcon1000", many), ("OpenNeuro", few)):
            nuclei = read_table(folder, files, nuclei=True)
            both = {"age": age, "icv": head}
            row = real_row(nuclei, "sex + age + icv", epsilon, covariates=both)
            yield [f"{source}, 12 nuclei, sex with age and head size", *row]
            row = real_row(nuclei, "sex + age + icv", epsilon, covariates=both, gap=1.2)
            yield [f"{source}, the same, gap 1.2 stated", *row]


def main(studies: int = 50, folder: Path | None = None) -> None:
    """Print both tables."""
    heading("studies | plainly worth it | wrong stops of these | exceeding the limit | stopped")
    for name, (wide, gap) in _KINDS.items():
        drawn = (simulated(number, wide, gap) for number in range(4 * studies))
        judged = [*islice((each for each in drawn if each is not None), studies)]
        plain = [e for e in judged if e.plainly]
        over = [e for e in judged if e.exceeds > 1]
        wrong = sum(e.stopped and e.exceeds <= 1 for e in plain)
        counts = len(plain), wrong, len(over), sum(e.stopped for e in over)
        line(name, *map(str, counts))
    if folder is not None:
        print()
        heading(f"study | ε | real error | shift | {_RATIOS} | worth it | stopped")
        for row in _real_rows(folder):
            line(*row)


if __name__ == "__main__":
    command(main)
