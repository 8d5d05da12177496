"""``python -m benchmarks.glm_units [RUNS [CELL ...]]``: families and sessions as units of `glm`.

Made-up families of one to five, of whom some are patients, or participants with one to five
sessions, at sites that differ in level. What rows of a unit have in common is a part ICC of an
outcome's variance. A fifth of the outcomes have an effect. Releases have noise of the exact law
(one colluding site, δ = 1e-5), at 6 and 12 sites, or none. *Size* is how often p is below .05
without effect; *GLS* the error over that of generalized least squares at the true ICC, every unit
counting by its rows.
"""

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.glm_runs import TableData, Trial, noise_of, run_trial
from consortium.algorithms.base import Shape
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.algorithms.glm.power import forecast_power

Array = NDArray[np.float64]
UNITS, MOST, OUTCOMES, LEVELS = 1200, 5, 10, 0.5
NOISES = ((6, 8.0), (12, 8.0), (6, None), (12, None))
DIFFER = {"family": 0.6, "age": 0.8}
"""Part of units with patients and others, or of several rows."""
_DEVIATION = 0.25  # of ages, in the vector's unit
_UNIT = 1.12  # of outcomes
_COLUMNS = "cell", "sites", "ε", "size", "coverage", "withheld", "stated", "forecast", "RMSE", "GLS"


@dataclass(frozen=True)
class Cell:
    """A row of the table."""

    icc: float = 0.3
    """Part of an outcome's variance that a unit's rows have in common."""
    stated: float = 0.3
    """Correlation that the study works with."""
    kind: str = "family"
    """Relatives, of whom each may be a patient or not; sessions of patients and controls; or the
    slope of the age, by sessions a few years apart."""
    heavy: bool = False
    """Whether both parts of an outcome have tails of t with five degrees of freedom."""
    ages: float = 0.0
    """Deviation of sites' mean ages, which go with sites' levels."""
    effect: float = 0.3
    off: float = 0.0
    """How many deviations the stated location and mean age are too low."""
    wide: float = 1.0
    """Stated deviations of outcomes and age over the true ones."""
    ratio: float = 1.0
    """Patients' deviation over controls'; of a slope, that of who is above the mean age."""
    part: tuple[float, float] = (0.3, 0.6)
    """Range of patients' part of a site."""


