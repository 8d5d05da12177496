"""``python -m benchmarks.networks [PART ...]``: what group ICA finds, and whether it says so truly.

Parts: ``plain``, ``hard``, ``calibration``, ``null``, ``smooth``, ``errors``, ``templates``,
``rounds``, ``peers``, ``shapes`` and ``bound``; ``halves FOLDER``, ``found FOLDER``,
``overlap FOLDER``, ``local FOLDER``, ``yardstick FOLDER``, ``home FOLDER``, ``home_told FOLDER``,
``home_open FOLDER``, ``likeness FOLDER`` and ``bound FOLDER`` read real participants' series or
their atlas. The release is simulated: the mechanism's noise is added to the mean of all
participants' projectors, which is worked out once for each basis; ``rounds`` plays whole runs.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.network_people import People, hard_people, plain_people
from benchmarks.network_pool import (
    FALSE,
    FOUND,
    HARD,
    LARGE,
    PLAIN,
    Pool,
    answer,
    cosines,
    key,
    matched,
    plan,
    resolved,
)
from benchmarks.timing import command, show
from consortium.algorithms.base import Array, Result
from consortium.study.plan import Plan


def _row(scores: Sequence[Array], told: Sequence[Result]) -> list[str]:
    each = np.array(scores)
    found = np.mean([result.numbers["found"] for result in told])
    above = np.mean(np.sum(each >= FOUND, axis=1))
    return [f"{np.median(each):.2f}", f"{each.mean():.2f}", f"{above:.1f}", f"{found:.1f}"]


def plain(seeds: int = 4) -> None:
    """Print results for 400 plain participants with 14 networks."""
    people, rows = plain_people(PLAIN), []
    pool = Pool(people, 0)
    plans = [plan(people, epsilon, components=14) for epsilon in (8.0, 4.0, 2.0)]
    pool.add([key(made) for made in plans])
    for made in plans:
        told = [answer(pool.mean(key(made)), made, seed) for seed in range(seeds)]
        scores = [matched(result.arrays["maps"], people.maps) for result in told]
        size = told[0].numbers["dimensions"]
        rows.append([f"{made.study.privacy.epsilon:g}", str(size), *_row(scores, told)])
    show(
        "400 participants, 14 networks: correlation with the truth",
        ["ε", "d", "median", "mean", "≥ .7", "said to be found"],
        rows,
    )


HARD_CELLS = ((HARD, (4.0, 8.0)), (LARGE, (1.0, 4.0, 8.0)))


def hard(draws: int = 5) -> None:
    """Print group ICA of hard participants next to pool and largest hospital, without noise."""
    rows = []
    for sizes, epsilons in HARD_CELLS:
        told: dict[str, list[tuple[Array, Result]]] = defaultdict(list)
        for draw in range(draws):
            for name, scored in _hard_draw(sizes, epsilons, draw):
                told[name].append(scored)
        rows += [
            [f"{sum(sizes):,}", name, *_row(*map(list, zip(*every, strict=True)))]
            for name, every in told.items()
        ]
    show(
        f"Hard participants, 20 networks, 8 unequal hospitals, {draws} draws of participants and "
        "noise: correlation with the truth",
        ["participants", "", "median", "mean", "≥ .7", "said to be found"],
        rows,
    )


def _hard_draw(
    sizes: tuple[int, ...], epsilons: Sequence[float], draw: int
) -> Iterator[tuple[str, tuple[Array, Result]]]:
    """Compare each study's networks with the truth, of participants and noise of one draw."""
    people = hard_people(sizes)
    pool = Pool(people, draw)
    plans = [plan(people, epsilon, components=20) for epsilon in epsilons]
    free = plan(people, 100.0, components=20, cutoff=27.0, replays=10)
    pool.add([key(made) for made in (*plans, free)])
    answers = {
        f"ε = {made.study.privacy.epsilon:g}": answer(pool.mean(key(made)), made, draw)
        for made in plans
    }
    answers["pooled, no noise"] = answer(pool.mean(key(free)), free, None)
    answers["best hospital"] = answer(pool.means[key(free)][0], free, None)
    for name, result in answers.items():
        yield name, (matched(result.arrays["maps"], people.maps), result)


FEW = (40, 30, 20, 10)


def _components(pool: Pool, plans: Sequence[Plan], seeds: int) -> tuple[Array, ...]:
    """Return expected and true correlation of many components, at both resolutions."""
    expected, near, hoped, full = [], [], [], []
    pool.add([key(made) for made in plans])
    for made in plans:
        truth = resolved(pool.people.maps, key(made)[0])
        for seed in range(seeds):
            result = answer(pool.mean(key(made)), made, seed)
            maps = result.arrays["maps"]
            if maps.shape[1]:
                expected.append(result.arrays["expected"])
                near.append(cosines(maps, truth).max(axis=0))
                hoped.append(result.arrays["expected"] * float(result.numbers["resolved"]))
                full.append(cosines(maps, pool.people.maps).max(axis=0))
    return tuple(np.concatenate(each) for each in (expected, near, hoped, full))


