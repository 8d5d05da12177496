"""``python -m benchmarks.membership``: membership inference from exact sums and from our releases.

The attacker has a participant's outcomes and the distribution of outcomes in the population. For a
site that sends the exact sums of each group, as a mega-analysis does, the likelihood ratio is a
scalar product. For `glm` the attacker is the centre with one colluding site, once without further
data, and once, as in the promise, with every other participant's data. Draws
docs/images/membership.png.
"""

from dataclasses import replace

import numpy as np
from scipy.stats import norm

from benchmarks.glm_data import Array
from benchmarks.glm_runs import Trial, trial_of
from benchmarks.replication.drawing import IMAGES
from benchmarks.studies import result_of
from benchmarks.timing import show
from consortium.algorithms.base import Query, Release
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.kernels.equal_correlation import correlation_power
from consortium.privacy.block_bounds import BlocksBound
from consortium.privacy.gdp import mu_of

SITES, PERSONS, REGIONS, SHARED = 4, 150, 400, 0.2
EPSILONS = (1.0, 4.0, 8.0)
DELTA, ALARM = 1e-5, 0.05


def draw(count: int, generator: np.random.Generator) -> Array:
    """Simulate participants of the population: V x n, of variance 1, with one shared factor."""
    factor = np.sqrt(SHARED) * generator.standard_normal(count)
    return factor + np.sqrt(1 - SHARED) * generator.standard_normal((REGIONS, count))


