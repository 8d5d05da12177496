"""Figure 3.5: a network that distinguishes two Gaussian classes.

``python -m benchmarks.replication.network`` prints a table and writes docs/images/network.png. The
paper gives ε per iteration; here ε is the whole training's, and the table gives both.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from benchmarks.replication.audit import Panel, verdict
from benchmarks.replication.common import RUNS, SCHEMES, Promise, private_run
from benchmarks.replication.drawing import panels
from benchmarks.replication.printed import classical, published_ratio, show_costs, true_epsilon
from benchmarks.timing import show
from consortium.algorithms.base import Array
from consortium.algorithms.network.kernels.classifier import predict
from consortium.privacy.gdp import epsilon_of, mu_of

SITES, DELTA, FEATURES = 4, 0.01, 50
VIEWS = (("x", FEATURES), ("y", 1))
SCALE = 4.0
"""Public: one unit of the data is this part of a view's limit."""
ROUNDS = 60
EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0)
SIZES = (1_000, 3_000, 10_000, 30_000)
TEST = 5_000
KEYS = (*SCHEMES, "published")
RATES = (1.0, 2.0, 5.0, 10.0)
"""Learning rates of the published descent, which prints none: each point uses the best of them."""


def made(count: int, generator: np.random.Generator) -> Array:
    """Simulate unit-variance classes with means 1 apart: the best accuracy is Φ(1/2) = 69.1 %."""
    direction = generator.standard_normal(FEATURES)
    direction /= np.linalg.norm(direction)
    x = generator.standard_normal((FEATURES, count + TEST))
    y = np.where(generator.random(count + TEST) < 0.5, 1.0, -1.0)
    x += np.outer(direction, y) / 2
    return np.vstack([np.clip(x / SCALE, -1, 1), y])


def accuracy(result: Mapping[str, Array], table: Array) -> float:
    sizes = [int(n) for n in result["units"]]
    told = predict(result["parameters"], sizes, table[:-1])[0] > 0.5
    return 100 * float(np.mean(told == (table[-1] > 0)))


def scores(count: int, epsilon: float) -> dict[str, Array]:
    """Return accuracy in per cent on training and test people: two rows, a column for each run."""
    found = {key: trained(count, epsilon, key, {}) for key in SCHEMES}
    rivals = [trained(count, epsilon, "published", plain(rate)) for rate in RATES]
    return found | {"published": max(rivals, key=lambda rival: float(rival[1].mean()))}


def plain(rate: float) -> dict[str, object]:
    """Run gradient descent as in section 3.4: neither momentum nor averages, and one step."""
    return {"momentum": 0.0, "averaged": 1 / ROUNDS, "learning_rate": rate}


def trained(count: int, epsilon: float, key: str, analysis: dict[str, object]) -> Array:
    """Return the accuracies of one method."""
    found = []
    for seed in range(RUNS):
        table = made(count, np.random.default_rng([seed, count]))
        train, test = table[:, :count], table[:, count:]
        asked = {"target": "y", "rounds": ROUNDS, "seed": seed, "site_constants": False} | analysis
        promise, g = Promise(SITES, epsilon, DELTA), np.random.default_rng([seed, count, 1])
        arrays = private_run("network", asked, train, VIEWS, key, promise, g).arrays
        found.append((accuracy(arrays, train), accuracy(arrays, test)))
    return np.array(found).T


def nominal(epsilon: float, rounds: int) -> float:
    """Return the ε per iteration of the papers' calibration, given the true ε over all rounds."""
    return published_ratio(epsilon, DELTA, SITES, rounds) / classical(1.0, DELTA)


def main() -> None:
    by_epsilon = [(e, scores(10_000, e)) for e in EPSILONS]
    by_size = [(n, scores(n, 1.0)) for n in SIZES]
    rows = []
    for e, found in by_epsilon:
        each = f"{epsilon_of(mu_of(e, DELTA) / ROUNDS**0.5, DELTA):.3g}"
        cells = [f"{found[key][1].mean():.1f}" for key in KEYS]
        rows.append([f"{e:g}", each, f"{nominal(e, ROUNDS):.3g}", *cells])
    show(
        "Test accuracy in %, D = 50, N = 10,000, S = 4, one colluding, δ = 0.01, 60 rounds",
        ["ε", "ε a round", "the paper's ε a round", *KEYS],
        rows,
    )
    show(
        "Test accuracy in % at ε = 1",
        ["N", *KEYS],
        [[f"{n:,}", *[f"{found[key][1].mean():.1f}" for key in KEYS]] for n, found in by_size],
    )
    show_costs(
        "True ε of CAPE as published (κ = 1) after 60 rounds at nominal ε a round",
        ["true"],
        (0.05, 0.1, 0.5, 1.0),
        lambda e: true_epsilon(e, DELTA, SITES, ROUNDS),
    )
    drawn, audit = [], []
    for axis, points, fixed in (("ε", by_epsilon, "N = 10,000"), ("N", by_size, "ε = 1")):
        for which, name in ((0, "training"), (1, "test")):
            part = [(x, {key: f[key][which] for key in KEYS}) for x, f in points]
            panel = Panel(f"{name} people, {fixed}", axis, part)
            drawn.append(panel.curves())
            wrong = replace(panel, title=f"misclassified {panel.title}")
            audit += wrong.compared(error=lambda found, key: 100 - found[key])
    print(panels("network", drawn, "accuracy in %", yscale="linear"))
    print(verdict(audit))


if __name__ == "__main__":
    main()
