"""``python -m benchmarks.glm_levels [RUNS]``: coverage where other columns explain much.

A study of `glm` releases all coefficients of group, and of a ward of five levels or a covariate.
Levels differ by up to 1.5 standard deviations, upwards in half of the outcomes and downwards in the
others, and sites have different shares of them or not. The covariate explains a third of an
outcome's variance, groups differ in it by 1.2 standard deviations, and a refit removes it.
Coverage is that of 95 % intervals of the population's effect.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.glm_refit import released_of
from benchmarks.timing import command, in_processes, show
from consortium.base.array import Array
from consortium.coordinator.contrast import interval
from consortium.coordinator.refit import Refit, fit_again
from consortium.simulation.array_data import ArrayData
from consortium.simulation.simulation import Simulation
from consortium.study.reader import parse_study

SHARES = np.array([0.4, 0.2, 0.15, 0.15, 0.1])
LEVELS = np.array([0.0, 1.0, 1.0, -1.0, -1.0])
GAP, SLOPE = 1.2, 0.7
STUDY = """
study: levels
sites: [{sites}]
features:
  - {{name: brain, source: table, columns: {{"r[1-{outcomes}]": {{low: -10, high: 10}}}}}}
  - name: who
    source: table
    columns: {{group: {{levels: [control, patient]}}, {column}}}
privacy: {{unit: subject, epsilon: {epsilon}, delta: 1.0e-5, colluding_sites: 1}}
algorithm: glm
analysis:
  {{outcomes: brain, formula: "group + {term}", contrasts: all, shares: 0.5, anyway: true,
    norms: {{location: 0, deviation: {deviation}}}{more}}}
"""
WARD = "ward: {levels: [a, b, c, d, e]}"
SIZE = "size: {low: -5, high: 5}"


@dataclass(frozen=True)
class Case:
    """A simulated study, by its size and by what its outcomes depend on."""

    epsilon: float
    persons: int
    outcomes: int = 12
    sites: int = 4
    levels: float = 0.0
    """Effect of the levels, in standard deviations; if 0, the study has the covariate."""
    alike: bool = True
    """Whether all sites have the same shares of the levels."""
    mixed: bool = True
    """Whether half of the outcomes have the opposite effects."""

    @property
    def signs(self) -> Array:
        """1 or -1 by outcome."""
        return np.where(np.arange(self.outcomes) % 2 * self.mixed, -1.0, 1.0)

    def study(self, column: str, **more: str | float) -> str:
        """Return the study file."""
        sites = ", ".join(f"s{number}" for number in range(self.sites))
        given = {"sites": sites, "outcomes": self.outcomes, "epsilon": self.epsilon}
        return STUDY.format(column=column, **given, **more)


LEVEL_CASES = [
    Case(epsilon, persons, levels=size, alike=alike)
    for epsilon, persons in ((8.0, 3000), (4.0, 1500))
    for size, alike in ((0.25, True), (0.5, True), (1.0, True), (0.5, False), (1.5, False))
]
REMOVED_CASES = [
    Case(4.0, 1200, outcomes=24, sites=8),
    Case(4.0, 1200, outcomes=68, sites=8, mixed=False),
    Case(8.0, 3000, outcomes=68, sites=8),
    Case(8.0, 3000, outcomes=68, sites=8, mixed=False),
]


def levels_run(case: Case, seed: int) -> list[tuple[float, float, float]]:
    """Return coverage, squared error and stated variance of each level's coefficients."""
    generator = np.random.default_rng((seed, 52))
    each = case.persons // case.sites
    sites = []
    for _ in range(case.sites):
        shares = SHARES if case.alike else generator.dirichlet(12 * SHARES)
        ward = generator.choice(5, each, p=shares)
        means = case.signs[:, None] * case.levels * LEVELS[ward]
        sites.append(_site(generator, means, ward == np.arange(5)[:, None]))
    text = case.study(WARD, term="ward", deviation=1, more="")
    refit = Refit(formula="ward + group")
    truth = [case.levels * level * case.signs for level in LEVELS[1:]]
    return _measured(text, sites, seed, refit, truth)


def removed_run(case: Case, seed: int) -> list[tuple[float, float, float]]:
    """Return the same of the group in a model without the covariate."""
    generator = np.random.default_rng((seed, 53))
    each = case.persons // case.sites
    sites = []
    for _ in range(case.sites):
        group = generator.random(each) < 0.5
        size = GAP * (group - 0.5) + generator.standard_normal(each)
        means = SLOPE * case.signs[:, None] * size
        sites.append(_site(generator, means, size[None] / 5, group))
    more = ", covariates: {size: {mean: 0, deviation: 1.17}}"
    text = case.study(SIZE, term="size", deviation=1.25, more=more)
    truth = [SLOPE * GAP / 1.25 * case.signs]
    return _measured(text, sites, seed, Refit(formula="group"), truth)


def _site(
    generator: np.random.Generator, means: Array, columns: Array, group: Array | None = None
) -> ArrayData:
    outcomes = means + generator.standard_normal(means.shape)
    chosen = generator.random(means.shape[1]) < 0.5 if group is None else group
    rows = np.vstack([outcomes / 10, 2.0 * chosen - 1, columns]).clip(-1, 1)
    views = [("brain", len(outcomes)), ("who", len(rows) - len(outcomes))]
    return ArrayData(list(rows.T[..., None]), views=views)


def _measured(
    text: str, sites: list[ArrayData], seed: int, refit: Refit, truth: Sequence[Array]
) -> list[tuple[float, float, float]]:
    released = released_of(Simulation(parse_study(text), sites, seed).run())
    chosen = [int(entry[1:]) - 1 for _, entry in released.labels]
    found = []
    for estimates, true in zip(fit_again(released, refit).estimates, truth, strict=True):
        own = true[chosen]
        low, high = interval(estimates)
        held = float(np.mean((low <= own) & (own <= high)))
        off = float(np.mean(np.square(estimates.effects - own)))
        found.append((held, off, float(np.mean(np.square(estimates.errors)))))
    return found


def main(runs: int = 40) -> None:
    """Print coverage and stated over true error of each case."""
    tables = (
        ("Coefficients of levels", levels_run, LEVEL_CASES),
        ("Group in a refit without a strong covariate", removed_run, REMOVED_CASES),
    )
    for title, one_run, cases in tables:
        rows = []
        for case in cases:
            each = [np.mean(run, axis=0) for run in in_processes(partial(one_run, case), runs)]
            held, off, stated = np.mean(each, axis=0)
            error = np.std(each, axis=0)[0] / np.sqrt(runs)
            numbers = f"{held:.2f} ± {error:.2f}", f"{np.sqrt(stated / off):.2f}"
            rows.append([f"{case.epsilon:g}", f"{case.persons:,}", _named(case), *numbers])
        headings = ["ε", "participants", "case", "coverage", "stated over true error"]
        show(f"{title}, {runs} runs", headings, rows)


def _named(case: Case) -> str:
    if case.levels:
        shares = "same" if case.alike else "different"
        return f"levels ± {case.levels:g}, {shares} shares by site"
    return f"{case.outcomes} outcomes, {'half fall' if case.mixed else 'all rise'}"


if __name__ == "__main__":
    command(main)
