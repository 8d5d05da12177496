"""Area under the ROC curve (AUC) from noisy counts of two classes in bins of a score.

The AUC is the probability that a random positive has the higher score of a random pair, and ties
count half (Mann and Whitney 1947): a = Σ p_j n_i w_ji / (P N), with p_j of P positives in bin j,
n_i of N negatives in bin i, and w = 1, ½ or 0 where j is above, equal to or below i.

The interval contains every a that fits T(a) = Σ p_j n_i (w_ji - a), whose expectation is zero at
the true a: the noise of positives and of negatives is independent. So no quotient of noisy numbers
biases the interval (Fieller 1954). The variance of T by chance is the larger one of DeLong et al.
(1988), from the bins, and of Newcombe (2006), which depends on a only and is valid near one.
"""

from dataclasses import dataclass

import numpy as np

from consortium.base.array import Array

_GRID = np.linspace(0.0, 1.0, 2001)


@dataclass(frozen=True)
class Estimate:
    """An AUC with its interval."""

    value: float
    """Corrected for the bias by the noise."""
    low: float
    high: float
    noise: float
    """Standard deviation by the noise."""


def estimate_auc(positives: Array, negatives: Array, deviation: float, critical: float) -> Estimate:
    """Return the AUC with an interval for noise and chance.

    Parameters
    ----------
    positives, negatives : array, length K
        Noisy numbers of participants in each bin, in ascending order of the score.
    deviation : float
        Standard deviation of the noise in each number.
    critical : float
        Half the width of an interval in standard deviations.

    Returns
    -------
    Estimate
        Between 0 and 1, and NaN if the noise leaves no participants of a class. The limits are 0
        and 1 where every number fits.
    """
    bins = len(positives)
    wins = np.tril(np.ones((bins, bins)), -1) + 0.5 * np.eye(bins)
    many = float(positives.sum())
    others = float(negatives.sum())
    if many <= 0 or others <= 0:
        return Estimate(np.nan, 0.0, 1.0, np.inf)
    # E[T], Σ_i n_i (w_ji - a) and Σ_j p_j (w_ji - a) for each a, K columns.
    above = (wins @ negatives)[None] - _GRID[:, None] * others
    below = (positives @ wins)[None] - _GRID[:, None] * many
    apart = above @ positives
    squares = np.square(wins[None] - _GRID[:, None, None])
    whole = squares.sum(axis=(1, 2))
    noise = _noise(above, below, whole, deviation)
    chance = np.maximum(
        _chance_in_bins(
            positives=positives,
            negatives=negatives,
            above=np.square(above) - deviation**2 * squares.sum(axis=2),
            below=np.square(below) - deviation**2 * squares.sum(axis=1),
        ),
        _chance_by_area(max(many, 1.0), max(others, 1.0)) * (many * others) ** 2,
    )
    fits = np.flatnonzero(np.square(apart) <= critical**2 * (noise + chance))
    raw = float(positives @ wins @ negatives) / (many * others)
    # Second-order bias of a quotient whose numerator and denominator have the same noise.
    first = bins * raw - float((wins @ negatives).sum()) / others
    second = bins * raw - float((positives @ wins).sum()) / many
    value = raw - deviation**2 * (first / many**2 + second / others**2)
    value = min(max(value, 0.0), 1.0)
    here = min(int(value * (len(_GRID) - 1)), len(_GRID) - 1)
    spread = float(np.sqrt(noise[here])) / (many * others)
    low = float(_GRID[fits[0]]) if len(fits) else value
    high = float(_GRID[fits[-1]]) if len(fits) else value
    return Estimate(value, min(low, value), max(high, value), spread)


def _noise(above: Array, below: Array, whole: Array, deviation: float) -> Array:
    """Return the variance of T by the noise: σ² (Σ above² + Σ below²) + σ⁴ Σ (w - a)².

    The squares of noisy numbers exceed those of the true ones by σ² Σ (w - a)² each.
    """
    squares = np.square(above).sum(axis=1) + np.square(below).sum(axis=1)
    own = deviation**2 * whole
    return np.asarray(deviation**2 * np.maximum(squares - own, own))


def _chance_in_bins(*, positives: Array, negatives: Array, above: Array, below: Array) -> Array:
    """Return the variance of T by chance from the bins, without the noise's part of the squares."""
    found = np.maximum(above @ positives, 0.0) + np.maximum(below @ negatives, 0.0)
    return np.asarray(found)


def _chance_by_area(many: float, others: float) -> Array:
    """Return the variance of the AUC by chance for each a: Newcombe's method 5."""
    half = (many + others) / 2.0 - 1.0
    factor = 1.0 + half * (1.0 - _GRID) / (2.0 - _GRID) + half * _GRID / (1.0 + _GRID)
    return np.asarray(_GRID * (1.0 - _GRID) * factor / (many * others))


def estimate_share(
    counted: float,
    rest: float,
    variances: tuple[float, float],
    critical: float,
) -> Estimate:
    """Return the share counted / (counted + rest) of scores, with an interval of noise and chance.

    It contains every share a that fits (1 - a) counted - a rest, whose expectation is zero.

    Parameters
    ----------
    counted, rest : float
        Noisy numbers of participants.
    variances : tuple of float
        Variances of the noise in the two.
    critical : float
        Half the width of an interval in standard deviations.

    Returns
    -------
    Estimate
        Value NaN if the noise leaves no participants.
    """
    many = counted + rest
    if many <= 0:
        return Estimate(np.nan, 0.0, 1.0, np.inf)
    noise = np.square(1.0 - _GRID) * variances[0] + np.square(_GRID) * variances[1]
    chance = _GRID * (1.0 - _GRID) * many
    apart = (1.0 - _GRID) * counted - _GRID * rest
    fits = np.flatnonzero(np.square(apart) <= critical**2 * (noise + chance))
    value = min(max(counted / many, 0.0), 1.0)
    spread = float(np.sqrt(noise[int(value * (len(_GRID) - 1))])) / many
    low = float(_GRID[fits[0]]) if len(fits) else value
    high = float(_GRID[fits[-1]]) if len(fits) else value
    return Estimate(value, min(low, value), max(high, value), spread)
