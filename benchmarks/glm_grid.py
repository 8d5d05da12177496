"""``python -m benchmarks.glm_grid [RUNS]``: increase of errors of `glm` by the integer grid.

The same participants with the same noise, once without rounding and once rounded by every site to
the grid that a private round plans (one colluding site, δ = 1e-5). *Moved* is the root mean square
change of an effect by rounding, divided by its standard error; *charged* the largest relative
increase of a round's noise by rounding and arithmetic; *bits* the size of the widest ring.
"""

from dataclasses import replace

import numpy as np

from benchmarks.glm_data import make_people
from benchmarks.glm_runs import make_trial, noise_of, run_trial
from benchmarks.timing import command, heading, line
from consortium.algorithms.base import Shape
from consortium.algorithms.glm.centre import Glm
from consortium.privacy.gdp import mu_of
from consortium.privacy.mechanism import Mechanism, Sharing, plan_mechanism

CELLS = ((1000, 20, 8), (1000, 68, 8), (1000, 400, 33), (4000, 400, 8))
EPSILONS = (1.0, 8.0)


def mechanisms(plan: Glm, shape: Shape, epsilon: float) -> dict[str, Mechanism]:
    """Return every round of a plan, as a private study would do it."""
    return {
        release.stage: plan_mechanism(
            Sharing("cape", colluding=1),
            entries=release.entries,
            bound=release.bound,
            units=shape.units,
            target=mu_of(epsilon, 1e-5) * float(np.sqrt(release.share)),
        )
        for release in plan.releases
    }


def measured(cell: tuple[int, int, int], runs: int, epsilon: float) -> tuple[float, float, int]:
    """Return change of effects by rounding, increase of noise, and the widest ring's bits."""
    noise = noise_of(epsilon, cell[2])
    moved = list[float]()
    charged = list[float]()
    bits = 32
    for number in range(runs):
        people = make_people(*cell, np.random.default_rng((number, 15, *cell)))
        trial = make_trial(people)
        shape = replace(trial.shape, noise=noise)
        plan = Glm(trial.parameters, shape)
        rounds = mechanisms(plan, shape, epsilon)
        lattices = {stage: each.lattice for stage, each in rounds.items()}
        with_grid, without = (
            run_trial(trial, noise, np.random.default_rng(number), plan=plan, lattices=given)
            for given in (lattices, None)
        )
        apart = with_grid.arrays["effect"] - without.arrays["effect"]
        moved.append(float(np.mean(np.square(apart / without.arrays["error"]))))
        whole = {r.stage: r.bound.spread / len(people.site) for r in plan.releases}
        charged.append(max(max(m.sensitivities) / whole[s] - 1 for s, m in rounds.items()))
        bits = max(bits, *(lattice.bits for lattice in lattices.values()))
    return float(np.sqrt(np.mean(moved))), float(np.max(charged)), bits


def main(runs: int = 5) -> None:
    """Print the table in Markdown, a row as soon as it is known."""
    print(f"{runs} runs a row\n")
    heading("participants x outcomes, sites | ε | moved | charged | bits")
    for cell in CELLS:
        for epsilon in EPSILONS:
            moved, charged, bits = measured(cell, runs, epsilon)
            size = f"{cell[0]:,} x {cell[1]}, {cell[2]}"
            line(size, f"{epsilon:g}", f"{moved:.1e}", f"{charged:.1e}", f"{bits}")


if __name__ == "__main__":
    command(main)
