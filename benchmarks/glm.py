"""``python -m benchmarks.glm [RUNS [CELL ...]]``: errors, power and coverage of `glm`.

A cell is PERSONSxOUTCOMESxSITES, such as 1000x152x8, or `all` (default: a few of the table in
docs/replication/glm.md). Every run draws a new consortium (`glm_data`), and every ε of 1, 2, 4 and
8 gets its releases with noise of the exact distribution (one colluding site, δ = 1e-5), without the
protocol. Errors are in standard deviations within groups and sites. There is a process for every
core that it may use: `taskset -c 0` leaves it one.
"""

from dataclasses import replace
from functools import partial
from itertools import product
from typing import Literal

import numpy as np
from scipy.special import stdtr

from benchmarks.glm_data import EFFECTS, Array, Cell, People, make_people
from benchmarks.glm_runs import (
    Trial,
    by_regression,
    found_by,
    judged,
    least_squares,
    make_trial,
    noise_of,
    run_trial,
)
from benchmarks.timing import Tally, command, heading, in_processes, line
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.power import forecast_power, why_hopeless

CELLS = ((400, 20, 4), (1000, 20, 8), (1000, 152, 8), (1000, 152, 33), (4000, 68, 33))
LEVELS = (1.0, 2.0, 4.0, 8.0)
GRID = tuple(product((400, 1000, 4000), (20, 68, 152, 400), (4, 8, 33)))
_WORTH = 0.5  # fraction of the runs: the plan uses the sites' sizes, which differ from run to run
_TRIED = 1  # outcomes of a run that `regression` analyses one by one


def _powers(p: Array, truth: Array, name: str) -> dict[str, float]:
    found = found_by(p)
    return {f"{name} {e}": float(found[np.isclose(np.abs(truth), e)].mean()) for e in EFFECTS}


def best_alone(people: People) -> Array:
    """Return effects, errors and p at the most informative site by itself: 3 x V."""
    sites = np.unique(people.site)
    counts = [(people.group[people.site == s].mean(), (people.site == s).sum()) for s in sites]
    best = sites[int(np.argmax([n * q * (1 - q) for q, n in counts]))]
    chosen = people.site == best
    return np.stack(least_squares(people.design(chosen), people.outcomes[:, chosen]))


def one_run(cell: Cell, number: int) -> list[dict[str, float]]:
    """Return the statistics of one run, at every ε."""
    persons, entries, sites = cell
    generator = np.random.default_rng((number, *cell))
    people = make_people(persons, entries, sites, generator)
    pooled = least_squares(people.design(), people.outcomes)
    alone = best_alone(people)
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
    truth = people.truth
    unit = people.deviation
    entries = len(people.truth)
    plan = Glm(trial.parameters, replace(trial.shape, noise=noise))
    result = run_trial(trial, noise, generator, plan=plan)
    effect = result.arrays["effect"] * unit
    error = result.arrays["error"] * unit
    p = result.arrays["p"]
    null = truth == 0
    # Without privacy noise, the standard error would be that of sampling only.
    chance = error * np.sqrt(1 - float(result.numbers["noise_part"]))
    forgotten = 2 * stdtr(len(people.site) - 4, -np.abs(effect / chance))
    found = found_by(p)
    tried = generator.permutation(entries)[:_TRIED]
    single = by_regression(people, tried, noise * np.sqrt(entries), generator)
    return {
        "feasible": float(not why_hopeless(plan, forecast_power(plan))),
        **judged(result.arrays, truth, null, unit),
        "forecast": (float(result.numbers["forecast_error"]) * float(np.mean(unit))) ** 2,
        "forgotten": float(np.mean(forgotten[null] < 0.05)),
        "falsely": float((found & null).sum() / max(1, found.sum())),
        "regression square": float(np.mean((single - truth[tried]) ** 2)),
        **_powers(p, truth, "power"),
    }


_COLUMNS = (
    "participants x outcomes, sites | ε | worth it | SE | over pooled | over largest site | "
    "over regression | coverage | false positives | noise forgotten | false discoveries | "
    "power .25 / .5 | pooled | largest site | stated / RMSE | forecast / RMSE"
)


def _row(cell: Cell, epsilon: float, tally: Tally) -> list[str]:
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
        *tally.texts("covered", "size", "forgotten", "falsely"),
        *(power(name) for name in ("power", "pooled", "alone")),
        *tally.over(error, "stated", "forecast"),
    ]


def main(runs: int = 10, *cells: Cell | Literal["all"]) -> None:
    """Print the table in Markdown, a row as soon as it is known."""
    print(f"{runs} runs a row\n")
    heading(_COLUMNS)
    for cell in GRID if "all" in cells else [c for c in cells if c != "all"] or CELLS:
        tallies = [Tally() for _ in LEVELS]
        for each in in_processes(partial(one_run, cell), runs):
            for level, found in zip(tallies, each, strict=True):
                level.add(**found)
        for epsilon, tally in zip(LEVELS, tallies, strict=True):
            line(*_row(cell, epsilon, tally))


if __name__ == "__main__":
    command(main)
