"""``python -m benchmarks.uneven [ANALYSIS ...]``: intervals where participants are not all alike.

`regression`: a column that few participants have, and residuals that differ between them and the
others. `logistic`: labels that a column of two levels explains, by any effect. `average`,
`coordinate` and `glm` (averages of outcomes): a column of two levels next to others that vary less.
`glm` states the deviation of each outcome; `unstated` is `glm` without norms. `cca`: views whose
variance lies in few directions, so noise hides the others.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.glm_runs import noise_of, run_trial, trial_of
from benchmarks.honesty import cca, regression
from benchmarks.honesty.running import TableSite, answer
from consortium.algorithms.base import Array, Result
from consortium.algorithms.findings import Finding

SITES, COLUMNS, SPREAD, RESIDUAL = 4, 8, 0.3, 0.12
EFFECT = 0.3
LINK, LEADING = 0.73, 3
UNEVEN_CELLS = tuple(
    (persons, columns, middle, epsilon)
    for middle in (0.85, 0.0)
    for persons, columns in ((200, 6), (800, 6), (4000, 6), (800, 30), (4000, 30))
    for epsilon in (1.0, 8.0)
)
"""Participants, columns, mean of the others and ε of studies in which a column of two levels varies
most."""


@dataclass(frozen=True)
class Said:
    """Findings of one study that are evaluated together, and their truths."""

    what: str
    findings: Sequence[Finding]
    truths: Sequence[float] | Array


Repetition = Callable[[int], list[Said]]


def regressed(
    persons: int, part: float, ratio: float, epsilon: float | None, seed: int
) -> list[Finding]:
    """Estimate eight coefficients; the first column has two levels, one of them in ``part``.

    The residual of its participants is ``ratio`` times as large as the others'. Only the second
    column explains the target.
    """
    rng = np.random.default_rng(seed)
    x = SPREAD * rng.standard_normal((COLUMNS, persons))
    rare = rng.random(persons) < part
    x[0] = np.where(rare, 1.0, -1.0)
    residual = RESIDUAL * np.where(rare, ratio, 1.0) * rng.standard_normal(persons)
    table = np.clip(np.vstack([x, EFFECT * x[1] + residual]), -1.0, 1.0)
    sites = _sites(table, (("x", COLUMNS), ("y", 1)))
    found = answer("regression", {"target": "y", "bound": 1.6}, sites, epsilon, rng)
    return regression.findings(found)


def labelled(
    persons: int, part: float, effects: Sequence[float], epsilon: float | None, seed: int
) -> list[Finding]:
    """Estimate logistic coefficients of eight columns.

    The first columns are of two levels and have the given effects. The first has its upper level in
    ``part`` of the participants. The column after them has an effect of 1, the others have none.
    """
    rng = np.random.default_rng(seed)
    x = SPREAD * rng.standard_normal((COLUMNS, persons))
    parts = np.append(part, np.full(len(effects) - 1, 0.5))
    x[: len(effects)] = np.where(rng.random((len(effects), persons)) < parts[:, None], 1.0, -1.0)
    x = np.clip(x, -1.0, 1.0)
    value = np.append(effects, 1.0) @ x[: len(effects) + 1] - 0.5
    y = np.where(rng.random(persons) < 1.0 / (1.0 + np.exp(-value)), 1.0, -1.0)
    sites = _sites(np.vstack([x, y]), (("x", COLUMNS), ("y", 1)))
    asked = {"target": "y", "bound": 2.0, "model": "logistic"}
    return regression.findings(answer("regression", asked, sites, epsilon, rng))


def uneven_table(
    persons: int, columns: int, middle: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return columns of which the first is -1 or 1, and their true means.

    The mean of the first is 0.2. The others have the mean ``middle``, and deviate from it by 0.08.
    """
    truth = np.append(0.2, np.full(columns - 1, middle))
    levels = np.where(rng.random(persons) < (1.0 + truth[0]) / 2.0, 1.0, -1.0)
    others = truth[1:, None] + 0.08 * rng.uniform(-1.7, 1.7, (columns - 1, persons))
    return np.vstack([levels, others]), truth


def averaged(
    persons: int,
    columns: int,
    middle: float,
    epsilon: float | None,
    seed: int,
    algorithm: str = "average",
) -> tuple[list[Finding], Array]:
    """Estimate means of an uneven table, by `average` or `coordinate`, and return their truth.

    The bound is the largest norm that a participant can have.
    """
    rng = np.random.default_rng(seed)
    table, truth = uneven_table(persons, columns, middle, rng)
    bound = float(np.sqrt(1.0 + (columns - 1) * (middle + 0.08 * 1.7) ** 2))
    asked = {"bound": bound} if algorithm == "average" else {"radii": {"x": bound}}
    found = answer(algorithm, asked, _sites(table, (("x", columns),)), epsilon, rng)
    rows = found.tables["means"].rows
    return [each for row in rows for each in row if isinstance(each, Finding)], truth


