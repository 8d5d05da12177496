"""``python -m benchmarks.describe STUDIES [SEED]``: errors and coverage of `describe`.

Eight columns of two groups at four sites. The first table has the noise of a group's mean, in
standard deviations of the column: the root mean square difference from the mean of the study's own
participants. The second has the coverage of intervals for the population, for kinds of columns that
are unlike those that the method was made with.

``python -m benchmarks.describe STUDIES SEED TABLE`` repeats a study of real participants, from the
table of phenotypes of ABIDE. ``python -m benchmarks.describe bias`` prints the biases of clipped
means, to which the constants of `clipping_bias` are fitted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from benchmarks.honesty.running import TableSite, carry_out
from benchmarks.studies import DELTA, PLAIN
from benchmarks.timing import command, heading, line
from consortium.algorithms.base import Array, Extent, Result
from consortium.algorithms.describe.kernels.clipping_bias import mean_bias, square_bias
from consortium.algorithms.findings import Finding
from consortium.errors import StudyError
from consortium.study.plan import Plan, make_plan
from consortium.study.spec import Study

_SITES = 4
_COLUMNS = 8
_MANY = 400_000
_FIGURES = (1.0, 1000), (0.5, 4000), (1.0, 400)
_CELLS = (1.0, 1000), (2.0, 1000), (4.0, 1000), (8.0, 4000)
_QUANTILES = 0.25, 0.5, 0.75
Draw = Callable[[int, Array, np.random.Generator], Array]


@dataclass(frozen=True)
class Kind:
    """Columns that participants are drawn from."""

    name: str
    draw: Draw
    """From a number, an array of groups (0 or 1) and a generator: 8 x n, in the columns' units."""
    limits: tuple[tuple[float, float], ...]
    missing: Array | None = None
    """Fraction of missing values by group and column, 2 x 8."""
    apart: bool = False
    """Whether half of the sites have only participants of one group."""

    @cached_property
    def truth(self) -> dict[str, Array]:
        """Means, standard deviations and quantiles of the population by group, within limits."""
        rng = np.random.default_rng(0)
        found: dict[str, list[Array]] = {"mean": [], "standard deviation": [], "quantile": []}
        for group in range(2):
            values = self.limited(self.draw(_MANY, np.full(_MANY, group), rng))
            found["mean"].append(values.mean(axis=1))
            found["standard deviation"].append(values.std(axis=1))
            found["quantile"].append(np.quantile(values, _QUANTILES, axis=1))
        return {name: np.stack(parts) for name, parts in found.items()}

    def limited(self, values: Array) -> Array:
        """Return values with those beyond the limits moved to the nearer one."""
        low, high = np.array(self.limits).T
        return np.clip(values, low[:, None], high[:, None])


def normal(many: int, groups: Array, rng: np.random.Generator) -> Array:
    """Draw normal columns, in which the second group differs by 0.3 standard deviations."""
    return rng.standard_normal((_COLUMNS, many)) + 0.3 * groups


def alike(many: int, groups: Array, rng: np.random.Generator) -> Array:
    """Draw columns with a common part, in which the second group differs by 0.8."""
    common = rng.standard_normal(many)
    return 0.7 * common + 0.71 * rng.standard_normal((_COLUMNS, many)) + 0.8 * groups


def uneven(many: int, groups: Array, rng: np.random.Generator) -> Array:
    """Draw two levels as numbers, scores, ages, zeros, lognormal, constant and two normal ones."""
    ages = 18 + 72 * rng.beta(2.0, 1.2 - 0.3 * groups, many)
    scores = 30 - rng.binomial(30, rng.beta(1.0, 9.0 - 4 * groups, many))
    zeros = (rng.random(many) < 0.2) * rng.exponential(10.0, many)
    return np.stack(
        [
            np.where(rng.random(many) < 0.1 + 0.1 * groups, 1.0, -1.0),
            scores.astype(float),
            ages,
            zeros,
            np.exp(0.6 * rng.standard_normal(many)),
            np.full(many, 3.0),
            rng.normal(2.5, 0.2, many),
            rng.normal(100 + 5 * groups, 15.0, many),
        ]
    )


