"""``python -m benchmarks.glm_units [RUNS[:SEED] [CELL ...]]``: families and sessions in `glm`.

Simulated families of one to five, some of them patients, or participants with one to five sessions,
at sites that differ in level. The rows of a unit have a fraction ICC of an outcome's variance in
common. A fifth of the outcomes have an effect. Releases have noise of the exact distribution (one
colluding site, δ = 1e-5), at 6, 12 and 33 sites, or none. *Size* is the frequency of p below 0.05
without effect; *GLS* the error divided by that of generalized least squares at the true ICC, which
weights every unit by its rows. Usual rows, the fraction that differs and standard deviations are
stated correctly, except as a cell's name says. Cells that begin with *fresh* were created, and
first run, after all formulas.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.glm_data import Array, deviation_within
from benchmarks.glm_runs import TableData, Trial, judged, noise_of, run_trial
from benchmarks.timing import Tally, command, heading, line
from consortium.algorithms.base import Shape
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.algorithms.glm.power import forecast_power

UNITS, MOST, OUTCOMES, LEVELS = 1200, 5, 10, 0.5
NOISES = ((6, 8.0), (12, 8.0), (33, 8.0), (12, None))
_DEVIATION = 0.25  # standard deviation of ages, in the vector's unit
_LEVELS = {"mean": 0.0, "deviation": 1.0}  # of -1 and 1, if no study declares levels
_MANY = 40_000, 2_000  # units and sites from which public numbers are computed
_COLUMNS = "cell | sites | ε | size | coverage | withheld | stated | forecast | RMSE | GLS"


@dataclass(frozen=True)
class Cell:
    """Row of the table."""

    icc: float = 0.3
    """Fraction of an outcome's variance that a unit's rows have in common."""
    stated: float = 0.3
    """Correlation that the study states."""
    kind: str = "family"
    """Relatives, each a patient or not; sessions of patients and controls; or the slope of age,
    with sessions a few years apart."""
    heavy: bool = False
    """Whether both parts of an outcome have tails of t with five degrees of freedom."""
    ages: float = 0.0
    """Standard deviation of sites' mean ages, which correlate with sites' levels."""
    effect: float = 0.3
    off: float = 0.0
    """Distance by which the stated location and mean age are too low, in standard deviations."""
    wide: float = 1.0
    """Stated standard deviations of outcomes and age divided by the true ones."""
    ratio: float = 1.0
    """Standard deviation of patients divided by that of controls; for a slope, of participants
    above the mean age divided by that of the others."""
    part: tuple[float, float] = (0.3, 0.6)
    """Range of patients' fraction of a site."""
    sizes: tuple[float, ...] = (0.2,) * MOST
    """Fractions of the units with one, two, … rows."""
    alike: float = 0.0
    """Fraction of the families whose members are all patients or all controls."""
    apart: float = 0.4
    """Standard deviation of ages within a unit."""
    differ: float = 1.0
    """Stated fraction of units that differ divided by the true one."""
    declared: bool = False
    """Whether sites declare their means of the columns."""


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


