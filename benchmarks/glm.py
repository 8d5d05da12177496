"""``python -m benchmarks.glm [RUNS [CELL ...]]``: what `glm` finds, and how honest it is.

A cell is PERSONSxOUTCOMESxSITES, such as 1000x152x8, or `all`; by default a few of the table in
docs/replication/glm.md. Every run draws a new consortium (`glm_data`), and every ε of 1, 2, 4 and 8
gets its releases with noise of the exact law (one colluding site, δ = 1e-5), without protocol.
Errors are in standard deviations within groups and sites. There is a process for every core that
it may use: `taskset -c 0` leaves it one.
"""

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from scipy.special import stdtr

from benchmarks.glm_data import EFFECTS, People, make_people
from benchmarks.glm_runs import (
    Array,
    Trial,
    by_regression,
    found_by,
    least_squares,
    make_trial,
    noise_of,
    run_trial,
)
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.power import forecast_power, why_hopeless

CELLS = ((400, 20, 4), (1000, 20, 8), (1000, 152, 8), (1000, 152, 33), (4000, 68, 33))
LEVELS = (1.0, 2.0, 4.0, 8.0)
GRID = tuple(product((400, 1000, 4000), (20, 68, 152, 400), (4, 8, 33)))
_WORTH = 0.5  # of the runs: the plan knows the sites' sizes, which differ from run to run
_TRIED = 1  # outcomes of a run that `regression` explains one by one


@dataclass
class Tally:
    """What the runs of a cell at one ε add up to: a list of each run's numbers by name."""

    found: dict[str, list[float]] = field(default_factory=dict)

    def add(self, **numbers: float) -> None:
        """Note a run."""
        for name, value in numbers.items():
            self.found.setdefault(name, []).append(float(value))

    def mean(self, name: str) -> float:
        """Mean over the runs, of those that have the number."""
        return float(np.nanmean(self.found[name]))

    def root(self, name: str) -> float:
        """Root of the mean."""
        return float(np.sqrt(self.mean(name)))


def _powers(p: Array, truth: Array, name: str) -> dict[str, float]:
    found = found_by(p)
    return {f"{name} {e}": float(found[np.isclose(np.abs(truth), e)].mean()) for e in EFFECTS}


def best_alone(people: People) -> Array:
    """Effects, errors and p at the site with the most information, alone: 3 x V."""
    sites = np.unique(people.site)
    counts = [(people.group[people.site == s].mean(), (people.site == s).sum()) for s in sites]
    best = sites[int(np.argmax([n * q * (1 - q) for q, n in counts]))]
    chosen = people.site == best
    return np.stack(least_squares(people.design(chosen), people.outcomes[:, chosen]))


def one_run(cell: tuple[int, int, int], number: int) -> list[dict[str, float]]:
    """Everything that is counted of one run, at every ε."""
    persons, entries, sites = cell
    generator = np.random.default_rng((number, *cell))
    people = make_people(persons, entries, sites, generator)
    pooled, alone = least_squares(people.design(), people.outcomes), best_alone(people)
    common = {
        "pooled square": float(np.mean((pooled[0] - people.truth) ** 2)),
        "alone square": float(np.mean((alone[0] - people.truth) ** 2)),
        **_powers(pooled[2], people.truth, "pooled"),
        **_powers(alone[2], people.truth, "alone"),
    }
    trial = make_trial(people)
    return [common | _at(people, trial, noise_of(e, sites), generator) for e in LEVELS]