def calibration(seeds: int = 4) -> None:
    """Print expected and true correlation over components of plain and of hard participants."""
    parts = []
    every: Sequence[tuple[People, int, tuple[float, ...]]] = (
        (plain_people(PLAIN), 14, (2.0, 4.0, 8.0)),
        (hard_people(HARD), 20, (2.0, 4.0, 8.0)),
        (plain_people(FEW), 14, (4.0, 5.0, 6.0, 8.0)),
        (hard_people(FEW), 20, (5.0, 6.0, 8.0)),
    )
    for people, size, epsilons in every:
        options: list[dict[str, Any]] = [{"components": size}, {"components": "auto"}]
        plans = [plan(people, e, **more) for e in epsilons for more in options]
        parts.append(_components(Pool(people, 0), plans, seeds))
    expected, near, hoped, full = (np.concatenate(each) for each in zip(*parts, strict=True))
    rows, edges = [], (0.0, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)
    for low, high in pairwise(edges):
        within = (expected >= low) & (expected < high)
        if within.any():
            means = [f"{each[within].mean():.3f}" for each in (expected, near, hoped, full)]
            rows.append([f"{low:g} to {high:g}", str(int(within.sum())), *means])
    show(
        "Expected and true correlation of components",
        ["expected", "components", "expected", "true", "expected in full", "true in full"],
        rows,
    )
    found = expected >= FOUND
    print(
        f"{found.sum()} found; truly below {FALSE}: {np.mean(near[found] < FALSE):.1%}; "
        f"correlation of expected and true {np.corrcoef(expected, near)[0, 1]:.2f}"
    )


def null(runs: int = 100) -> None:
    """Print how often a network is found in people without common networks."""
    rows = []
    makers: Mapping[str, Callable[..., People]] = {
        "plain": plain_people,
        "with own structure, global signal and spikes": hard_people,
    }
    for name, make in makers.items():
        people = make(PLAIN, networks=0.0)
        pool, parts = Pool(people, 0), []
        for epsilon in (4.0, 100.0):
            made = plan(people, epsilon, cutoff=34.0, replays=20)
            matrix = pool.mean(key(made))
            told = [answer(matrix, made, seed) for seed in range(runs)]
            parts.append(sum(float(result.numbers["found"]) > 0 for result in told))
        rows.append([name, str(runs), *map(str, parts)])
    show("No network: runs that find one", ["participants", "runs", "ε = 4", "ε = 100"], rows)


def errors(runs: int = 100) -> None:
    """Print standard errors of voxels next to the spread over repeated releases."""
    people = plain_people(PLAIN)
    pool, rows = Pool(people, 0), []
    for epsilon in (4.0, 8.0):
        made = plan(people, epsilon, components=14)
        told = [answer(pool.mean(key(made)), made, seed) for seed in range(runs)]
        ratios = []
        for network in people.maps.T:
            maps, spreads = [], []
            for result in told:
                every = cosines(result.arrays["maps"], network[:, None])[0]
                best = int(every.argmax())
                if every[best] >= FOUND:
                    values = result.arrays["maps"][:, best]
                    maps.append(values * np.sign(values @ network))
                    spreads.append(result.arrays["errors"][:, best])
            if len(maps) >= runs // 2:
                told_error = np.sqrt(np.mean(np.square(spreads), axis=0))
                ratios.append(np.median(told_error / np.std(maps, axis=0, ddof=1)))
        low, middle, high = np.quantile(ratios, (0.0, 0.5, 1.0))
        rows.append([f"{epsilon:g}", str(runs), f"{middle:.2f}", f"{low:.2f} to {high:.2f}"])
    show(
        "Voxels' standard error over the spread of repeated releases, median over the voxels",
        ["ε", "runs", "median network", "all networks"],
        rows,
    )


OF_FOLDERS: tuple[str, ...] = ("halves", "home", "home_told", "likeness", "bound", "found")
OF_FOLDERS += ("overlap", "local", "yardstick", "home_open")
"""Parts that read real participants' series, or their atlas."""
VERDICTS = ("found", "shapes", "overlap", "yardstick")
"""Parts of `benchmarks.network_verdicts`."""
HERE: Mapping[str, Callable[[], None]] = {
    "plain": plain,
    "hard": hard,
    "calibration": calibration,
    "null": null,
    "errors": errors,
}
PARTS: tuple[str, ...] = ("plain", "hard", "calibration", "null", "smooth", "shapes", "errors")
PARTS += ("templates", "rounds", "peers")
"""In the order in which all are carried out; those that are not here have a module of their own."""


def main(*names: str) -> None:
    """Carry out parts, or the one that reads a folder."""
    asked = names[:1] if names and names[0] in OF_FOLDERS else names or PARTS
    for name in asked:
        module = "verdicts" if name in VERDICTS else name
        part = HERE.get(name) or getattr(import_module(f"benchmarks.network_{module}"), name)
        part(*map(Path, names[1:] if name in OF_FOLDERS else ()))


if __name__ == "__main__":
    command(main)