_PAIRS, _FEW = (0.0, 1.0), (0.5, 0.3, 0.1, 0.05, 0.05)
_USUAL = 0.45  # then a fifth of ages' variance is between sites, as plans assume
_SKEWED = (0.7, 0.0, 0.0, 0.0, 0.3)
CELLS |= {
    "fresh families, ICC .45": Cell(0.45, 0.45),
    "fresh families of few, ICC .25": Cell(0.25, 0.25, sizes=_FEW),
    "fresh pairs, ICC .5": Cell(0.5, 0.5, sizes=_PAIRS),
    "fresh families of one or five, ICC .4": Cell(0.4, 0.4, sizes=_SKEWED),
    "fresh families half alike, ICC .5": Cell(0.5, 0.5, alike=0.5),
    "fresh families, rare 12 %, ICC .4": Cell(0.4, 0.4, part=(0.08, 0.16)),
    "fresh families, ICC .4, ratio 2": Cell(0.4, 0.4, ratio=2.0),
    "fresh families, ICC .4, heavy, ratio 1.5, other ages": Cell(
        0.4, 0.4, heavy=True, ratio=1.5, ages=1.5
    ),
    "fresh families, ICC .6, stated .3": Cell(0.6, 0.3),
    "fresh families, ICC .5, differ half": Cell(0.5, 0.5, differ=0.5),
    "fresh families, ICC .4, two off, deviations x 2": Cell(0.4, 0.4, off=2.0, wide=2.0),
    "fresh families, ICC .4, half off, deviations x 1/2": Cell(0.4, 0.4, off=0.5, wide=0.5),
    "fresh sessions, ICC .75": Cell(0.75, 0.75, "sessions"),
    "fresh sessions of few, ICC .5, heavy": Cell(0.5, 0.5, "sessions", heavy=True, sizes=_FEW),
    "fresh sessions, rare 12 %, ICC .7, ratio 2": Cell(
        0.7, 0.7, "sessions", part=(0.08, 0.16), ratio=2.0
    ),
    "fresh sessions, ICC .7, two off, ratio 1.5, other ages": Cell(
        0.7, 0.7, "sessions", off=2.0, ratio=1.5, ages=1.5
    ),
    "fresh ages alike at sites, ICC .45": Cell(0.45, 0.45, "age"),
    "fresh ages, ICC .45": Cell(0.45, 0.45, "age", ages=_USUAL),
    "fresh ages, ICC .7": Cell(0.7, 0.7, "age", ages=_USUAL),
    "fresh ages close by, ICC .6": Cell(0.6, 0.6, "age", ages=_USUAL, apart=0.15),
    "fresh ages of siblings, ICC .3": Cell(0.3, 0.3, "age", ages=_USUAL, apart=0.8),
    "fresh ages of few, ICC .5": Cell(0.5, 0.5, "age", ages=_USUAL, sizes=_FEW),
    "fresh ages of pairs, ICC .5": Cell(0.5, 0.5, "age", ages=_USUAL, sizes=_PAIRS),
    "fresh ages, ICC .5, other ages": Cell(0.5, 0.5, "age", ages=1.5),
    "fresh ages, ICC .5, other ages, declared": Cell(0.5, 0.5, "age", ages=1.5, declared=True),
    "fresh ages, ICC .5, declared": Cell(0.5, 0.5, "age", ages=_USUAL, declared=True),
    "fresh ages, ICC .5, heavy, ratio 1.5": Cell(
        0.5, 0.5, "age", ages=_USUAL, heavy=True, ratio=1.5
    ),
    "fresh ages, ICC .7, stated .3": Cell(0.7, 0.3, "age", ages=_USUAL),
    "fresh ages, ICC .5, half off": Cell(0.5, 0.5, "age", ages=_USUAL, off=0.5),
    "fresh ages, ICC .5, one off": Cell(0.5, 0.5, "age", ages=_USUAL, off=1.0),
    "fresh ages, ICC .5, two off": Cell(0.5, 0.5, "age", ages=_USUAL, off=2.0),
    "fresh ages, ICC .5, half off, deviations x 1/2": Cell(
        0.5, 0.5, "age", ages=_USUAL, off=0.5, wide=0.5
    ),
    "fresh ages, ICC .5, half off, deviations x 2": Cell(
        0.5, 0.5, "age", ages=_USUAL, off=0.5, wide=2.0
    ),
    "fresh ages, no effect, one off, ratio 1.5, other ages": Cell(
        0.5, 0.5, "age", off=1.0, ratio=1.5, ages=1.0, effect=0.0
    ),
}


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of units, sorted by site and unit."""

    outcomes: Array
    """Outcomes, V x R."""
    group: Array
    """0 or 1, length R."""
    columns: Array
    """Columns within -1 and 1, p x R."""
    unit: NDArray[np.int64]
    site: NDArray[np.int64]
    """Unit and site of each row, integers, length R."""


def make_rows(cell: Cell, sites: int, units: int, generator: np.random.Generator) -> Rows:
    """Draw the rows of a study, with age and sex as columns."""
    home = np.sort(generator.integers(sites, size=units))
    sizes = 1 + generator.choice(len(cell.sizes), units, p=cell.sizes)
    unit = np.repeat(np.arange(units), sizes)
    site = home[unit]
    rows = len(unit)
    level = generator.standard_normal(sites)
    own = 0.8 * generator.standard_normal(units)[unit]
    age = own + cell.apart * generator.standard_normal(rows) + cell.ages * level[site]
    age = np.clip(age, -1 / _DEVIATION, 1 / _DEVIATION)
    sex = np.sign(generator.standard_normal(rows if cell.kind == "family" else units))
    chance = generator.uniform(*cell.part, sites)[site]
    drawn = generator.random(rows if cell.kind == "family" else units)
    if cell.kind != "family":
        sex = sex[unit]
        drawn = drawn[unit]
    elif cell.alike:
        same = generator.random(units)[unit] < cell.alike
        drawn = np.where(same, generator.random(units)[unit], drawn)
    group = (drawn < chance).astype(np.float64)
    shared = _drawn(cell, (OUTCOMES, units), generator)[:, unit]
    y = np.sqrt(cell.icc) * shared + np.sqrt(1 - cell.icc) * _drawn(
        cell, (OUTCOMES, rows), generator
    )
    y = y * np.where(age > 0 if cell.kind == "age" else group == 1, cell.ratio, 1.0)
    y = y + LEVELS * (level + generator.standard_normal((OUTCOMES, sites)))[:, site] / np.sqrt(2)
    y = y + np.outer(truth_of(cell), age if cell.kind == "age" else group)
    y = y + (0.1 * sex if cell.kind == "age" else 0.15 * age + 0.1 * sex)
    return Rows(y, group, np.vstack([_DEVIATION * age, sex]), unit, site)


def truth_of(cell: Cell) -> Array:
    """Return the effects, length V."""
    return np.where(np.arange(OUTCOMES) < OUTCOMES // 5, cell.effect, 0.0)


def _drawn(cell: Cell, shape: tuple[int, int], generator: np.random.Generator) -> Array:
    if cell.heavy:
        return np.asarray(generator.standard_t(5, shape) / np.sqrt(5 / 3))
    return np.asarray(generator.standard_normal(shape))


class Public(NamedTuple):
    """Public numbers of a cell."""

    rows: float
    """Harmonic mean of a unit's rows."""
    differ: float
    """Fraction of the families with patients and others; for ages, the fraction of their variance
    within sites that is within units."""
    deviation: float
    age: float
    """Standard deviation of outcomes within groups and sites, and of all ages relative to
    `_DEVIATION`."""


