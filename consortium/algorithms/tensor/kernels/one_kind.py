"""Test of whether the participants are of as many kinds as the study asks for, or of fewer.

Agreement of the third moment with the weights does not show this: for two components it holds for
any vector that whitens. The limits are from simulated moments of fewer components.
"""

from collections.abc import Callable, Iterator

import numpy as np

from consortium.base.array import Array
from consortium.kernels.moments import packed_size, unpack_symmetric

DRAWS = 199
LEVEL = 0.05
"""Probability of exceeding a limit where there are fewer components."""
_MOST_SIMULATED = 2000
"""Participants of a simulated study. Chance is scaled to the true number."""


def limit_of(statistic: Callable[[Array], float], simulated: Iterator[Array]) -> float:
    """Return the limit that a statistic of simulated moments of one kind exceeds by chance."""
    drawn = [statistic(next(simulated)) for _ in range(DRAWS)]
    return float(np.quantile(drawn, 1.0 - LEVEL, method="higher"))


def linked_eigenvalue(covariance: Array, rank: int) -> float:
    """Return the eigenvalue of the given rank of the covariances between different entries.

    Kinds of participants make entries covary. Entries of participants of one kind may have any
    variances and tails. If they are independent, they covary only by chance and noise.
    """
    between = covariance - np.diag(np.diag(covariance))
    return float(np.linalg.eigvalsh(between)[-rank])


def independent_entries(
    moment: Array, variances: Array, units: float, deviation: float, seed: int
) -> Iterator[Array]:
    """Yield moments of participants of one kind, as a release would have them.

    Parameters
    ----------
    moment : array, M x M
        Expectation of the moment if entries are independent.
    variances : array, length D
        Of the entries, which are the first of the moment.
    units : float
        Participants.
    deviation : float
        Standard deviation of the noise in a packed entry.
    """
    generator = np.random.default_rng(seed)
    size = len(variances)
    spread = np.sqrt(np.outer(variances, variances) / max(units, 1.0))
    while True:
        chance = np.triu(spread * generator.standard_normal((size, size)), 1)
        noise = deviation * generator.standard_normal(packed_size(len(moment)))
        drawn = moment + unpack_symmetric(noise)
        drawn[:size, :size] += chance + chance.T
        yield drawn


def fewer_topics(
    moment: Array, frequencies: Array, topics: int, units: float, deviation: float, seed: int
) -> Iterator[Array]:
    """Yield second moments of words of a smaller number of topics, as a release would have them.

    Parameters
    ----------
    moment : array, D x D
        Mean product of two words, as released.
    frequencies : array, length D
        Of the words.
    topics : int
        Leading eigenvectors of the moment that are kept.
    units, deviation : float
        As in `independent_entries`.
    """
    generator = np.random.default_rng(seed)
    size = len(moment)
    values, vectors = np.linalg.eigh(moment)
    kept = slice(size - topics, None)
    fewer = (vectors[:, kept] * values[kept]) @ vectors[:, kept].T
    many = int(min(max(units, 1.0), _MOST_SIMULATED))
    scale = float(np.sqrt(many / max(units, 1.0)))
    expected = np.outer(frequencies, frequencies)
    while True:
        chance = scale * (_mean_products(frequencies, many, generator) - expected)
        noise = deviation * generator.standard_normal(packed_size(size))
        yield fewer + chance + unpack_symmetric(noise)


def _mean_products(frequencies: Array, many: int, generator: np.random.Generator) -> Array:
    """Draw the mean symmetric product of two of three independent words of each participant."""
    size = len(frequencies)
    words = generator.choice(size, size=(3, many), p=frequencies)
    counts = np.zeros((size, size))
    for first, second in ((0, 1), (0, 2), (1, 2)):
        pairs = np.bincount(size * words[first] + words[second], minlength=size * size)
        counts += pairs.reshape(size, size)
    return np.asarray((counts + counts.T) / (6.0 * many))