_WIDE = ((-3.0, 3.3),) * _COLUMNS
_UNEVEN = (
    (-1.0, 1.0),
    (0.0, 30.0),
    (18.0, 90.0),
    (0.0, 60.0),
    (0.0, 8.0),
    (0.0, 10.0),
    (1.0, 6.0),
    (40.0, 160.0),
)
_LACKING = np.vstack([np.full(_COLUMNS, 0.1), np.full(_COLUMNS, 0.1)])
_LACKING[1, 0] = 1.0
KINDS = {
    kind.name: kind
    for kind in (
        Kind("normal", normal, _WIDE),
        Kind("alike", alike, _WIDE),
        Kind("uneven", uneven, _UNEVEN),
        Kind("limits at one deviation", normal, ((-1.0, 1.0),) * _COLUMNS),
        Kind("limits off by two deviations", normal, ((-1.0, 5.0),) * _COLUMNS),
        Kind("limits ten times too wide", normal, ((-30.0, 30.0),) * _COLUMNS),
        Kind("one column missing in a group", normal, _WIDE, missing=_LACKING),
        Kind("sites with one group", normal, _WIDE, apart=True),
        Kind("uneven, sites with one group", uneven, _UNEVEN, apart=True),
    )
}


@lru_cache(maxsize=16)
def plan_of(name: str, participants: int, epsilon: float) -> Plan:
    """Plan a study of a kind of columns.

    Raises StudyError if it is hopeless.
    """
    kind = KINDS[name]
    gaps = 0.0 if kind.missing is None else 0.5
    return plan_over(kind.limits, gaps, [participants // _SITES] * _SITES, epsilon)


def plan_over(
    limits: Sequence[tuple[float, float]], gaps: float, sizes: Sequence[int], epsilon: float
) -> Plan:
    """Plan a study of columns with these limits, at sites with these numbers of participants."""
    columns = {f"c{k}": {"low": low, "high": high} for k, (low, high) in enumerate(limits)}
    view = {"name": "x", "source": "table", "columns": columns, "gaps": gaps}
    group = {"name": "dx", "source": "table", "columns": {"dx": {"levels": ["no", "yes"]}}}
    made = Study.model_validate(
        {
            "study": "benchmark",
            "sites": [f"site{n + 1}" for n in range(len(sizes))],
            "data": dict(PLAIN),
            "features": [group, view],
            "privacy": {
                "epsilon": epsilon,
                "delta": DELTA,
                "colluding_sites": 1,
                "boost": "exact",
            },
            "algorithm": "describe",
            "analysis": {"groups": "dx", "quantiles": _QUANTILES},
        }
    )
    extent = Extent(len(limits) + 1, views=(("dx", 1), ("x", len(limits))))
    return make_plan(made, extent.shape(sizes, sizes, "subject"))


@dataclass(frozen=True)
class Drawn:
    """Participants of all sites."""

    values: Array
    """8 x n. NaN where missing."""
    groups: Array
    sites: list[TableSite]


def draw(kind: Kind, participants: int, rng: np.random.Generator) -> Drawn:
    """Draw the participants of a study."""
    many = participants // _SITES * _SITES
    groups = np.repeat([0, 1], many // 2)
    if not kind.apart:
        groups = rng.permutation(groups)
    values = kind.limited(kind.draw(many, groups, rng))
    if kind.missing is not None:
        values[rng.random(values.shape) < kind.missing[groups].T] = np.nan
    return Drawn(values, groups, persons_of(kind.limits, values, groups, [many // _SITES] * _SITES))


def persons_of(
    limits: Sequence[tuple[float, float]], values: Array, groups: Array, sizes: Sequence[int]
) -> list[TableSite]:
    """Return sites whose participants have these values, one site after the other."""
    low, high = np.array(limits).T[:, :, None]
    scaled = (2 * (values - low) / (high - low) - 1).clip(-1, 1)
    table = np.vstack([2.0 * groups - 1, scaled]).astype(np.float32)
    views = (("dx", 1), ("x", len(limits)))
    return [TableSite(part, views) for part in np.split(table, np.cumsum(sizes)[:-1], axis=1)]


@dataclass
class Tally:
    """Intervals that contain the truth, and those that are reported and withheld."""

    covered: int = 0
    reported: int = 0
    withheld: int = 0

    def add(self, found: Finding, truth: float) -> None:
        """Count an interval."""
        if not found.reported:
            self.withheld += 1
            return
        self.reported += 1
        close = 1e-6 * (1 + abs(truth))
        self.covered += found.low - close <= truth <= found.high + close

    @property
    def text(self) -> str:
        """Coverage, and the fraction that is withheld."""
        if not self.reported:
            return "–"
        hidden = self.withheld / (self.withheld + self.reported)
        coverage = f"{self.covered / self.reported:.3f}"
        return f"{coverage} ({100 * hidden:.0f} % withheld)" if self.withheld else coverage


def judge(kind: Kind, drawn: Drawn, result: Result, tallies: dict[str, Tally]) -> Array:
    """Count the intervals of a result; return the errors of means, groups x columns.

    Errors are differences from the means of the study's participants, in deviations of the column.
    """
    truth = kind.truth
    errors = np.full((2, _COLUMNS), np.nan)
    for row in result.tables["table1"].rows:
        column = int(str(row[1])[1:])
        for group, cell in enumerate(row[3:5]):
            assert isinstance(cell, Finding)
            own = drawn.values[column, drawn.groups == group]
            name = str(row[2]).split()[0] if row[2] == "median" else str(row[2])
            name = "quantile" if name.startswith(("quantile", "median")) else name
            if name == "missing":
                tallies[name].add(cell, float(np.isnan(own).sum()))
                continue
            place = {"quantile 0.25": 0, "median": 1, "quantile 0.75": 2}.get(str(row[2]), 0)
            all_of = truth[name]
            expected = all_of[group, place, column] if name == "quantile" else all_of[group, column]
            if kind.missing is not None and kind.missing[group, column] == 1:
                tallies["none"].add(cell, float("nan"))
                continue
            tallies[name].add(cell, float(expected))
            spread = truth["standard deviation"][group, column]
            if name == "mean" and spread > 0 and cell.reported:
                errors[group, column] = (cell.value - np.nanmean(own)) / spread
    for group, row in enumerate(result.tables["groups"].rows[:2]):
        assert isinstance(row[1], Finding)
        tallies["group"].add(row[1], float((drawn.groups == group).sum()))
    return errors


def judged(kind: Kind, epsilon: float, participants: int, seeds: Sequence[int]) -> tuple[Any, ...]:
    """Return the noise of a mean, its forecast, and the tallies."""
    plan = plan_of(kind.name, participants, epsilon)
    names = "mean", "standard deviation", "quantile", "missing", "group", "none"
    tallies = {name: Tally() for name in names}
    errors = []
    for seed in seeds:
        rng = np.random.default_rng((seed, participants, *map(ord, kind.name)))
        drawn = draw(kind, participants, rng)
        errors.append(judge(kind, drawn, carry_out(plan, drawn.sites, rng), tallies))
    squares = np.square(np.array(errors)).reshape(-1, _COLUMNS)
    known = np.maximum((~np.isnan(squares)).sum(axis=0), 1)
    noise = np.sqrt(np.nansum(squares, axis=0) / known)
    return noise, plan.analysis.expect()[0].value, tallies


def noise_table(seeds: Sequence[int]) -> None:
    """Print the noise of a group's mean beside its forecast."""
    heading("ε | participants | noise of a group's mean, SD | forecast")
    for epsilon, participants in _FIGURES:
        named = f"{epsilon:g}", f"{participants:,}"
        try:
            noise, forecast, _ = judged(KINDS["normal"], epsilon, participants, seeds)
        except StudyError as error:
            line(*named, "–", f"refused: {error}")
            continue
        root = float(np.sqrt(np.mean(np.square(noise))))
        line(*named, f"{root:.3f}", f"{forecast:.3f}")


def coverage_table(seeds: Sequence[int]) -> None:
    """Print the coverage of 95 % intervals, and the worst column's noise of a mean."""
    names = "mean", "standard deviation", "quantile", "missing", "group"
    heading(" | ".join(("columns", "ε", "participants", *names, "noise of a mean, worst column")))
    for kind in KINDS.values():
        for epsilon, participants in _CELLS:
            noise, _, tallies = judged(kind, epsilon, participants, seeds)
            texts = (tallies[name].text for name in names)
            line(kind.name, f"{epsilon:g}", f"{participants:,}", *texts, f"{noise.max():.3f}")


def skewed(shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Draw exponential columns."""
    return rng.exponential(size=shape) - 1.0


def with_zeros(shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Draw normal columns, of which the first is 0 for four of five participants."""
    table = rng.standard_normal(shape)
    first = (rng.random(shape[1]) < 0.2) * rng.exponential(size=shape[1])
    table[0] = (first - first.mean()) / first.std()
    return table


def bias_table() -> None:
    """Print the bias of the first of d clipped columns beside the deviation that is assumed."""
    heading("columns | d | λ | 1 - c | bias of a mean | assumed | of a variance | assumed")
    rng = np.random.default_rng(0)
    for draw_columns in (skewed, with_zeros):
        for numbers, margin in product((2, 8, 20), (0.5, 1.0, 2.0, 4.0)):
            table = draw_columns((numbers, _MANY // 4), rng)
            factors = np.minimum(1.0, (numbers**0.5 + margin) / np.linalg.norm(table, axis=0))
            lost = 1 - float(factors.mean())
            clipped = factors * table[0]
            mean = float(clipped.mean()) / (1 - lost)
            square = float(np.square(clipped).mean()) / (1 - lost) ** 2 - mean**2
            spread = float(table[0].std())
            apart = (table[0] - table[0].mean()) / spread
            assumed = (
                mean_bias(lost, numbers, float(np.mean(apart**3))),
                square_bias(lost, numbers, float(np.mean(apart**4))),
            )
            found = (mean - table[0].mean()) / spread, square / spread**2 - 1
            cells = (found[0], assumed[0], found[1], assumed[1])
            name = "exponential" if draw_columns is skewed else "mostly zeros"
            texts = (f"{each:.3f}" for each in (lost, *cells))
            line(name, f"{numbers}", f"{margin:g}", *texts)


_REAL = {
    "AGE_AT_SCAN": (5.0, 65.0),
    "FIQ": (40.0, 160.0),
    "VIQ": (40.0, 160.0),
    "PIQ": (40.0, 160.0),
    "ADOS_TOTAL": (0.0, 30.0),
    "SRS_RAW_TOTAL": (0.0, 190.0),
    "anat_snr": (0.0, 30.0),
    "func_mean_fd": (0.0, 2.0),
}
"""Columns of ABIDE's table with round limits, chosen before their distributions were seen."""


def real_table(path: Path, studies: int) -> None:
    """Print errors and coverage of repeated studies of ABIDE's participants at their sites."""
    people = pd.read_csv(path).sort_values("SITE_ID", kind="stable")
    values = people[list(_REAL)].to_numpy(dtype=np.float64).T
    values[values < 0] = np.nan  # -9999 means missing
    low, high = np.array(list(_REAL.values())).T[:, :, None]
    values = values.clip(low, high)
    enough = np.isnan(values).mean(axis=0) <= 0.5
    values, people = values[:, enough], people[enough]
    groups = (people["DX_GROUP"] == 1).to_numpy().astype(np.int64)
    sizes = people.groupby("SITE_ID").size().tolist()
    sites = persons_of(list(_REAL.values()), values, groups, sizes)
    print(f"{len(people):,} participants at {len(sizes)} sites")
    heading("ε | column | missing | noise of a group's mean, SD | forecast | coverage")
    for epsilon in (1.0, 2.0, 4.0):
        plan = plan_over(list(_REAL.values()), 0.5, sizes, epsilon)
        found = [real_errors(plan, sites, values, groups, seed) for seed in range(studies)]
        errors, held = np.swapaxes(np.array(found), 0, 1)
        forecast = f"{plan.analysis.expect()[0].value:.3f}"
        for number, name in enumerate(_REAL):
            root = float(np.sqrt(np.nanmean(np.square(errors[:, :, number]))))
            missing = f"{100 * np.isnan(values[number]).mean():.0f} %"
            coverage = f"{np.nanmean(held[:, :, number]):.3f}"
            line(f"{epsilon:g}", name, missing, f"{root:.3f}", forecast, coverage)


def real_errors(
    plan: Plan, sites: list[TableSite], values: Array, groups: Array, seed: int
) -> tuple[Array, Array]:
    """Return errors of means in standard deviations, and whether their intervals hold.

    The truth is the mean of the study's own participants. Both arrays are groups x columns, with
    NaN where a mean is withheld.
    """
    errors = np.full((2, len(values)), np.nan)
    held = errors.copy()
    result = carry_out(plan, sites, np.random.default_rng(seed))
    for row in result.tables["table1"].rows:
        if row[2] != "mean":
            continue
        column = int(str(row[1])[1:])
        for group, cell in enumerate(row[3:5]):
            assert isinstance(cell, Finding)
            own = values[column, groups == group]
            mean = float(np.nanmean(own))
            errors[group, column] = (cell.value - mean) / float(np.nanstd(own))
            held[group, column] = cell.low <= mean <= cell.high if cell.reported else np.nan
    return errors, held


def main(
    studies: Literal["bias"] | int = 40, seed: int = 0, participants: Path | None = None
) -> None:
    """Print the tables."""
    if isinstance(studies, str):
        bias_table()
        return
    if participants is not None:
        real_table(participants, studies)
        return
    seeds = range(seed, seed + studies)
    noise_table(seeds)
    coverage_table(seeds)


if __name__ == "__main__":
    command(main)