@lru_cache
def public_of(cell: Cell) -> Public:
    """Return numbers that a study with this cell's families would state."""
    drawn = make_rows(replace(cell, effect=0.0), _MANY[1], _MANY[0], np.random.default_rng(0))
    count = np.bincount(drawn.unit)
    part = np.bincount(drawn.unit, drawn.group) / count
    differ = float(np.mean((part > 0) & (part < 1)))
    if cell.kind == "age":
        differ = cell.apart**2 / (cell.apart**2 + 0.8**2)
    age = float(drawn.columns[0].std()) / _DEVIATION
    within = deviation_within(drawn.outcomes, drawn.group > 0.5, drawn.site)
    return Public(1 / float(np.mean(1 / count)), differ, float(within.mean()), age)


def units_trial(rows: Rows, most: int = MOST, **analysis: Any) -> Trial:
    """Create a study from rows, with the first ``most`` of each unit."""
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
    groups = {}
    sites = []
    sizes = []
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
    shape = Shape(
        features=len(table),
        subjects=tuple(sizes),
        samples=tuple(sizes),
        unit="subject",
        voxels=0,
        views=views,
        sites=tuple(groups),
    )
    return Trial(GlmParameters.model_validate(values), tuple(sites), shape)


def study_of(cell: Cell, rows: Rows, differ: float | None = None) -> Trial:
    """Return the study of a cell, by default with the correct fraction of units that differ."""
    known = public_of(cell)
    usual = known.deviation
    age = known.age * _DEVIATION
    given: dict[str, Any] = {
        "norms": {"location": -usual * cell.off, "deviation": usual * cell.wide},
        "covariates": {
            "z01": {"mean": -age * cell.off, "deviation": age * cell.wide},
            **dict.fromkeys(["dx1", "z11"] if cell.kind == "age" else ["z11"], _LEVELS),
        },
        "units": {
            "family": "family_id",
            "most_rows": max(len(cell.sizes), 2),
            "correlation": cell.stated,
            "usual_rows": known.rows,
            "differ": cell.differ * known.differ if differ is None else differ,
        },
    }
    if cell.kind == "age":
        given |= {"contrasts": {"age": "z01"}, "groups": {}}
    if cell.declared:
        given["site_means"] = {
            name: {f"s{site}": float(column[rows.site == site].mean()) for site in set(rows.site)}
            for name, column in zip(
                ("z01", "z11", "dx1"), (*rows.columns, 2 * rows.group - 1), strict=True
            )
        }
    return units_trial(rows, max(len(cell.sizes), 2), **given)