def compared(
    persons: int, columns: int, middle: float, epsilon: float, seed: int, *, stated: bool = True
) -> Result:
    """Compare a random group in outcomes of an uneven table, and in two means of them.

    The true effects are zero. The second outcome is tied to the first, so their mean varies much
    more than the second mean, which is of all others. With ``stated``, the study states the
    location and deviation of each outcome.
    """
    rng = np.random.default_rng(seed)
    table, truth = uneven_table(persons, columns, middle, rng)
    table[1] += 0.3 * (table[0] - truth[0])
    asked: dict[str, Any] = {
        "averages": {
            "two": ["brain1", "brain2"],
            "others": [f"brain{n}" for n in range(3, columns + 1)],
        },
        "anyway": True,
    }
    if stated:
        norms = {"location": tuple(table.mean(axis=1)), "deviation": tuple(table.std(axis=1))}
        asked["norms"] = norms
    site = np.arange(persons) * SITES // persons
    trial = trial_of(table, rng.random(persons) < 0.5, np.zeros((0, persons)), site, **asked)
    return run_trial(trial, noise_of(epsilon, SITES), rng)


def _averages(found: Result) -> list[Finding]:
    """Return the effects on means of outcomes."""
    ends = (found.arrays[f"average_{name}"].tolist() for name in ("effect", "low", "high"))
    return [Finding(value, low, high) for value, low, high in zip(*ends, strict=True)]


def linked(
    persons: int, sizes: tuple[int, int], decay: float, epsilon: float | None, seed: int
) -> list[Finding]:
    """Estimate the first canonical pair of two views with variances k to the power of ``-decay``.

    In each a combination of the leading `LEADING` directions is linked, by a correlation of `LINK`.
    """
    rng = np.random.default_rng(seed)
    first, second = (rng.standard_normal((size, persons)) for size in sizes)
    left, right = (_combination(size, rng) for size in sizes)
    own = right @ second
    second += np.outer(right, LINK * (left @ first) + (np.sqrt(1.0 - LINK**2) - 1.0) * own)
    table = np.vstack([_turned(first, decay, rng), _turned(second, decay, rng)])
    views = (("x", sizes[0]), ("y", sizes[1]))
    asked = {"pairs": 1, "site_constants": False}
    return cca.findings(answer("cca", asked, _sites(table, views), epsilon, rng))


def _combination(size: int, rng: np.random.Generator) -> Array:
    weights = np.append(rng.standard_normal(min(LEADING, size)), np.zeros(max(size - LEADING, 0)))
    return np.asarray(weights / np.linalg.norm(weights))


def _turned(factors: Array, decay: float, rng: np.random.Generator) -> Array:
    """Return vectors of norm about 0.6 whose leading directions, of any orientation, vary most."""
    variances = np.arange(1.0, len(factors) + 1.0) ** -decay
    axes = np.linalg.qr(rng.standard_normal((len(factors), len(factors))))[0]
    scales = 0.6 * np.sqrt(variances / variances.sum())
    return np.asarray(np.clip(axes @ (scales[:, None] * factors), -1.0, 1.0))


def _sites(table: Array, views: tuple[tuple[str, int], ...]) -> list[TableSite]:
    parts = np.array_split(table.astype(np.float32), SITES, axis=1)
    return [TableSite(np.ascontiguousarray(part), views) for part in parts]


def _regression() -> Iterator[tuple[str, Repetition]]:
    truths = [0.0, EFFECT, *[0.0] * (COLUMNS - 2)]
    cells = [(800, 0.15, 2.0, 4.0), (800, 0.15, 3.0, 8.0), (800, 0.05, 3.0, 8.0)]
    cells += [(4000, 0.15, 2.0, 1.0), (4000, 0.15, 2.0, 4.0), (4000, 0.15, 3.0, 8.0)]
    cells += [(4000, 0.05, 3.0, 8.0), (4000, 0.05, 0.33, 8.0), (4000, 0.5, 1.0, 8.0)]

    def repetition(cell: tuple[int, float, float, float], seed: int) -> list[Said]:
        found = regressed(*cell, seed)
        return [Said("rare", found[:1], truths), Said("others", found[1:], truths[1:])]

    for cell in cells:
        persons, part, ratio, epsilon = cell
        name = f"{persons} participants, {part:g} rare, residual × {ratio:g}, ε {epsilon:g}"
        yield name, partial(repetition, cell)