UNKIND: dict[str, dict[str, Any]] = {
    "half off, ratio 1.5": {"off": 0.5, "ratio": 1.5},
    "two off, ratio 1.5": {"off": 2.0, "ratio": 1.5},
    "two off, deviations x 3, ratio 1.5": {"off": 2.0, "wide": 3.0, "ratio": 1.5},
    "half off, deviations x 1/3, ratio 1.5": {"off": 0.5, "wide": 1 / 3, "ratio": 1.5},
    "half off, ratio 1.5, other ages": {"off": 0.5, "ratio": 1.5, "ages": 1.0},
    "no effect, two off, ratio 1.5, other ages": {
        "off": 2.0,
        "ratio": 1.5,
        "ages": 1.0,
        "effect": 0.0,
    },
    "half off, rare 15 %, ratio 2": {"off": 0.5, "ratio": 2.0, "part": (0.1, 0.2)},
    "half off, heavy, ratio 1.5, other ages": {
        "off": 0.5,
        "ratio": 1.5,
        "ages": 1.0,
        "heavy": True,
    },
}
CELLS = {
    "families, ICC 0, stated 0": Cell(0.0, 0.0),
    "families, ICC 0, stated .5": Cell(0.0, 0.5),
    "families, ICC .3": Cell(),
    "families, ICC .6": Cell(0.6, 0.6),
    "families, ICC .2, stated 0": Cell(0.2, 0.0),
    "families, ICC .2, stated .5": Cell(0.2, 0.5),
    "families, ICC .8, stated 0": Cell(0.8, 0.0),
    "families, ICC .8, stated .5": Cell(0.8, 0.5),
    "families, heavy tails": Cell(heavy=True),
    "families, sites of other ages": Cell(ages=1.0),
    "sessions, ICC .6": Cell(0.6, 0.6, "sessions"),
    "sessions, ICC .8, stated .5": Cell(0.8, 0.5, "sessions", heavy=True),
    "age by sessions, ICC .6": Cell(0.6, 0.6, "age"),
    "age by sessions, ICC .8, stated 0": Cell(0.8, 0.0, "age", heavy=True),
    **{
        f"{kind}, {name}": replace(Cell(icc, icc, kind), **given)
        for kind, icc in (("family", 0.3), ("sessions", 0.6), ("age", 0.6))
        for name, given in UNKIND.items()
    },
}


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of units, those of a unit and of a site one behind the other."""

    outcomes: Array
    """V x R."""
    group: Array
    """Length R. 0 or 1."""
    columns: Array
    """p x R. Within -1 and 1."""
    unit: NDArray[np.int64]
    site: NDArray[np.int64]
    """Whole numbers, length R."""


def make_rows(cell: Cell, sites: int, units: int, generator: np.random.Generator) -> Rows:
    """Draw the rows of a study, with age and sex as columns."""
    home = np.sort(generator.integers(sites, size=units))
    unit = np.repeat(np.arange(units), generator.integers(1, MOST + 1, units))
    site, rows = home[unit], len(unit)
    level = generator.standard_normal(sites)
    own = 0.8 * generator.standard_normal(units)[unit]
    age = own + 0.4 * generator.standard_normal(rows) + cell.ages * level[site]
    sex = np.sign(generator.standard_normal(rows if cell.kind == "family" else units))
    chance = generator.uniform(*cell.part, sites)[site]
    drawn = generator.random(rows if cell.kind == "family" else units)
    if cell.kind != "family":
        sex, drawn = sex[unit], drawn[unit]
    group = (drawn < chance).astype(np.float64)
    shared = _drawn(cell, (OUTCOMES, units), generator)[:, unit]
    y = np.sqrt(cell.icc) * shared + np.sqrt(1 - cell.icc) * _drawn(
        cell, (OUTCOMES, rows), generator
    )
    y = y * np.where(age > 0 if cell.kind == "age" else group == 1, cell.ratio, 1.0)
    y = y + LEVELS * (level + generator.standard_normal((OUTCOMES, sites)))[:, site] / np.sqrt(2)
    y = y + np.outer(truth_of(cell), age if cell.kind == "age" else group)
    y = y + (0.1 * sex if cell.kind == "age" else 0.15 * age + 0.1 * sex)
    return Rows(y, group, np.vstack([np.clip(_DEVIATION * age, -1, 1), sex]), unit, site)


def truth_of(cell: Cell) -> Array:
    """Effects, length V."""
    return np.where(np.arange(OUTCOMES) < OUTCOMES // 5, cell.effect, 0.0)


def _drawn(cell: Cell, shape: tuple[int, int], generator: np.random.Generator) -> Array:
    if cell.heavy:
        return np.asarray(generator.standard_t(5, shape) / np.sqrt(5 / 3))
    return np.asarray(generator.standard_normal(shape))


def units_trial(rows: Rows, most: int = MOST, **analysis: Any) -> Trial:
    """Put rows into a study, the first ``most`` of each unit."""
    names = [f"z{n}" for n in range(len(rows.columns))]
    views = (("brain", len(rows.outcomes)), ("dx", 1), *((name, 1) for name in names))
    table = np.vstack([rows.outcomes, 2 * rows.group - 1, rows.columns])
    first = np.searchsorted(rows.unit, rows.unit)
    place = np.arange(len(rows.unit)) - first
    kept = place < most
    blocks = np.full((most, len(table), rows.unit.max() + 1), np.nan)
    blocks[place[kept], :, rows.unit[kept]] = table[:, kept].T
    flat = blocks.reshape(most * len(table), -1)
    part = np.nanmean((blocks[:, len(rows.outcomes)] + 1) / 2, axis=0)
    starts, home = np.unique(rows.unit, return_index=True)
    groups, sites, sizes = {}, [], []
    for site in np.unique(rows.site):
        own = starts[rows.site[home] == site]
        groups[f"s{site}"] = [float((1 - part[own]).sum()), float(part[own].sum())]
        sites.append(TableData(flat[:, own], views))
        sizes.append(len(own))
    values = {
        "outcomes": "brain",
        "formula": " + ".join(["dx1", *(f"{name}1" for name in names)]),
        "contrasts": {"patients": "dx1"},
        "groups": groups,
        "units": {"family": "family_id", "most_rows": most},
        "anyway": True,
        **analysis,
    }
    shape = Shape(len(table), tuple(sizes), tuple(sizes), "subject", 0, views, tuple(groups))
    return Trial(GlmParameters.model_validate(values), tuple(sites), shape)


def study_of(cell: Cell, rows: Rows, differ: float | None = None) -> Trial:
    """The study of a cell, by default with the part of units that do differ."""
    given: dict[str, Any] = {
        "norms": {"location": -_UNIT * cell.off, "deviation": _UNIT * cell.wide},
        "covariates": {
            "z01": {"mean": -_DEVIATION * cell.off, "deviation": _DEVIATION * cell.wide}
        },
        "units": {
            "family": "family_id",
            "most_rows": MOST,
            "correlation": cell.stated,
            "usual_rows": 2.19,  # one over the mean of 1/k
            "differ": DIFFER.get(cell.kind, 0.0) if differ is None else differ,
        },
    }
    if cell.kind == "age":
        given |= {"contrasts": {"age": "z01"}, "groups": {}}
    return units_trial(rows, **given)


def least_squares(rows: Rows, icc: float, column: Array) -> Array:
    """Effects of a column by generalized least squares with a constant for every site."""
    constants = (rows.site[:, None] == np.unique(rows.site)).astype(np.float64)
    others = (
        [rows.columns.T, constants] if column is rows.group else [rows.columns[1:].T, constants]
    )
    design = np.column_stack([column, *others])
    count = np.bincount(rows.unit)[rows.unit]

    def whitened(values: Array) -> Array:
        sums = np.stack([np.bincount(rows.unit, each) for each in values.T], axis=1)
        means = sums[rows.unit] / count[:, None]
        shared = np.sqrt((1 - icc) / (1 + (count - 1) * icc))[:, None]
        return np.asarray(values - (1 - shared) * means)

    return np.asarray(
        np.linalg.lstsq(whitened(design), whitened(rows.outcomes.T), rcond=None)[0][0]
    )


def one_run(
    cell: Cell, sites: int, epsilon: float | None, number: int, differ: float | None = None
) -> dict[str, float]:
    """Errors and decisions of a run."""
    generator = np.random.default_rng([number, sites])
    rows = make_rows(cell, sites, UNITS, generator)
    trial = study_of(cell, rows, differ)
    noise = noise_of(epsilon, sites) if epsilon else 0.0
    found = run_trial(trial, noise, generator)
    # Age is told by a public deviation.
    own, scale = truth_of(cell), cell.wide if cell.kind == "age" else 1.0
    column = rows.columns[0] / _DEVIATION if cell.kind == "age" else rows.group
    pooled = least_squares(rows, cell.icc, column)
    unit = _UNIT * cell.wide / scale
    values = {name: unit * found.arrays[name] for name in ("effect", "error", "low", "high")}
    null = own == 0
    plan = Glm(trial.parameters, replace(trial.shape, noise=noise))
    return {
        "size": float(np.mean(found.arrays["p"][null] < 0.05)),
        "covered": float(np.mean((values["low"] <= own) & (own <= values["high"]))),
        "square": float(np.mean(np.square(values["effect"] - own))),
        "stated": float(np.mean(np.square(values["error"]))),
        "withheld": float(found.arrays["withheld"].mean()),
        "forecast": float(np.square(unit * forecast_power(plan).error)),
        "pooled": float(np.mean(np.square(pooled - own))),
    }


def row_of(name: str, sites: int, epsilon: float | None, runs: int) -> str:
    """A row in Markdown."""
    each = [one_run(CELLS[name], sites, epsilon, number) for number in range(runs)]
    mean = {key: float(np.mean([one[key] for one in each])) for key in each[0]}
    error = np.sqrt(mean["square"])
    numbers = [
        *(f"{mean[key]:.3f}" for key in ("size", "covered", "withheld")),
        *(f"{np.sqrt(mean[key]) / error:.2f}" for key in ("stated", "forecast")),
        f"{error:.3f}",
        f"{error / np.sqrt(mean['pooled']):.2f}",
    ]
    told = "none" if epsilon is None else f"{epsilon:g}"
    return f"| {' | '.join([name, str(sites), told, *numbers])} |"


def main(runs: int, names: list[str]) -> None:
    """Print the table, a row as soon as it is known."""
    print(f"{runs} runs a row; stated and forecast errors are over RMSE\n")
    print(f"| {' | '.join(_COLUMNS)} |\n|{' --- |' * len(_COLUMNS)}", flush=True)
    for name in names:
        for sites, epsilon in NOISES:
            print(row_of(name, sites, epsilon, runs), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10, sys.argv[2:] or list(CELLS))