def least_squares(rows: Rows, icc: float, column: Array) -> Array:
    """Return effects of a column by generalized least squares with a constant for every site."""
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
    """Return errors and decisions of a run."""
    generator = np.random.default_rng([number, sites])
    rows = make_rows(cell, sites, UNITS, generator)
    trial = study_of(cell, rows, differ)
    noise = noise_of(epsilon, sites) if epsilon else 0.0
    found = run_trial(trial, noise, generator)
    # The slope of age is reported for one public standard deviation.
    known = public_of(cell)
    own = truth_of(cell)
    scale = cell.wide * known.age if cell.kind == "age" else 1.0
    column = rows.columns[0] / _DEVIATION if cell.kind == "age" else rows.group
    pooled = least_squares(rows, cell.icc, column)
    unit = known.deviation * cell.wide / scale
    null = own == 0
    told = found.arrays["withheld"] < 1
    low, high = (unit * found.arrays[name] for name in ("low", "high"))
    wrong = found.arrays["p"] < 0.05
    inside = (low <= own) & (own <= high)
    plan = Glm(trial.parameters, replace(trial.shape, noise=noise))
    return {
        **judged(found.arrays, own, null, unit),
        "wrong": float(np.mean(wrong & null & told)),
        "inside": float(np.mean(inside & told)),
        "null": float(np.mean(null & told)),
        "withheld": float(found.arrays["withheld"].mean()),
        "forecast": float(np.square(unit * forecast_power(plan).error)),
        "pooled": float(np.mean(np.square(pooled - own))),
    }


def row_of(name: str, sites: int, epsilon: float | None, runs: range) -> list[str]:
    """Return the cells of a row."""
    tally = Tally()
    for number in runs:
        tally.add(**one_run(CELLS[name], sites, epsilon, number))
    size, covered, withheld, null = map(tally.mean, ("size", "covered", "withheld", "null"))
    if null:  # only outcomes that are not withheld count
        size = tally.mean("wrong") / null
        covered = tally.mean("inside") / (1 - withheld)
    error = tally.root("square")
    return [
        name,
        str(sites),
        "none" if epsilon is None else f"{epsilon:g}",
        *(f"{each:.3f}" for each in (size, covered, withheld)),
        *tally.over(error, "stated", "forecast", digits=2),
        f"{error:.3f}",
        f"{error / tally.root('pooled'):.2f}",
    ]


def main(asked: str = "10", *names: str) -> None:
    """Print the table, a row as soon as it is known."""
    many, _, seed = asked.partition(":")
    runs = range(first := int(seed or 0), first + int(many))
    print(f"{len(runs)} runs a row; stated and forecast errors are over RMSE\n")
    heading(_COLUMNS)
    for name in names or CELLS:
        for sites, epsilon in NOISES:
            line(*row_of(name, sites, epsilon, runs))


if __name__ == "__main__":
    command(main)