def _at(
    people: People, trial: Trial, noise: float, generator: np.random.Generator
) -> dict[str, float]:
    truth, unit, entries = people.truth, people.deviation, len(people.truth)
    plan = Glm(trial.parameters, replace(trial.shape, noise=noise))
    result = run_trial(trial, noise, generator, plan=plan)
    effect, error = result.arrays["effect"] * unit, result.arrays["error"] * unit
    low, high = result.arrays["low"] * unit, result.arrays["high"] * unit
    p, null = result.arrays["p"], truth == 0
    # Who forgets the noise of privacy takes chance alone for the error.
    chance = error * np.sqrt(1 - float(result.numbers["noise_part"]))
    forgotten = 2 * stdtr(len(people.site) - 4, -np.abs(effect / chance))
    found = found_by(p)
    tried = generator.permutation(entries)[:_TRIED]
    single = by_regression(people, tried, noise * np.sqrt(entries), generator)
    return {
        "feasible": float(not why_hopeless(plan, forecast_power(plan))),
        "square": float(np.mean((effect - truth) ** 2)),
        "stated": float(np.mean(error**2)),
        "forecast": (float(result.numbers["forecast_error"]) * float(np.mean(unit))) ** 2,
        "covered": float(np.mean((low <= truth) & (truth <= high))),
        "false": float(np.mean(p[null] < 0.05)),
        "forgotten": float(np.mean(forgotten[null] < 0.05)),
        "falsely": float((found & null).sum() / max(1, found.sum())),
        "regression square": float(np.mean((single - truth[tried]) ** 2)),
        **_powers(p, truth, "power"),
    }


def _part(job: tuple[tuple[int, int, int], range]) -> list[list[dict[str, float]]]:
    cell, numbers = job
    return [one_run(cell, number) for number in numbers]


_COLUMNS = (
    "participants x outcomes, sites",
    "ε",
    "worth it",
    "SE",
    "over pooled",
    "over largest site",
    "over regression",
    "coverage",
    "false positives",
    "noise forgotten",
    "false discoveries",
    "power .25 / .5",
    "pooled",
    "largest site",
    "stated / RMSE",
    "forecast / RMSE",
)


def _row(cell: tuple[int, int, int], epsilon: float, tally: Tally) -> list[str]:
    persons, entries, sites = cell
    error = tally.root("square")

    def power(name: str) -> str:
        return " / ".join(f"{tally.mean(f'{name} {e}'):.2f}" for e in EFFECTS)

    return [
        f"{persons:,} x {entries}, {sites}",
        f"{epsilon:g}",
        "yes" if tally.mean("feasible") > _WORTH else "no",
        f"{error:.3f}",
        f"{error / tally.root('pooled square'):.2f}",
        f"{error / tally.root('alone square'):.2f}",
        f"{error / tally.root('regression square'):.3f}",
        f"{tally.mean('covered'):.3f}",
        f"{tally.mean('false'):.3f}",
        f"{tally.mean('forgotten'):.3f}",
        f"{tally.mean('falsely'):.3f}",
        *(power(name) for name in ("power", "pooled", "alone")),
        f"{tally.root('stated') / error:.3f}",
        f"{tally.root('forecast') / error:.3f}",
    ]


def main(runs: int, cells: tuple[tuple[int, int, int], ...]) -> None:
    """Print the table in Markdown, a row as soon as it is known."""
    print(f"{runs} runs a row\n\n| {' | '.join(_COLUMNS)} |\n|{' --- |' * len(_COLUMNS)}")
    workers = len(os.sched_getaffinity(0))
    parts = [range(part, runs, workers) for part in range(workers)]
    with ProcessPoolExecutor(workers) as pool:
        for cell in cells:
            tallies = [Tally() for _ in LEVELS]
            for numbers in pool.map(_part, [(cell, part) for part in parts]):
                for each in numbers:
                    for level, found in zip(tallies, each, strict=True):
                        level.add(**found)
            for epsilon, tally in zip(LEVELS, tallies, strict=True):
                print(f"| {' | '.join(_row(cell, epsilon, tally))} |", flush=True)


def _cell(text: str) -> tuple[int, int, int]:
    persons, entries, sites = (int(part) for part in text.split("x"))
    return persons, entries, sites


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    chosen = GRID if sys.argv[2:] == ["all"] else tuple(_cell(text) for text in sys.argv[2:])
    main(count, chosen or CELLS)
