"""An adversary who tries to refute the guarantee of the reports.

The coalition of the centre and the worst ``colluding`` sites attacks one honest site. It sees every
message and the opened sum of the ê, subtracts the contributions of its members, and uses the
likelihood-ratio test between two neighbouring data sets that differ by a whole sensitivity. Each
entry of a long release is an independent trial, so one call of the real mechanism gives many.

The Gaussian view has covariance C and the neighbours differ by a vector v, so
the most powerful test statistic is vᵀC⁻¹y, and its means differ by μ standard
deviations. C is not taken from the formula under test but estimated from the
messages themselves.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from consortium.base.array import Array
from consortium.privacy.bounds import Bound
from consortium.privacy.lattice import Lattice
from consortium.privacy.loss import Boost, Scheme, SiteNoise
from consortium.privacy.mechanism import Mechanism
from consortium.privacy.noise import GaussianSampler

Keys = Callable[[], bytes]
SETTINGS: tuple[tuple[Scheme, int, int, Boost], ...] = (
    ("cape", 4, 1, "exact"),
    ("cape", 4, 1, 1.0),
    ("cape", 4, 1, 1e4),
    ("cape", 10, 3, "exact"),
    ("cape", 10, 3, 1.0),
    ("cape", 10, 3, 1e4),
    ("cape", 30, 9, "exact"),
    ("cape", 30, 9, 1.0),
    ("cape", 30, 9, 1e4),
    ("local", 4, 1, "exact"),
    ("local", 10, 3, "exact"),
)
"""Scheme, sites, colluding sites and boost of each row of the command's table."""


@dataclass(frozen=True)
class AuditRow:
    """One row of the audit's table.

    ``error`` is the standard error of ``empirical``.
    """

    scheme: str
    sites: int
    colluding: int
    boost: Boost
    promised: float
    empirical: float
    error: float

    @property
    def upheld(self) -> bool:
        """True if the loss seen is at most the promise, within four standard errors."""
        return self.empirical <= self.promised + 4 * self.error

    @property
    def tight(self) -> bool:
        """Whether the measured loss agrees with the guarantee within the trials' precision."""
        return self.empirical >= self.promised - 4 * self.error


def audit(mechanism: Mechanism, trials: int, keys: Keys) -> tuple[float, float]:
    """Measure μ of the first site against its worst coalition, and its standard error.

    Parameters
    ----------
    mechanism : Mechanism
        Its ``entries`` must be ``trials``; sensitivities are per entry here.
    keys : callable
        Returns 32 fresh bytes for a sampler.
    """
    shift = mechanism.sensitivities[0] / mechanism.weights[0]
    views = [_view(mechanism, value, trials, keys) for value in (0.0, shift)]
    covariance = np.atleast_2d(
        np.cov(np.hstack([v - v.mean(axis=1, keepdims=True) for v in views]))
    )
    direction = np.zeros(len(covariance))
    direction[0] = mechanism.sensitivities[0] / mechanism.lattice.grid
    if mechanism.exact:
        direction = direction[:1]
    test = np.linalg.solve(covariance, direction)
    scores = [test @ view for view in views]
    spread = np.sqrt((scores[0].var() + scores[1].var()) / 2)
    empirical = float((scores[1].mean() - scores[0].mean()) / spread)
    return empirical, float(np.sqrt((2.0 + empirical**2 / 4.0) / trials))


def audit_scheme(
    scheme: Scheme, sites: int, colluding: int, boost: Boost, trials: int, keys: Keys
) -> AuditRow:
    """Audit the symmetric setting at Δ/τ = 1: σ² = κτ², γ² = τ²/S (``local``: γ = τ).

    Parameters
    ----------
    scheme : {'cape', 'local'}
    boost : {'exact'} or float
        See `calibrate`; for ``cape`` only.
    """
    mechanism = symmetric(scheme, sites, colluding, boost, trials)
    empirical, error = audit(mechanism, trials, keys)
    promised = float(mechanism.coalition().max())
    return AuditRow(
        scheme=scheme,
        sites=sites,
        colluding=colluding,
        boost=boost,
        promised=promised,
        empirical=empirical,
        error=error,
    )


def symmetric(scheme: Scheme, sites: int, colluding: int, boost: Boost, entries: int) -> Mechanism:
    """Return the dissertation's symmetric setting with τ = Δ = 1 at each site, on a fine grid."""
    step = 2.0**-16
    weight = 1.0 / sites
    local = weight if scheme == "local" else weight / np.sqrt(sites)
    correlated = 0.0 if scheme == "local" or boost == "exact" else weight * math.sqrt(boost)
    return Mechanism(
        scheme=scheme,
        entries=entries,
        bound=Bound(2.0),
        weights=(weight,) * sites,
        lattice=Lattice(step, 64),
        sensitivities=(weight,) * sites,
        correlated=(round(correlated / step),) * sites,
        local=(round(local / step),) * sites,
        colluding=colluding,
        dropouts=0,
        exact=scheme == "cape" and boost == "exact",
    )


def worst_coalition(noise: SiteNoise, site: int, colluding: int) -> list[int]:
    """Return the ``colluding`` other sites whose noise hides ``site`` best."""
    correlated, local = (np.asarray(x) ** 2 for x in (noise.correlated, noise.local))
    whole = correlated + local
    hiding = local if noise.exact or noise.scheme == "local" else correlated * local / whole
    others = [s for s in np.argsort(hiding)[::-1].tolist() if s != site]
    return others[:colluding]


def exact_from_covariance(
    noise: SiteNoise, sensitivity: float, site: int, members: list[int]
) -> float:
    """Return μ of one site with open vectors, from the full covariance of the view.

    A second way to `coalition_losses`: the honest messages and the honest part of Σ ê, inverted
    numerically.
    """
    honest = [s for s in range(len(noise.local)) if s not in members]
    correlated = np.asarray(noise.correlated)[honest] ** 2
    local = np.asarray(noise.local)[honest] ** 2
    covariance = np.zeros((len(honest) + 1, len(honest) + 1))
    covariance[:-1, :-1] = np.diag(correlated + local)
    covariance[-1, :-1] = covariance[:-1, -1] = correlated
    covariance[-1, -1] = correlated.sum()
    direction = np.zeros(len(honest) + 1)
    direction[honest.index(site)] = sensitivity
    return float(np.sqrt(direction @ np.linalg.solve(covariance, direction)))


def _view(mechanism: Mechanism, value: float, trials: int, keys: Keys) -> Array:
    """Return the coalition's view of site 0 (rows) in each trial (columns), in grid steps."""
    members = worst_coalition(mechanism.noise, 0, mechanism.colluding)
    honest = [s for s in range(len(mechanism.weights)) if s not in members]
    shares = [
        mechanism.protect(s, np.full(trials, value if s == 0 else 0.0), GaussianSampler(keys()))
        for s in honest
    ]
    hidden = sum((share.masked.view(np.int64) for share in shares), start=np.int64(0))
    rows = [share.opened.view(np.int64) for share in shares if len(share.opened)]
    if mechanism.scheme == "local":
        rows = rows[:1]
    else:
        rows.append(np.asarray(hidden))
    return np.asarray(rows, dtype=np.float64)
