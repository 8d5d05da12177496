"""The exact privacy loss of the three noise schemes, for any sites and any coalition.

Everything here is in the aggregator's units: site s contributes a_s = w_s·f_s,
so that the release is the plain sum of the contributions. A coalition is the
centre together with ``colluding`` sites; it sees every message, every sum, and
its members' own noise. All losses are μ of Gaussian differential privacy.

For ``cape`` site s sends a_s + ê_s + g_s and the sum of the ê is then opened.
Given that view the log-likelihood ratio is Gaussian and

    μ_s² = Δ_s² [ 1/d_s + (σ_s²/d_s)² / Σ_{t honest} q_t ],
    d_s = σ_s² + γ_s²,   q_t = σ_t² γ_t² / d_t,

with σ_s and γ_s the standard deviations of ê_s and g_s. This replaces Theorem 3.1
of the dissertation (eq. 3.3 and 3.4), which does not condition on the
colluders' ê and states a smaller loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from consortium.errors import PrivacyError

Scheme = Literal["cape", "secure-sum", "local", "none"]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SiteNoise:
    """Standard deviations of every site's noise, in the aggregator's units."""

    scheme: Scheme
    correlated: tuple[float, ...]
    """σ_s of ê_s, which cancels in the release; zero unless the scheme is ``cape``."""
    local: tuple[float, ...]
    """γ_s of g_s, which stays in the release."""

    def aggregate(self, present: Sequence[int] | None = None) -> float:
        """Standard deviation of the noise in the released sum over the sites ``present``."""
        local = np.asarray(self.local)
        chosen = local if present is None else local[list(present)]
        return float(np.sqrt(np.sum(chosen**2)))


def coalition_losses(
    noise: SiteNoise,
    sensitivities: Sequence[float],
    colluding: int,
    *,
    dropouts: int = 0,
    present: Sequence[int] | None = None,
) -> Floats:
    """μ_s of every present site against the worst coalition, in the order of ``present``.

    Parameters
    ----------
    sensitivities : sequence of float
        Δ_s of the contribution a_s (weight times the statistic's own sensitivity).
    colluding : int
        S_C; more than the other sites counts as all of them.
    dropouts : int
        Further sites that may be missing; the worst ones are taken.
    present : sequence of int, optional
        Sites whose message arrived; all by default.
    """
    sites = list(range(len(noise.local))) if present is None else list(present)
    delta = np.asarray(sensitivities, dtype=float)[sites]
    local = np.asarray(noise.local, dtype=float)[sites] ** 2
    correlated = np.asarray(noise.correlated, dtype=float)[sites] ** 2
    if noise.scheme == "none":
        return np.where(delta > 0, np.inf, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        if noise.scheme == "local":
            return np.where(delta > 0, delta / np.sqrt(local), 0.0)
        if noise.scheme == "secure-sum":
            honest = _least_honest_sums(local, colluding + dropouts)
            return np.where(delta > 0, delta / np.sqrt(honest), 0.0)
        whole = correlated + local
        part = np.where(whole > 0, correlated * local / whole, 0.0)
        honest = _least_honest_sums(part, colluding + dropouts)
        squared = 1.0 / whole + np.where(correlated > 0, (correlated / whole) ** 2 / honest, 0.0)
        return np.where(delta > 0, delta * np.sqrt(squared), 0.0)


def outsider_losses(
    noise: SiteNoise,
    sensitivities: Sequence[float],
    *,
    dropouts: int = 0,
    present: Sequence[int] | None = None,
) -> Floats:
    """μ_s of every present site against somebody who sees only what is released.

    The parameters are those of `coalition_losses`: a site that is missing takes its share of the
    noise away from the released sum.
    """
    sites = list(range(len(noise.local))) if present is None else list(present)
    delta = np.asarray(sensitivities, dtype=float)[sites]
    local = np.asarray(noise.local, dtype=float)[sites] ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(delta > 0, delta / np.sqrt(_least_honest_sums(local, dropouts)), 0.0)


def printed_loss(sites: int, colluding: int) -> float:
    """μ of eq. 3.4 at Δ/τ = 1: what the dissertation prints, kept to be refuted by the audit.

    The symmetric setting with σ² = τ² and γ² = τ²/S.
    """
    s, c = float(sites), float(colluding)
    honest = s - c
    tail = 9.0 * c**2 / honest / (s * (1 + s) - 3 * c**2)
    return float(np.sqrt(s / (1 + s) * ((honest + 2) / honest + tail)))


def _least_honest_sums(values: Floats, missing: int) -> Floats:
    """For each site the sum over all sites but the ``missing`` largest others."""
    count = len(values)
    if missing < 0:
        raise PrivacyError(f"{missing} colluding sites can't be; give 0 or more.")
    kept = count - min(missing, count - 1)
    ascending = np.sort(values)
    least: Floats = ascending[: kept - 1].sum() + np.maximum(values, ascending[kept - 1])
    return least
