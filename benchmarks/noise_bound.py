"""The least noise of a private, unbiased mean: the bound of docs/explanation/noise-bound.md.

Analyses do not use it; `benchmarks.network_bound` compares the mechanisms with it.
"""

import math
from dataclasses import dataclass

import numpy as np

from consortium.base.array import Array


@dataclass(frozen=True)
class Spectrum:
    """Terms of participants' covariance Σ in the bound."""

    trace: float
    """tr Σ."""
    root: float
    """tr Σ^½."""


def chi_square(mu: float) -> float:
    """Return an upper limit of χ² between the two sides of a μ-GDP mechanism: e^{μ²} − 1."""
    return math.expm1(mu**2)


def least_error(spectrum: Spectrum, persons: int, mu: float) -> float:
    """Return the least E‖Y − θ‖² of an unbiased Y with sampling: (tr Σ^½)²/(n²(e^{μ²} − 1))."""
    return spectrum.root**2 / (persons**2 * chi_square(mu))


def least_noise(spectrum: Spectrum, persons: int, mu: float) -> float:
    """Return the least E‖Y − x̄‖² if Y is unbiased for the participants' mean x̄, 0 or more."""
    return max(least_error(spectrum, persons, mu) - spectrum.trace / persons**2, 0.0)


def spectrum_of(values: Array) -> Spectrum:
    """Return the terms of a covariance with these eigenvalues."""
    inside = np.maximum(values, 0.0)
    return Spectrum(float(inside.sum()), float(np.sqrt(inside).sum()))


def spectrum_of_gram(gram: Array) -> Spectrum:
    """Return the terms of the participants' sample covariance, by their inner products, n x n.

    With fewer participants than numbers tr Σ^½ is too small, and so is the bound.
    """
    count = len(gram)
    means = gram.mean(axis=0)
    centred = gram - means - means[:, None] + gram.mean()
    return spectrum_of(np.linalg.eigvalsh(centred) / (count - 1))


def even(spectrum: Spectrum, entries: int) -> Spectrum:
    """Return the terms of the hardest covariance of the same trace, equal in all directions."""
    return Spectrum(spectrum.trace, math.sqrt(entries * spectrum.trace))
