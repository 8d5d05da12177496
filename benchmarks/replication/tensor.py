"""Figures 5.1 to 5.3: mixtures of Gaussians and single-topic models.

``python -m benchmarks.replication.tensor`` prints tables and writes docs/images/tensor.png.
"""

import math
from functools import partial

import numpy as np

from benchmarks.replication.agn import published_mixture, published_topics
from benchmarks.replication.audit import Panel, verdict
from benchmarks.replication.common import RUNS, SCHEMES, Promise, private_run
from benchmarks.replication.drawing import panels
from benchmarks.replication.printed import (
    printed_epsilon,
    published_ratio,
    show_costs,
    true_epsilon,
)
from benchmarks.timing import show
from consortium.algorithms.base import Array

SITES, DELTA, SPREAD = 5, 0.01, 0.05
PROBLEMS = ((10, 5, 20_000), (50, 10, 30_000))
"""D, K, and participants at all sites together."""
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
FACTORS = (0.1, 0.3, 1.0, 2.0)
DELTAS = (1e-8, 1e-6, 1e-4, 1e-2)
KEYS = (*SCHEMES, "published", "random")


def mixture(features: int, count: int, persons: int, g: np.random.Generator) -> tuple[Array, Array]:
    """Simulate centres of norm at most 1, and participants around them, variance 0.05 per entry."""
    centres = g.standard_normal((features, count))
    centres /= np.linalg.norm(centres, axis=0)
    kinds = g.integers(count, size=persons)
    noise = math.sqrt(SPREAD) * g.standard_normal((features, persons))
    return centres, centres[:, kinds] + noise


def topics(features: int, count: int, persons: int, g: np.random.Generator) -> tuple[Array, Array]:
    """Simulate word frequencies of topics, and three one-hot words of each participant."""
    centres = g.dirichlet(np.full(features, 0.2), size=count).T
    kinds = g.integers(count, size=persons)
    table = np.zeros((3 * features, persons), dtype=np.float32)
    ends = np.cumsum(centres, axis=0)
    for word in range(3):
        drawn = (g.random(persons) > ends[:, kinds]).sum(axis=0).clip(max=features - 1)
        table[word * features + drawn, np.arange(persons)] = 1.0
    return centres, table


def error(found: Array, centres: Array) -> float:
    """Return q_comp: the mean distance of a found centre to the nearest true one (section 5.4)."""
    distances = np.linalg.norm(found[:, :, None] - centres[:, None, :], axis=0)
    return float(distances.min(axis=1).mean())


def reach(features: int) -> float:
    """Return a public limit that nearly all participants of the mixture are within."""
    return math.sqrt(1 + SPREAD * features) + 2 * math.sqrt(SPREAD)


def scores(
    model: str, features: int, count: int, persons: int, epsilon: float, delta: float
) -> dict[str, Array]:
    """Return q_comp of every method, one number for each run."""
    found: dict[str, list[float]] = {key: [] for key in KEYS}
    analysis: dict[str, object] = {"components": count, "model": model}
    views = [("x", features)]
    if model == "mixture":
        analysis["bound"] = reach(features)
    else:
        views = [(name, features) for name in ("first", "second", "third")]
        analysis["words"] = [name for name, _ in views]
    for seed in range(RUNS):
        g = np.random.default_rng([seed, features])  # the same centres at every N
        make = mixture if model == "mixture" else topics
        centres, table = make(features, count, persons, g)
        for scheme in SCHEMES:
            result = private_run(
                *("tensor", analysis, table, views, scheme, Promise(SITES, epsilon, delta), g),
                apart=model == "mixture",
            )
            found[scheme].append(error(result.arrays["centres"][:features], centres))
        guess = g.standard_normal((features, count))
        guess /= np.linalg.norm(guess, axis=0)
        ratio = published_ratio(epsilon, delta, SITES, 2)
        if model == "topics":
            guess = g.dirichlet(np.ones(features), size=count).T
            rival = published_topics(table, count, ratio, g)
        else:
            rival = published_mixture(table, count, ratio, SPREAD, reach(features), g)
        found["published"].append(error(rival, centres))
        found["random"].append(error(guess, centres))
    return {key: np.array(values) for key, values in found.items()}


def main() -> None:
    rows, drawn, audit = [], [], []
    for model in ("mixture", "topics"):
        for features, count, persons in PROBLEMS:
            score = partial(scores, model, features, count)
            lines = {
                "ε": [(e, score(persons, e, DELTA)) for e in EPSILONS],
                "N": [(f * persons, score(int(f * persons), 1.0, DELTA)) for f in FACTORS],
                "δ": [(d, score(persons, 1.0, d)) for d in DELTAS],
            }
            for e, found in lines["ε"]:
                cells = [f"{found[key].mean():.3f}" for key in KEYS]
                rows.append([model, str(features), f"{persons:,}", f"{e:g}", *cells])
            for axis, points in lines.items():
                fixed = f"{model}, D = {features}" + ("" if axis == "ε" else ", ε = 1")
                panel = Panel(fixed, axis, points)
                drawn.append(panel.curves())
                audit += panel.compared()
    show(
        "q_comp, mean of ten runs, S = 5, one colluding, δ = 0.01, at true ε",
        ["model", "D", "N", "ε", *KEYS],
        rows,
    )
    show_costs(
        "Algorithm 5.1's two releases at nominal ε each, S = 5, δ = 0.01",
        ["Theorem 3.1 for one", "true, both"],
        (0.1, 0.5, 1.0),
        lambda e: printed_epsilon(e, DELTA, SITES),
        lambda e: true_epsilon(e, DELTA, SITES, 2),
    )
    print(panels("tensor", drawn, "q_comp"))
    print(verdict(audit))


if __name__ == "__main__":
    main()
