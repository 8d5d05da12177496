"""``python -m benchmarks.forecasts [ANALYSIS ...] [--figure FILE]``: forecasts and measurements.

For every analysis of `ANALYSES` over a grid of ε and participants, the plan's own `expect` is
compared with studies of simulated participants, computed by the code and with the noise of a real
run.
"""

import argparse
import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from benchmarks.forecast_trials import ANALYSES, Trial
from benchmarks.honesty.cells import Cell
from benchmarks.honesty.running import answer
from benchmarks.studies import study_of
from consortium.algorithms import REGISTRY
from consortium.algorithms.assumed import robust_deviation
from consortium.algorithms.base import AnalysisPlan, Array
from consortium.coordinator.design import Assumed
from consortium.simulation.array_data import ArrayData
from consortium.study.outlook import Outlook

EPSILONS = (1.0, 2.0, 4.0, 8.0)
PERSONS = (400, 1600, 6400)
_ACROSS = 4
_WIDTH = 40  # characters of a label's line
_DECADE = 3.0  # ratio of forecasts above which axes are logarithmic
NEAR = 0.1
"""Tolerated deviation of the measured number, relative to the forecast."""


@dataclass(frozen=True)
class Row:
    """A cell of the grid."""

    name: str
    what: str
    epsilon: float
    persons: int
    foretold: float
    measured: float
    error: float
    told: float

    @property
    def off(self) -> float:
        """Return the deviation of the measured number, relative to the forecast."""
        return self.measured / self.foretold - 1.0 if self.foretold else math.nan


def row(name: str, epsilon: float, persons: int, repetitions: int, first_seed: int = 0) -> Row:
    """Forecast one cell, and measure it on studies of the given and the following seeds."""
    trial, cell = ANALYSES[name], Cell("no effect", epsilon, persons)
    told: list[Array] = []
    first = None
    for seed in range(first_seed, first_seed + repetitions):
        rng = np.random.default_rng([persons, int(100 * epsilon), seed])
        sites = trial.people(cell, rng)
        if first is None:
            first = Outlook(_assumed(trial, cell, sites).plan).expected[0]
        told.append(trial.told(answer(trial.algorithm, trial.analysis, sites, epsilon, rng)))
    assert first is not None
    all_told = np.concatenate(told)
    measured, error = _measured(all_told, trial)
    share = sum(map(bool, map(len, told))) / repetitions
    return Row(name, first.name, epsilon, persons, first.value, measured, error, share)


def _measured(told: Array, trial: Trial) -> tuple[float, float]:
    """Return a mean, or the deviation of most errors, with its own standard error."""
    if not len(told):
        return math.nan, math.nan
    if trial.mean:
        return float(told.mean()), float(told.std()) / math.sqrt(len(told))
    level = trial.times * robust_deviation(told)
    return level, 1.17 * level / math.sqrt(len(told))


def _assumed(trial: Trial, cell: Cell, sites: list[ArrayData]) -> Assumed:
    study = study_of(
        *(trial.algorithm, trial.analysis, cell.sites, cell.epsilon),
        views=trial.views,
    )
    return Assumed(study, sites[0].extent, cell.sizes, 1)


def main() -> None:
    """Print one table in Markdown, and draw it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forecasts")
    parser.add_argument("analyses", nargs="*", metavar="ANALYSIS", help=", ".join(ANALYSES))
    parser.add_argument("--repetitions", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    assert all(
        REGISTRY[each.algorithm].expect is not AnalysisPlan.expect for each in ANALYSES.values()
    )
    print("| analysis | what | ε | participants | forecast | measured | off | reported |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    with ProcessPoolExecutor(given.processes) as pool:
        futures = [
            pool.submit(row, *cell, given.repetitions, given.first)
            for cell in product(given.analyses or ANALYSES, EPSILONS, PERSONS)
        ]
        rows = [_shown(future.result()) for future in futures]
    if given.figure:
        draw(rows, given.figure)


def _shown(found: Row) -> Row:
    """Print each row as soon as it is computed."""
    measured = "–" if math.isnan(found.measured) else f"{found.measured:.3g} ± {found.error:.2g}"
    off = "–" if math.isnan(found.off) else f"{100 * found.off:+.0f} %"
    print(
        f"| {found.name} | {found.what} | {found.epsilon:g} | {found.persons:,} | "
        f"{found.foretold:.3g} | {measured} | {off} | "
        f"{found.told:.2f} |",
        flush=True,
    )
    return found


def draw(rows: list[Row], path: Path) -> None:
    """Draw measured over forecast, one panel an analysis, with the tenth on either side."""
    told = [each.name for each in rows if each.told >= 0.5]
    names = [name for name in dict.fromkeys(told) if told.count(name) > 1]
    lines = -(-len(names) // _ACROSS)
    figure = Figure(figsize=(11, 3 * lines), dpi=110, layout="constrained")
    places = figure.subplots(lines, _ACROSS, squeeze=False).ravel()
    for place in places[len(names) :]:
        place.set_axis_off()
    for place, name in zip(places, names, strict=False):
        own = [each for each in rows if each.name == name and each.told >= 0.5]
        line: Array = np.array(sorted(each.foretold for each in own))
        place.plot(line, line, color="#4b5a69", linewidth=1)
        place.fill_between(line, line * (1 - NEAR), line * (1 + NEAR), color="#0b5c6b", alpha=0.15)
        for persons, mark in zip(PERSONS, "o^s", strict=True):
            some = [each for each in own if each.persons == persons]
            place.errorbar(
                [each.foretold for each in some],
                [each.measured for each in some],
                [each.error for each in some],
                fmt=mark,
                markersize=4,
                label=f"{persons:,} participants",
            )
        if own and not ANALYSES[name].mean and line[-1] > _DECADE * line[0]:
            place.set_xscale("log")
            place.set_yscale("log")
            place.xaxis.set_minor_formatter(NullFormatter())
            place.yaxis.set_minor_formatter(NullFormatter())
        else:
            place.locator_params(axis="x", nbins=4)
        place.set_title(name, fontsize=9)
        place.set_xlabel(fill(f"forecast: {own[0].what if own else ''}", _WIDTH), fontsize=7)
        place.set_ylabel("measured", fontsize=7)
        place.tick_params(labelsize=6)
        place.grid(alpha=0.3)
    places[0].legend(fontsize=6)
    figure.savefig(path, facecolor="white")


if __name__ == "__main__":
    main()
