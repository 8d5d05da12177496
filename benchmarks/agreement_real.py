"""``python -m benchmarks.agreement_real FOLDER [RUNS] [EPSILON]``: whether hospitals agree.

FOLDER has the files that `benchmarks.real` describes. Thickness of 68 regions is compared between
autistic participants and controls, adjusted for age and sex, at the sites with at least 15 of
each. The first row is the study itself, with other noise in each run. In the second, diagnoses are
shuffled within sites, so hospitals agree. In the others, effects are then moved by 0.2 or 0.4
standard deviations, upwards in half of the regions and in the others downwards, and the other way
round at every second site.
"""

from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.real import read
from benchmarks.timing import command, in_processes, show
from consortium.base.array import Array
from consortium.simulation.array_data import ArrayData
from consortium.simulation.simulation import Simulation
from consortium.study.reader import parse_study

FEWEST = 15
STUDY = """
study: autism
sites: [{sites}]
features:
  - {{name: brain, source: table, columns: {{"r[1-68]": {{low: 0.5, high: 5.5}}}}}}
  - name: who
    source: table
    columns:
      diagnosis: {{levels: [control, autism]}}
      age: {{low: 5, high: 65}}
      sex: {{levels: [F, M]}}
privacy: {{unit: subject, epsilon: {epsilon}, delta: 1.0e-5, colluding_sites: 1}}
algorithm: glm
analysis:
  {{outcomes: brain, formula: diagnosis + age + sex, contrasts: all, shares: 0.5, anyway: true,
    agreement: 0.1, covariates: {{age: {{mean: 17, deviation: 9}}}}}}
"""
KINDS = ("diagnosis", "shuffled diagnosis", "shuffled, ± 0.2 SD", "shuffled, ± 0.4 SD")


def one_run(folder: Path, kind: str, epsilon: float, seed: int) -> tuple[float, ...]:
    """Return whether hospitals are found to differ, and the SD: found, low, high, detectable."""
    people = read(folder)
    generator = np.random.default_rng((seed, 57))
    sites = list[ArrayData]()
    for site in np.unique(people.site):
        here = people.site == site
        group = people.autism[here].copy()
        if min(group.sum(), (~group).sum()) < FEWEST:
            continue
        outcomes = people.outcomes[:, here].copy()
        if kind != KINDS[0]:
            generator.shuffle(group)
        if kind in KINDS[2:]:
            size = (0.2 if kind == KINDS[2] else 0.4) * (1 if len(sites) % 2 else -1)
            directions = np.where(np.arange(len(outcomes)) % 2, 1.0, -1.0)[:, None]
            outcomes += size * directions * outcomes.std(axis=1, keepdims=True) * group
        age, sex = people.age[here], people.sex[here].astype(np.float64)
        sites.append(_site(outcomes, group, age, sex))
    names = ", ".join(f"s{number}" for number in range(len(sites)))
    study = parse_study(STUDY.format(sites=names, epsilon=epsilon))
    numbers = Simulation(study, sites, seed).run().numbers
    ends = "", "_low", "_high", "_detectable"
    read_numbers = [float(numbers[f"between_hospitals{end}"]) for end in ends]
    return float(float(numbers["between_hospitals_p"]) <= 0.05), *read_numbers


def _site(outcomes: Array, group: Array, age: Array, sex: Array) -> ArrayData:
    person = [2.0 * group - 1, (age - 35) / 30, 2 * sex - 1]
    rows = np.vstack([(outcomes - 3) / 2.5, *person]).clip(-1, 1)
    return ArrayData(list(rows.T[..., None]), views=[("brain", len(outcomes)), ("who", 3)])


def main(folder: Path, runs: int = 20, epsilon: float = 8.0) -> None:
    """Print how often hospitals are found to differ, and their SD."""
    rows = []
    for kind in KINDS:
        each = in_processes(partial(one_run, folder, kind, epsilon), runs)
        found, *others = np.array(list(each), dtype=np.float64).T
        numbers = [f"{np.median(value):.2f}" for value in others]
        rows.append([kind, f"{found.mean():.2f}", *numbers])
    headings = ["contrast", "found", "median SD", "low", "high", "found with power 0.8"]
    show(f"Agreement of hospitals at ε {epsilon:g}, {runs} runs", headings, rows)


if __name__ == "__main__":
    command(main)
