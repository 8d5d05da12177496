"""`glm`: intervals of a contrast on every outcome, adjusted for site and covariates.

Its simulated participants always have scanners that differ, heavy tails and covariates
(`glm_data`).
"""

import numpy as np

from benchmarks.glm_data import make_people
from benchmarks.glm_runs import make_trial, noise_of, run_trial
from benchmarks.honesty.cells import Cell, Outcome

ENTRIES = 12


def repetition(cell: Cell, rng: np.random.Generator) -> Outcome:
    """Simulate participants of two groups, and count the false discovery rate."""
    effect = 1.0 if cell.effect else 0.0
    people = make_people(sum(cell.sizes), ENTRIES, cell.sites, rng, effect=effect)
    trial = make_trial(people)
    result, pooled = (
        run_trial(trial, noise, rng) for noise in (noise_of(cell.epsilon, cell.sites), 0.0)
    )
    truth = people.truth / people.deviation
    real = np.abs(truth) > 0
    low, high = result.arrays["low"], result.arrays["high"]
    told = result.arrays["q"] <= trial.parameters.discoveries
    return Outcome(
        tuple(map(bool, (low <= truth) & (truth <= high))),
        bool(told[~real].any()),
        int(told[real].sum()),
        int(real.sum()),
        int((pooled.arrays["q"] <= trial.parameters.discoveries)[real].sum()),
    )
