"""Mean embeddings of participants, their distances, and synthetic points for an embedding.

Source: Rahimi and Recht (2007) for the features; Gretton et al. (2012), Lemma 6, for the unbiased
distance; Sarpatwar et al. (2019), Algorithm 3, for the greedy choice of points.
"""

import numpy as np
from scipy.optimize import minimize

from consortium.base.array import Array
from consortium.kernels.simplex import project_to_simplex

_FARTHEST = 1e3
_POOL = 200  # starting points a step
_PASSES = 2_000
_REPLAYS = 10_000  # of which a share of 5 % is precise to 0.2 %
_ROOM = 2_000_000  # numbers of the replays that are drawn at a time


def draw_frequencies(
    features: int, count: int, width: float, generator: np.random.Generator
) -> Array:
    """Draw frequencies of exp(-‖x - y‖²/(2 width²)): D x count, independent N(0, 1/width²)."""
    return generator.standard_normal((features, count)) / width


def fourier_features(table: Array, frequencies: Array) -> Array:
    """Return features φ of participants in columns, 2 F x M: cosines over sines, of norm one.

    φ(x)ᵀφ(y) is the mean over the frequencies of cos(ωᵀ(x - y)). A participant whose phase is not a
    number counts as one of phase zero. Entries are cut to ±1,000. So rounding, which may depend on
    other participants, changes no phase noticeably.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        phases = frequencies.T @ np.clip(np.asarray(table, dtype=np.float64), -_FARTHEST, _FARTHEST)
    phases[~np.isfinite(phases)] = 0.0
    features: Array = np.vstack([np.cos(phases), np.sin(phases)]) / np.sqrt(frequencies.shape[1])
    return features


def gram(rows: Array, deviations: Array, sizes: Array) -> Array:
    """Estimate inner products of the sites' true mean embeddings, without bias, S x S.

    Parameters
    ----------
    rows : array, S x E
        Noisy means of features of norm one.
    deviations : array, length S
        Standard deviation of the noise of each row's entries.
    sizes : array, length S
        Participants of each; the square of a mean of n has a bias of 1/n, which is subtracted.
    """
    products: Array = rows @ rows.T
    squares = np.diag(products) - rows.shape[1] * deviations**2
    pairs = (sizes * squares - 1.0) / np.maximum(sizes - 1.0, 1.0)
    products[np.diag_indices_from(products)] = np.where(sizes > 1, pairs, squares)
    return products


def contrast_deviation(
    contrast: Array, distance: float, products: Array, deviations: Array, sizes: Array, entries: int
) -> float:
    """Return the largest standard deviation of a contrast uᵀ G u if its true value is ``distance``.

    Noise has variance v² = Σ u²τ² in every entry. The sampling error has a covariance of trace
    c = Σ u² (1 - ‖m‖²)/n, whose largest eigenvalue is not above that.

    Parameters
    ----------
    contrast : array, length S
        u, for two cohorts e_s - e_t.
    distance : float
        ‖Σ u m‖² >= 0.
    products, deviations, sizes
        As for `gram`.
    entries : int
        E.
    """
    noise = float(np.sum((contrast * deviations) ** 2))
    spread = np.clip(1.0 - np.diag(products), 0.0, 1.0) / sizes
    chance = float(np.sum(contrast**2 * spread))
    pure = 2.0 * (entries * noise**2 + 2.0 * noise * chance + chance**2)
    return float(np.sqrt(4.0 * distance * (noise + chance) + pure))


def null_floors(
    contrasts: Array,
    deviations: Array,
    chance: Array,
    sizes: Array,
    entries: int,
    risk: float,
    generator: np.random.Generator,
) -> Array:
    """Return joint upper limits of all contrasts uᵀ G u if all sites' mean embeddings are equal.

    Noise and sampling error are drawn repeatedly. Each limit is the same multiple of its contrast's
    own standard deviation. The distribution of the sampling error over the entries is unknown. The
    heaviest tail is that of one direction, and all sampling error is drawn there.

    Parameters
    ----------
    contrasts : array, R x S
    deviations : array, length S
        Standard deviation of the noise of a mean's entries.
    chance : array, length S
        Sampling variance of each mean, all entries together.
    sizes : array, length S
        Participants of each, as for `gram`.
    entries : int
        E.
    risk : float
        Share of studies in which any estimate is above.

    Returns
    -------
    array, length R
    """
    count = len(deviations)
    each = max(_ROOM // count**2, 1)
    parts = [min(each, _REPLAYS - start) for start in range(0, _REPLAYS, each)]
    laws = deviations, chance, sizes, entries
    values = np.concatenate([_replayed(contrasts, *laws, part, generator) for part in parts])
    spread = np.maximum(np.sqrt(np.mean(values**2, axis=0)), np.finfo(np.float64).tiny)
    most = np.quantile((values / spread).max(axis=1), 1.0 - risk)
    return np.asarray(most * spread)


def _replayed(
    contrasts: Array,
    deviations: Array,
    chance: Array,
    sizes: Array,
    entries: int,
    replays: int,
    generator: np.random.Generator,
) -> Array:
    """Draw estimates of contrasts if all means are equal: replays x R.

    Products of the means are those of their first entries, with sampling error, and of E - 1
    entries of only noise, whose matrix of products is drawn by Bartlett's factor.
    """
    first = deviations * generator.standard_normal((replays, len(deviations)))
    first += np.sqrt(chance) * generator.standard_normal(first.shape)
    rest = deviations[:, None] * _factor(len(deviations), entries - 1, replays, generator)
    squares = first**2 + np.square(rest).sum(axis=2) - entries * deviations**2 - chance
    values = (first @ contrasts.T) ** 2 + np.square(contrasts @ rest).sum(axis=2)
    # As `gram` does: a mean's own square is freed of noise and chance.
    values -= (entries * deviations**2 + chance) @ contrasts.T**2
    own = np.where(sizes > 1, 1.0 / np.maximum(sizes - 1.0, 1.0), 0.0)
    return np.asarray(values + (own * squares) @ contrasts.T**2)


def _factor(size: int, freedom: int, replays: int, generator: np.random.Generator) -> Array:
    """Draw A with A Aᵀ the matrix of products of S vectors of normal entries, n x S x S."""
    if freedom < size:
        return generator.standard_normal((replays, size, freedom))
    lower = np.tril(generator.standard_normal((replays, size, size)), -1)
    squares = generator.chisquare(freedom - np.arange(size), (replays, size))
    lower[:, np.arange(size), np.arange(size)] = np.sqrt(squares)
    return np.asarray(lower)


def mixture_weights(rows: Array, target: int) -> Array:
    """Return weights w >= 0 of the other sites, with sum one, of the mixture nearest the target.

    Minimizes ‖Σ w_s m_s - m_t‖² of the noisy means by accelerated projected gradients. Noise and
    sampling error add Σ w_s² times their energy, which spreads the weights over sites that can't be
    distinguished, especially over large ones.

    Parameters
    ----------
    rows : array, S x E
        As `gram` has them.

    Returns
    -------
    array, length S
        Zero at the target.
    """
    square = rows @ rows.T
    others = np.delete(np.arange(len(square)), target)
    inner = square[np.ix_(others, others)]
    cross = square[others, target]
    step = 1.0 / max(float(np.linalg.eigvalsh(inner)[-1]), 1e-12)
    weights = ahead = np.full(len(others), 1.0 / len(others))
    momentum = 1.0
    for _ in range(_PASSES):
        before = weights
        weights = project_to_simplex(ahead - step * (inner @ ahead - cross))
        last = momentum
        momentum = (1.0 + np.sqrt(1.0 + 4.0 * last**2)) / 2.0
        ahead = weights + (last - 1.0) / momentum * (weights - before)
    return np.insert(weights, target, 0.0)


def choose_points(
    embedding: Array, frequencies: Array, count: int, generator: np.random.Generator
) -> Array:
    """Choose synthetic points within [-1, 1] with a mean embedding near the given one, D x count.

    Greedy: the point l + 1 maximizes g̃ᵀφ(x) - l/(l+1) g_lᵀφ(x), g_l the mean of the earlier ones.
    The best of a random pool is improved along the gradient.
    """
    found = np.empty((len(frequencies), count))
    chosen = np.zeros_like(embedding)
    for number in range(count):
        wanted = embedding - chosen / (number + 1)
        pool = generator.uniform(-1.0, 1.0, (len(frequencies), _POOL))
        pool[:, 0] = 0.0
        start = pool[:, int(np.argmax(wanted @ fourier_features(pool, frequencies)))]
        found[:, number] = _climb(wanted, frequencies, start)
        chosen += fourier_features(found[:, number : number + 1], frequencies)[:, 0]
    return found


def _climb(wanted: Array, frequencies: Array, start: Array) -> Array:
    """Return a local maximum of wantedᵀ φ(x) within the limits."""
    count = frequencies.shape[1]
    cosines = wanted[:count]
    sines = wanted[count:]

    def negative(x: Array) -> tuple[float, Array]:
        phases = x @ frequencies
        c = np.cos(phases)
        s = np.sin(phases)
        return -float(cosines @ c + sines @ s), frequencies @ (cosines * s - sines * c)

    limits = [(-1.0, 1.0)] * len(start)
    point: Array = minimize(negative, start, jac=True, bounds=limits, method="L-BFGS-B").x
    return point
