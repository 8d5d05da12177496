"""The protocol of data summarization under covariate shift, corrected, and its true privacy loss.

Sarpatwar et al. (2019): Algorithm 2 (MWEM as a hash), Algorithm 3 (the protocol), the auction.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from consortium.algorithms.base import Array

DELTA = 0.01
"""As in the paper's experiments."""


@dataclass(frozen=True)
class Setting:
    """Features of the owners' and the consumer's participants, in rows, and the participants."""

    owners: list[Array]
    persons: list[Array]
    consumer: Array
    goal: Array
    seed: Array
    frequencies: Array


def loss_tail(epsilon: float, steps: list[tuple[int, float]]) -> float:
    """Return the worst δ(ε) of the composition of pure mechanisms (Kairouz, Oh, Viswanath).

    ``steps`` contains counts and levels, each of which is a whole multiple of the last.
    """
    unit = steps[-1][1]
    law, least = np.ones(1), 0
    for count, level in steps:
        factor = round(level / unit)
        own = np.zeros(2 * factor * count + 1)
        chance = 1 / (1 + np.exp(-level))
        own[:: 2 * factor] = binom.pmf(np.arange(count + 1), count, chance)
        law, least = np.convolve(law, own), least - factor * count
    losses = unit * (least + np.arange(len(law)))
    return float(law @ np.maximum(0.0, -np.expm1(np.minimum(epsilon - losses, 0.0))))


def pure_level(epsilon: float, count: int, delta: float = DELTA) -> float:
    """Return the level of each of ``count`` pure mechanisms that together are (ε, δ)-DP."""
    return float(brentq(lambda e: loss_tail(epsilon, [(count, e)]) - delta, 1e-6, epsilon + 1))


def printed_epsilon(count: int = 1656, level: float = 0.01) -> float:
    """Return the true ε of the printed hash.

    Its scores and noise lack the sensitivity 2 of a replacement.
    """
    steps = [(count, 4 * level), (count, 2 * level)]
    return float(brentq(lambda e: loss_tail(e, steps) - DELTA, 0.0, 6 * level * count))


class Mwem:
    """Algorithm 2 with the constants of Hardt, Ligett and McSherry, for replacing a participant.

    The law over the grid remains a product, in which each coordinate has its own exponent.
    """

    def __init__(self, entries: int, level: float, g: np.random.Generator) -> None:
        self.grid = np.linspace(-1, 1, 2 * entries + 1)
        self.exponents, self.means = np.zeros(entries), np.zeros(entries)
        self.level, self.g = level, g

    def release(self, features: Array, steps: int) -> Array:
        """Return the private mean of features whose entries are within ±√(2/entries)."""
        count, scale = len(features), np.sqrt(len(self.means) / 2)
        truth = scale * features.mean(axis=0)
        total = np.zeros(len(truth))
        for _ in range(steps):
            scores = self.level / 4 * count * np.abs(self.means - truth)  # Δ = 2
            chances = np.exp(scores - scores.max())
            k = self.g.choice(len(truth), p=chances / chances.sum())
            seen = truth[k] + self.g.laplace(scale=2 / self.level) / count
            self.exponents[k] += (seen - self.means[k]) / 2
            law = np.exp(self.exponents[k] * self.grid - abs(self.exponents[k]))
            self.means[k] = law @ self.grid / law.sum()
            total += self.means
        return total / steps / scale


def ask_probability(rank: int, level: float, first: float) -> float:
    """Return the chance that a rank's owner (1 is best) is asked: answers' ratios <= e^level."""
    return float(1 / (1 + np.exp(level * (rank - first))))


def printed_probability(rank: int, level: float) -> float:
    """Return the printed chance: the best is always asked, and 'not asked' excludes the best."""
    return float(np.exp(-level * (rank - 1)))


def protocol(
    at: Setting,
    goal: Array,
    hashed: Callable[[Array], Array],
    ask: Callable[[int], float],
    most: int,
    g: np.random.Generator,
) -> tuple[Array, int]:
    """Run Algorithm 3 with step 6's sign corrected; return chosen participants and number asked.

    Points that were handed over but not chosen remain with the curator, who may choose them later.
    """
    bids = [features @ goal for features in at.owners]
    summary, pool, seen = list(at.seed), [], 0
    chosen: list[Array] = []
    free = [np.ones(len(features), bool) for features in at.owners]
    while len(chosen) < most:
        share = (len(chosen) + bool(len(at.seed))) / (len(chosen) + 1 + bool(len(at.seed)))
        current = hashed(np.array(summary)) if summary else np.zeros_like(goal)
        values = [
            np.where(f, b - share * features @ current, -np.inf)
            for f, b, features in zip(free, bids, at.owners, strict=True)
        ]
        best = [int(np.argmax(v)) for v in values]
        ranks = np.argsort([-v[k] for v, k in zip(values, best, strict=True)])
        for rank, owner in enumerate(ranks, 1):
            if g.random() < ask(rank):
                free[owner][best[owner]] = False
                pool.append((int(owner), best[owner]))
                seen += 1
        if not pool:
            continue
        gains = [bids[o][k] - share * float(at.owners[o][k] @ current) for o, k in pool]
        owner, index = pool.pop(int(np.argmax(gains)))
        summary.append(at.owners[owner][index])
        chosen.append(at.persons[owner][index])
    return np.array(chosen), seen
