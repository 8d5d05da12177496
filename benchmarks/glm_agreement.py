"""``python -m benchmarks.glm_agreement [RUNS] [EPSILON]``: whether agreement of hospitals is found.

Hospitals have scanner offsets, groups of which one may vary more, shares of patients of 0.3 or
0.7, and in some cases sites of one group only. Their effects vary with a standard deviation of 0
or 0.2 for each of 68 outcomes. A tenth of the budget is for their agreement. The table has how
often a difference is found (false alarms, if there is none), the median of the released standard
deviation, and the coverage of its interval.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.timing import command, in_processes, show
from consortium.base.array import Array
from consortium.simulation.array_data import ArrayData
from consortium.simulation.simulation import Simulation
from consortium.study.reader import parse_study

OUTCOMES = 68
STUDY = """
study: agreement
sites: [{sites}]
features:
  - {{name: brain, source: table, columns: {{"r[1-{outcomes}]": {{low: -10, high: 10}}}}}}
  - name: who
    source: table
    columns: {{group: {{levels: [control, patient]}}, age: {{low: -5, high: 5}}}}
privacy: {{unit: subject, epsilon: {epsilon}, delta: 1.0e-5, colluding_sites: 1}}
algorithm: glm
analysis:
  {{outcomes: brain, formula: {formula}, contrasts: {contrasts}, shares: 0.5, anyway: {anyway},
    agreement: 0.1, norms: {{location: 0, deviation: 1}}{more}}}
"""


@dataclass(frozen=True)
class Case:
    """A simulated study."""

    sites: int
    persons: int
    """Of each site."""
    between: float = 0.0
    """Standard deviation of the hospitals' effects."""
    epsilon: float = 8.0
    shares: tuple[float, ...] = (0.5,)
    """Shares of patients, one of which each site has."""
    varied: float = 1.0
    """Standard deviation of patients relative to that of controls."""
    scanners: float = 0.0
    """Standard deviation of the logarithm of a site's scale."""
    single: int = 0
    """Number of sites that have patients only."""
    offsets: float = 0.58
    """Standard deviation of sites' offsets."""
    correlation: float = 0.25
    age: float = 0.0
    """Effect of age, in which groups differ by up to ± 0.6 within sites."""

    @property
    def named(self) -> str:
        """Its description, without size and effect."""
        parts = {
            "shares .3/.7": len(self.shares) > 1,
            f"patients vary {self.varied:g} times": self.varied != 1,
            "scales differ": self.scanners > 0,
            f"{self.single} of one group": self.single > 0,
            f"offsets {self.offsets:g}": self.offsets > 0.6,
            f"correlation {self.correlation:g}": self.correlation != 0.25,
            "age": self.age > 0,
        }
        return ", ".join(name for name, given in parts.items() if given) or "equal"


SIZES = (8, 100), (20, 50), (34, 34)
KINDS: list[dict[str, Any]] = [
    {},
    {"shares": (0.3, 0.7)},
    {"shares": (0.3, 0.7), "single": 1},
    {"shares": (0.3, 0.7), "varied": 1.3},
    {"scanners": 0.2, "offsets": 1.0},
    {"correlation": 0.5},
    {"age": 0.4},
]
CASES = [
    Case(*size, between=between, **kind)
    for kind in KINDS
    for size in SIZES
    for between in (0.0, 0.2)
]


def one_run(case: Case, seed: int) -> tuple[bool, float, bool]:
    """Return whether hospitals are found to differ, τ, and whether its interval holds the truth."""
    numbers = Simulation(parse_study(study_of(case)), people_of(case, seed), seed).run().numbers
    low, high = (float(numbers[f"between_hospitals_{end}"]) for end in ("low", "high"))
    found = float(numbers["between_hospitals_p"]) <= 0.05
    return found, float(numbers["between_hospitals"]), low <= case.between <= high


def study_of(case: Case, **changes: object) -> str:
    """Return the study file."""
    values: dict[str, object] = {
        "sites": ", ".join(f"s{number}" for number in range(case.sites)),
        "outcomes": OUTCOMES,
        "epsilon": case.epsilon,
        "formula": "group + age" if case.age else "group",
        "contrasts": "all" if case.age else "{patients: group}",
        "more": ", covariates: {age: {mean: 0, deviation: 1}}" if case.age else "",
        "anyway": "true",
    }
    return STUDY.format(**values | changes)


def people_of(case: Case, seed: int) -> list[ArrayData]:
    """Return the participants of every hospital."""
    generator = np.random.default_rng((seed, 56))
    common = 0.3 * generator.standard_normal(OUTCOMES)
    ageing = case.age * generator.standard_normal(OUTCOMES)
    return [_site(case, generator, common, ageing, number) for number in range(case.sites)]


def _site(
    case: Case, generator: np.random.Generator, common: Array, ageing: Array, number: int
) -> ArrayData:
    count = case.persons
    share = 1.0 if number < case.single else generator.choice(case.shares)
    group = generator.random(count) < share
    gap = generator.uniform(-0.6, 0.6)
    age = generator.standard_normal(count) + gap * (group - 0.5)
    own = np.exp(case.scanners * generator.standard_normal())
    values = own * _correlated(generator, case.correlation, count)
    values *= np.where(group, case.varied, 1.0)
    values += case.offsets * _correlated(generator, case.correlation, 1)
    effects = common[:, None] + case.between * _correlated(generator, case.correlation, 1)
    values += effects * group + ageing[:, None] * age
    rows = np.vstack([values / 10, 2.0 * group - 1, age / 5]).clip(-1, 1)
    return ArrayData(list(rows.T[..., None]), views=[("brain", OUTCOMES), ("who", 2)])


def _correlated(generator: np.random.Generator, correlation: float, count: int) -> Array:
    shared = np.sqrt(correlation) * generator.standard_normal(count)
    own = np.sqrt(1 - correlation) * generator.standard_normal((OUTCOMES, count))
    return np.asarray(shared + own)


def main(runs: int = 100, epsilon: float = 8.0) -> None:
    """Print how often a difference is found, and τ."""
    rows = []
    for case in CASES:
        own = replace(case, epsilon=epsilon)
        each = np.array(list(in_processes(partial(one_run, own), runs)), dtype=np.float64)
        found, between, held = each.T
        sizes = f"{case.sites} × {case.persons}"
        numbers = f"{found.mean():.2f}", f"{np.median(between):.2f}", f"{held.mean():.2f}"
        rows.append([case.named, sizes, f"{case.between:g}", *numbers])
        print(rows[-1], flush=True)
    headings = ["hospitals", "sites × participants", "true SD", "found", "median SD", "coverage"]
    show(f"Agreement of hospitals at ε {epsilon:g}, {runs} runs", headings, rows)


if __name__ == "__main__":
    command(main)
