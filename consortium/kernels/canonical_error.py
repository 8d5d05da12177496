"""How sure a canonical correlation is: what chance alone gives, and an interval.

Two sources of error are counted: few persons, and the noise of the private release. Both are
known from public numbers, so that all of this is after the release.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consortium.kernels.canonical import Spectrum, canonical, pairs_of

Array = NDArray[Any]

_WORK = 4_000_000
"""Entries that a noise floor may draw in all; large matrices vary little, and few draws do."""
_NEAR_ONE = 0.9999


def noise_floor(
    spectra: Sequence[Spectrum],
    deviation: float,
    persons: int,
    generator: np.random.Generator,
    quantile: float = 0.95,
) -> float:
    """Largest canonical correlation that views without any link would show.

    Under no link, entry (i, j) of the whitened cross-covariance is Gaussian with variance
    1/n + σ²/(2 λ_i λ_j); the largest of many such matrices are drawn.

    Parameters
    ----------
    spectra : sequence of Spectrum
    deviation : float
        σ of the release.
    persons : int
        n.
    generator : numpy.random.Generator
    quantile : float
        Of the draws.
    """
    sizes = [len(each.variances) for each in spectra]
    if min(sizes) == 0:
        return 1.0
    draws = int(np.clip(_WORK // sum(sizes) ** 2, 20, 400))
    largest = [_chance(spectra, deviation, persons, generator) for _ in range(draws)]
    return float(np.quantile(largest, quantile))


def _chance(
    spectra: Sequence[Spectrum], deviation: float, persons: int, generator: np.random.Generator
) -> float:
    table: list[list[Array]] = [[np.zeros((len(s.variances), 0))] * len(spectra) for s in spectra]
    for u, v in pairs_of(len(spectra)):
        products = np.outer(spectra[u].variances, spectra[v].variances)
        spread = np.sqrt(1.0 / persons + deviation**2 / 2.0 / products)
        table[u][v] = spread * generator.standard_normal(spread.shape)
    return float(canonical(table, 1).correlations[0])


def correlation_deviation(
    correlation: Array, first: Array, second: Array, deviation: float, persons: int
) -> Array:
    """Standard deviation of canonical correlations, to first order.

    With weights a and b, ρ changes by aᵀE₁₂b − ρ(aᵀE₁₁a + bᵀE₂₂b)/2 under noise E, whose variance
    is σ²/2 · (‖a‖²‖b‖² + ρ²(‖a‖⁴ + ‖b‖⁴)/2); sampling n Gaussian persons adds (1 − ρ²)²/n.

    Parameters
    ----------
    correlation : array, length K
    first, second : array, length K
        ‖a‖² and ‖b‖², in the coordinates in which the noise was added.
    deviation : float
        σ.
    persons : int
        n.
    """
    squared = correlation**2
    private = 0.5 * deviation**2 * (first * second + squared * (first**2 + second**2) / 2.0)
    return np.asarray(np.sqrt(private + (1.0 - squared) ** 2 / persons))


def correlation_interval(
    correlation: Array, deviation: Array, level: float = 0.95
) -> tuple[Array, Array]:
    """Ends of an interval, symmetric on Fisher's scale atanh ρ.

    Parameters
    ----------
    correlation, deviation : array, length K
        Estimates and their standard deviations.
    level : float
        Between 0 and 1.
    """
    inside = np.clip(correlation, -_NEAR_ONE, _NEAR_ONE)
    width = NormalDist().inv_cdf(0.5 + level / 2) * deviation / (1.0 - inside**2)
    centre = np.arctanh(inside)
    return np.tanh(centre - width), np.tanh(centre + width)