def of_exact_sums(generator: np.random.Generator, runs: int) -> tuple[Array, Array]:
    """Return scores of members and of others by the sums of one site's two groups of equal size."""
    inside, outside = [], []
    for _ in range(runs):
        members, others = draw(PERSONS // 2, generator), draw(PERSONS // 2, generator)
        told = correlation_power(members.sum(axis=1)[:, None], SHARED, -1.0)[:, 0]
        inside.append(members.T @ told)
        outside.append(others.T @ told)
    return np.concatenate(inside), np.concatenate(outside)


class Study:
    """One consortium whose participants all may be asked for.

    Parameters
    ----------
    epsilon : float
    generator : numpy.random.Generator
    """

    def __init__(self, epsilon: float, generator: np.random.Generator) -> None:
        self.generator, self.mu = generator, mu_of(epsilon, DELTA)
        self.outcomes = draw(SITES * PERSONS, generator)
        self.group = np.tile(np.arange(PERSONS) % 2 == 0, SITES)
        self.trial = self._trial(self.outcomes)

    def _trial(self, outcomes: Array) -> Trial:
        site = np.repeat(np.arange(SITES), PERSONS)
        norms = {"location": (0.0,) * REGIONS, "deviation": (1.0,) * REGIONS}
        norms |= {"correlation": SHARED}  # type: ignore[dict-item]
        return trial_of(
            *(outcomes, self.group, np.zeros((0, len(self.group))), site),
            norms=norms,
            anyway=True,
        )

    def sums(self, plan: Glm, outcomes: Array, asked: Query, bound: BlocksBound) -> Array:
        """Return every site's part of a release's sum, S x D."""
        sites, local = self._trial(outcomes).sites, plan.statistics[asked.statistic]
        return PERSONS * np.array(
            [local(plan, site, replace(asked, site=n), bound) for n, site in enumerate(sites)]
        )

    def parts(self, plan: Glm, persons: Array, asked: Query, bound: BlocksBound) -> Array:
        """Return the change of a site's sum by each of the given participants, D x n."""
        nobody, found = np.zeros((REGIONS, SITES * PERSONS)), []
        without = self.sums(plan, nobody, asked, bound)[0]
        for place in range(PERSONS):
            alone = nobody.copy()
            alone[:, place] = persons[:, place]
            found.append(self.sums(plan, alone, asked, bound)[0] - without)
        return np.array(found).T

    def scores(self) -> tuple[Array, Array, Array, Array]:
        """Return scores of the first site's participants and of others, then with all others' data.

        Evidence of all releases is added, as their noise is independent.
        """
        members, others = self.outcomes[:, :PERSONS], draw(PERSONS, self.generator)
        mine, theirs, knowing, squares = np.zeros((4, PERSONS))
        noise = 1 / (self.mu * np.sqrt((SITES - 1) / SITES))
        plan = Glm(self.trial.parameters, replace(self.trial.shape, noise=noise))
        stages = {release.stage: release for release in plan.releases}

        def answer(query: Query) -> Release:
            stage = stages[query.stage]
            asked, bound = query, stage.bound
            assert isinstance(bound, BlocksBound)
            sums = self.sums(plan, self.outcomes, asked, bound)
            deviation = bound.spread / self.mu / np.sqrt(stage.share)  # of honest sites' sum
            drawn = deviation * self.generator.standard_normal((sums.shape[1], PERSONS))
            inside, outside = (self.parts(plan, each, asked, bound) for each in (members, others))
            knowing[:] += np.einsum("ij,ij->j", inside, drawn + inside) / deviation**2
            squares[:] += np.square(inside).sum(axis=0) / deviation**2
            evidence = self._evidence(
                bound, inside, sums[:-1].sum(axis=0)[:, None] + drawn, deviation
            )
            mine[:] += np.einsum("ij,ij->j", _large(bound, inside), evidence)
            theirs[:] += np.einsum("ij,ij->j", _large(bound, outside), evidence)
            mean = (sums.sum(axis=0) + drawn[:, 0]) / (SITES * PERSONS)
            return Release(mean, deviation / (SITES * PERSONS), tuple(range(SITES)))

        result_of(plan, answer)
        return mine, theirs, knowing / np.sqrt(squares), self.generator.standard_normal(PERSONS)

    def _evidence(self, bound: BlocksBound, mine: Array, told: Array, deviation: float) -> Array:
        """Return a release's evidence on each outcome, relative to other participants' spread."""
        spread = float(np.mean(np.square(_large(bound, mine)))) * (SITES - 1) * PERSONS
        covariance = spread * correlation_power(np.eye(REGIONS), SHARED, 0.5)
        covariance += deviation**2 * np.eye(REGIONS)
        return np.asarray(np.linalg.solve(covariance, _large(bound, told)), dtype=np.float64)


def _large(bound: BlocksBound, vectors: Array) -> Array:
    """Return the entries of a release's vectors, by outcome, that depend on the outcome's value."""
    start = 0
    for block in bound.blocks:
        if block.name in ("location", "effects"):
            return vectors[start : start + REGIONS]
        start += block.entries
    raise ValueError("no block of outcomes")


def found_at(inside: Array, outside: Array, alarms: Array) -> Array:
    """Return the fraction of the members that are found at each rate of false alarms."""
    limits = np.quantile(outside, 1.0 - alarms)
    return np.asarray(np.mean(inside[:, None] > limits, axis=0))


def curves(runs: int = 12, seed: int = 1) -> dict[str, Array]:
    """Return the fractions of the members found at false alarms of 1 % to all."""
    generator, alarms = np.random.default_rng(seed), np.geomspace(0.01, 1.0, 60)
    made = {"": alarms, "exact sums of a site": found_at(*of_exact_sums(generator, 60), alarms)}
    for epsilon in EPSILONS:
        each = [Study(epsilon, generator).scores() for _ in range(runs)]
        mine, theirs, knowing, noise = (np.concatenate(part) for part in zip(*each, strict=True))
        made[f"glm, ε = {epsilon:g}"] = found_at(mine, theirs, alarms)
        made[f"glm, ε = {epsilon:g}, knowing all others"] = found_at(knowing, noise, alarms)
        limit = norm.cdf(norm.ppf(alarms) + mu_of(epsilon, DELTA))
        made[f"glm, ε = {epsilon:g}, at most (promise)"] = limit
    return made


def draw_figure(made: dict[str, Array]) -> None:
    """Draw members found over false alarms."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(7.6, 4.0))
    colours = {"exact": "C3", "ε = 1": "C0", "ε = 4": "C1", "ε = 8": "C2"}
    for name, found in made.items():
        colour = next((c for word, c in colours.items() if word in name), "k")
        style = "--" if "knowing" in name else ":" if "promise" in name else "-"
        axis.plot(made[""], found, style, color=colour, label=name or "guessing", linewidth=1.4)
    axis.lines[0].set(color="0.6")
    axis.set(xscale="log", xlabel="others taken for members", ylabel="members found")
    axis.grid(visible=True, alpha=0.3)
    axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()
    figure.savefig(IMAGES / "membership.png", dpi=110)
    plt.close(figure)


def main() -> None:
    """Print the table at five false alarms in a hundred, and draw all rates."""
    made = curves()
    alarms = made[""]
    rows = [
        [name, f"{np.interp(ALARM, alarms, found):.0%}"] for name, found in made.items() if name
    ]
    sizes = f"{SITES} sites of {PERSONS} participants, {REGIONS} regions"
    show(f"Members found at 5 % false alarms: {sizes}", ["what is released", "found"], rows)
    draw_figure(made)


if __name__ == "__main__":
    main()