def _logistic() -> Iterator[tuple[str, Repetition]]:
    cells: list[tuple[int, float, tuple[float, ...], float]] = [
        (persons, part, (effect,), epsilon)
        for persons, epsilon in ((1500, 8.0), (8000, 8.0))
        for part in (0.5, 0.1)
        for effect in (0.5, 1.0, 1.5, 2.0)
    ]
    cells += [(8000, 0.5, (effect, effect), 8.0) for effect in (0.5, 1.0)]

    def repetition(cell: tuple[int, float, tuple[float, ...], float], seed: int) -> list[Said]:
        found, effects = labelled(*cell, seed), cell[2]
        rest = [1.0, *[0.0] * (COLUMNS - len(effects) - 1)]
        return [
            Said("two levels", found[: len(effects)], effects),
            Said("others", found[len(effects) :], rest),
        ]

    for cell in cells:
        persons, part, effects, epsilon = cell
        stated = " and ".join(f"{2 * effect:g}" for effect in effects)
        name = f"{persons} participants, {part:g} in level, log OR {stated}, ε {epsilon:g}"
        yield name, partial(repetition, cell)


def _means(algorithm: str) -> Iterator[tuple[str, Repetition]]:
    """Return the uneven cells, the same for every analysis of means."""

    def repetition(cell: tuple[int, int, float, float], seed: int) -> list[Said]:
        if algorithm in ("glm", "unstated"):
            result = compared(*cell, seed, stated=algorithm == "glm")
            found, truth = _averages(result), np.zeros(2)
        else:
            found, truth = averaged(*cell, seed, algorithm)
        return [Said("two levels", found[:1], truth[:1]), Said("others", found[1:], truth[1:])]

    for cell in UNEVEN_CELLS:
        persons, columns, middle, epsilon = cell
        name = f"{persons} participants, {columns} columns, others {middle:g}, ε {epsilon:g}"
        yield name, partial(repetition, cell)


def _cca() -> Iterator[tuple[str, Repetition]]:
    wide, middle, few = (132, 126), (40, 30), (8, 5)
    cells = [(440, wide, 1.5, 8.0), (440, wide, 1.5, 12.0), (440, wide, 1.0, 8.0)]
    cells += [(440, wide, 1.5, 50.0), (2000, middle, 1.0, 8.0), (2000, middle, 1.0, 4.0)]
    cells += [(800, few, 0.0, 4.0), (800, few, 0.0, 8.0), (4000, few, 0.5, 8.0)]

    def repetition(cell: tuple[int, tuple[int, int], float, float], seed: int) -> list[Said]:
        return [Said("pair 1", linked(*cell, seed), [LINK])]

    for cell in cells:
        persons, sizes, decay, epsilon = cell
        entries = f"{sizes[0]} + {sizes[1]} entries"
        name = f"{persons} participants, {entries}, k^-{decay:g}, ε {epsilon:g}"
        yield name, partial(repetition, cell)


ANALYSES: Mapping[str, Callable[[], Iterator[tuple[str, Repetition]]]] = {
    "regression": _regression,
    "logistic": _logistic,
    "average": partial(_means, "average"),
    "coordinate": partial(_means, "coordinate"),
    "glm": partial(_means, "glm"),
    "unstated": partial(_means, "unstated"),
    "cca": _cca,
}


def rows(repetition: Repetition, seeds: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """Return for each statement coverage, number of intervals, and width over true error."""
    studies = [repetition(seed) for seed in seeds]
    for same in zip(*studies, strict=True):
        pairs = [p for said in same for p in zip(said.findings, said.truths, strict=False)]
        told = [(each, true) for each, true in pairs if each.bounded]
        if not told:
            yield same[0].what, "–", f"0 of {len(pairs)}", "–"
            continue
        held = np.mean([each.low <= true <= each.high for each, true in told])
        error = np.sqrt(np.mean([(each.value - true) ** 2 for each, true in told]))
        half = np.sqrt(np.mean([((each.high - each.low) / 3.92) ** 2 for each, true in told]))
        yield same[0].what, f"{held:.3f}", f"{len(told)} of {len(pairs)}", f"{half / error:.2f}"


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.uneven")
    parser.add_argument("analyses", nargs="*", choices=[*ANALYSES, []], metavar="ANALYSIS")
    parser.add_argument("--repetitions", type=int, default=100)
    given = parser.parse_args()
    headings = ("analysis", "studies", "of", "coverage", "intervals", "width / error")
    table = Table(*headings, title="95 % intervals where participants are not alike")
    for name in given.analyses or ANALYSES:
        for what, repetition in ANALYSES[name]():
            for row in rows(repetition, range(given.repetitions)):
                table.add_row(name, what, *row)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
