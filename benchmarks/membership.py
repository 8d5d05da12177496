"""``python -m benchmarks.membership``: is somebody in the study? Asked of exact sums and of ours.

The attacker knows what somebody's outcomes are, and how outcomes are distributed in the population.
Of a site that sends the exact sums of each group, as a mega-analysis does, the likelihood ratio is
a scalar product. Of `glm` the attacker is the centre with one colluding site; once without knowing
more, and once, as the promise has it, knowing every other participant. Draws
docs/images/membership.png.
"""

from dataclasses import replace

import numpy as np
from scipy.stats import norm

from benchmarks.glm_data import Array
from benchmarks.glm_runs import GLM, Trial, trial_of
from benchmarks.replication.drawing import IMAGES
from benchmarks.timing import show
from consortium.algorithms.glm.kernels.equal_correlation import correlation_power
from consortium.privacy.block_bounds import BlocksBound
from consortium.privacy.gdp import mu_of

SITES, PERSONS, REGIONS, SHARED = 4, 150, 400, 0.2
EPSILONS = (1.0, 4.0, 8.0)
DELTA, ALARM = 1e-5, 0.05


def draw(count: int, generator: np.random.Generator) -> Array:
    """Participants of the population: V x n, of variance 1, with one shared factor."""
    factor = np.sqrt(SHARED) * generator.standard_normal(count)
    return factor + np.sqrt(1 - SHARED) * generator.standard_normal((REGIONS, count))


def of_exact_sums(generator: np.random.Generator, runs: int) -> tuple[Array, Array]:
    """Scores of members and of others by the sums of one site's two groups of equal size."""
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
        self.generator = generator
        self.outcomes = draw(SITES * PERSONS, generator)
        self.group = np.tile(np.arange(PERSONS) % 2 == 0, SITES)
        mu = mu_of(epsilon, DELTA)
        noise = 1 / (mu * np.sqrt((SITES - 1) / SITES))
        trial = self._trial(self.outcomes)
        shape = replace(trial.shape, noise=noise)
        (self.planned,) = GLM(trial.parameters, shape).planned()
        self.query = self.planned.complete(next(GLM(trial.parameters, shape).run()))
        assert isinstance(self.planned.bound, BlocksBound)
        self.bound = self.planned.bound
        self.deviation = self.bound.deviations(self.bound.spread / mu)["effects"]  # of honest sums

    def _trial(self, outcomes: Array) -> Trial:
        site = np.repeat(np.arange(SITES), PERSONS)
        norms = {"location": (0.0,) * REGIONS, "deviation": (1.0,) * REGIONS}
        norms |= {"correlation": SHARED}  # type: ignore[dict-item]
        return trial_of(
            *(outcomes, self.group, np.zeros((0, len(self.group))), site),
            norms=norms,
            anyway=True,
        )

    def sums(self, outcomes: Array) -> Array:
        """Every site's part of the effects' sum, S x V."""
        sites = self._trial(outcomes).sites
        local = GLM.statistics[self.query.statistic]
        told = [local(s, replace(self.query, site=n), self.bound) for n, s in enumerate(sites)]
        return PERSONS * np.array([self.bound.split(each)["effects"] for each in told])

    def parts(self, persons: Array) -> Array:
        """What each of a site's worth of participants adds to the effects' sum, V x n."""
        nobody, found = np.zeros((REGIONS, SITES * PERSONS)), []
        for place in range(PERSONS):
            alone = nobody.copy()
            alone[:, place] = persons[:, place]
            found.append(self.sums(alone)[0])
        return np.array(found).T

    def scores(self) -> tuple[Array, Array, Array, Array]:
        """Of the first site's participants and others; then as one who knows all others' data."""
        members, others = self.outcomes[:, :PERSONS], draw(PERSONS, self.generator)
        mine, theirs = self.parts(members), self.parts(others)
        honest = self.sums(self.outcomes)[:-1].sum(axis=0)
        noise = self.deviation * self.generator.standard_normal((REGIONS, PERSONS))
        spread = float(np.mean(np.square(mine))) * (SITES - 1) * PERSONS
        covariance = spread * correlation_power(np.eye(REGIONS), SHARED, 0.5)
        covariance += self.deviation**2 * np.eye(REGIONS)
        told = np.linalg.solve(covariance, honest[:, None] + noise)
        sizes = np.linalg.norm(mine, axis=0)
        one = np.einsum("ij,ij->j", mine, noise) / (sizes * self.deviation)
        return (
            np.einsum("ij,ij->j", mine, told),
            np.einsum("ij,ij->j", theirs, told),
            one + sizes / self.deviation,
            self.generator.standard_normal(PERSONS),
        )


def found_at(inside: Array, outside: Array, alarms: Array) -> Array:
    """Part of the members that are found at each rate of false alarms."""
    limits = np.quantile(outside, 1.0 - alarms)
    return np.asarray(np.mean(inside[:, None] > limits, axis=0))


def curves(runs: int = 12, seed: int = 1) -> dict[str, Array]:
    """Parts of the members found at false alarms of 1 % to all."""
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
    """Members found over false alarms."""
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
