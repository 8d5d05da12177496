"""``python -m benchmarks.glm_outcomes [PERSONS OUTCOMES]``: `glm` of very many outcomes.

Four sites in one process, without protocol, beside nilearn's least squares on one table of the same
size; each in a process of its own, whose largest memory is told beside the table's.
"""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from benchmarks.by_persons import resident
from benchmarks.glm_runs import TableData, Trial, noise_of, run_trial
from benchmarks.table import Row
from benchmarks.timing import command, processor, show
from consortium.algorithms.base import Shape
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.kernels.one_thread import one_thread

SITES = 4
Cost = tuple[float, float, float]


def table(persons: int, columns: int, seed: int) -> np.ndarray:
    """Made-up persons, one behind the other; columns x persons."""
    return np.random.default_rng(seed).standard_normal((persons, columns)).T


def many_outcomes(persons: int, outcomes: int) -> Trial:
    """A study of two groups and one covariate."""
    views, sizes = (("x", outcomes), ("dx", 1), ("age", 1)), (persons // SITES,) * SITES
    tables = [table(size, outcomes + 2, seed) for seed, size in enumerate(sizes)]
    for each in tables:
        each[outcomes] = np.where(np.arange(each.shape[1]) % 2, 1.0, -1.0)
        each[outcomes + 1] = np.clip(each[outcomes + 1] / 8, -1, 1)
    half = sizes[0] // 2
    groups = {f"s{number}": [sizes[0] - half, half] for number in range(SITES)}
    parameters = GlmParameters.model_validate(
        {
            "outcomes": "x",
            "formula": "dx1 + age1",
            "contrasts": {"patients": "dx1"},
            "groups": groups,
            "norms": {"location": 0.0, "deviation": 1.0},
            "covariates": {"age1": {"mean": 0, "deviation": 0.125}},
            "anyway": True,
        }
    )
    shape = Shape(outcomes + 2, sizes, sizes, "subject", 0, views, tuple(groups))
    return Trial(parameters, tuple(TableData(each, views) for each in tables), shape)


def ours(persons: int, outcomes: int) -> Cost:
    """Processor seconds of a study; MB before it and at the most."""
    one_thread()
    trial, noise = many_outcomes(persons, outcomes), noise_of(8.0, SITES)
    before = resident("VmRSS")
    seconds = processor(lambda: run_trial(trial, noise, np.random.default_rng(0)), 1)
    return seconds, before, resident("VmHWM")


def nilearn(persons: int, outcomes: int) -> Cost:
    """The same of nilearn's `run_glm`."""
    from nilearn.glm.first_level import run_glm

    one_thread()
    # As it wants them: an outcome's persons side by side.
    values, design = np.ascontiguousarray(table(persons, outcomes, 0).T), np.ones((persons, 6))
    design[:, :5] = table(persons, 5, 1).T
    before = resident("VmRSS")
    seconds = processor(lambda: run_glm(values, design, noise_model="ols"), 1)
    return seconds, before, resident("VmHWM")


def alone(maker: Callable[[int, int], Cost], persons: int, outcomes: int) -> Cost:
    """What one of the two takes in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(maker, persons, outcomes).result()


def outcomes(persons: int = 100, many: int = 1_000_000) -> list[Row]:
    """Rows of time and memory."""
    own, least = alone(ours, persons, many), alone(nilearn, persons, many)
    work, held = f"glm, {persons} participants, {many:,} outcomes", 8e-6 * persons * many
    return [
        Row(work, 1e3 * own[0], "nilearn run_glm", 1e3 * least[0], "≤ 2"),
        Row(f"{work}: memory at the most", own[2], "the table", held, "≤ 2", "MB"),
    ]


def main(persons: int = 100, outcomes: int = 1_000_000) -> None:
    """Print the table."""
    makers: dict[str, Callable[[int, int], Cost]] = {"glm": ours, "nilearn run_glm": nilearn}
    rows = []
    for name, maker in makers.items():
        seconds, before, most = alone(maker, persons, outcomes)
        rows.append([name, f"{seconds:.2f}", f"{before:.0f}", f"{most:.0f}"])
    size = f"{persons} x {outcomes:,}, a table of {8 * persons * outcomes / 1e6:.0f} MB"
    show(size, ["", "processor s", "MB before", "MB at the most"], rows)


if __name__ == "__main__":
    command(main)
