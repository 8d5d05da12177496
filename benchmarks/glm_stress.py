"""``python -m benchmarks.glm_stress [RUNS [PERSONSxOUTCOMESxSITES ε]]``: one difficulty at a time.

Participants are those of `glm_data` without difficulties, then with heavy tails, unequal scanners,
unbalanced groups, sites' offsets or wrong public norms, each separately, and all together.
Covariates depend on group and site in every row. Releases have noise of the exact distribution (one
colluding site, δ = 1e-5); one process. Errors are in public standard deviations.
"""

from dataclasses import replace

import numpy as np

from benchmarks.glm_data import Cell, Unkind, make_people
from benchmarks.glm_runs import make_trial, noise_of, run_trial
from benchmarks.glm_variants import COLUMNS, noted, row_of
from benchmarks.timing import Tally, command, heading, line
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.power import forecast_power, why_hopeless

CELL, EPSILON = (1000, 68, 8), 4.0
_KIND = Unkind(tails=False, variances=1.0, parts=(0.5, 0.5), alone=False, offsets=0.0, norms=0.0)
STRESS = {
    "nothing unkind": _KIND,
    "tails of t with 5 degrees of freedom": replace(_KIND, tails=True),
    "variances of scanners up to 4 times as large": replace(_KIND, variances=4.0),
    "groups of .1 to .9, one site of one group": replace(_KIND, parts=(0.1, 0.9), alone=True),
    "sites' offsets of .6": replace(_KIND, offsets=0.6),
    "norms off by 10 %": replace(_KIND, norms=0.1),
    "all of them": Unkind(variances=4.0, parts=(0.1, 0.9)),
}


def stressed(cell: Cell, runs: int, epsilon: float, unkind: Unkind) -> Tally:
    """Return statistics of runs with one difficulty, and how often the plan is worth it."""
    tally = Tally()
    noise = noise_of(epsilon, cell[2])
    for number in range(runs):
        generator = np.random.default_rng((number, 14, *cell))
        people = make_people(*cell, generator, unkind=unkind)
        trial = make_trial(people)
        plan = Glm(trial.parameters, replace(trial.shape, noise=noise))
        result = run_trial(trial, noise, generator, plan=plan)
        noted(tally, result, people.truth / people.deviation)
        foretold = forecast_power(plan)
        tally.add(forecast=foretold.error**2, feasible=float(not why_hopeless(plan, foretold)))
    return tally


def main(runs: int = 10, cell: Cell = CELL, epsilon: float = EPSILON) -> None:
    """Print the table in Markdown, a row as soon as it is known."""
    persons, entries, sites = cell
    print(
        f"{persons:,} participants x {entries} outcomes, {sites} sites, "
        f"ε = {epsilon:g}, {runs} runs\n"
    )
    heading(f"{COLUMNS} | worth it")
    for name, unkind in STRESS.items():
        tally = stressed(cell, runs, epsilon, unkind)
        line(*row_of(name, tally), f"{100 * tally.mean('feasible'):.0f} %")


if __name__ == "__main__":
    command(main)
