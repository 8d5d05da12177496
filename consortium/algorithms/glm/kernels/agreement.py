"""Score by which a hospital's effects differ, and how much all differ, from one noisy number.

A hospital has weights w (its contrast, less the released share of the group), and residuals e of V
outcomes that the effects common to all hospitals leave, each residual clipped to the norm U. It
computes

    N = ‖Σ w_i e_i‖                   score of its own effects' difference from the common ones
    Q = min_c Σ w_i² ‖e_i - c‖²       expected N² if they do not differ
    f = N - J (√max(Q, F²) - F)       with public J and F

and the sum of f over all hospitals is released. J is the mean of √(χ²/k) for k degrees of freedom,
as E[N] = J √E[N²]. Residuals are multiplied by R^-¼, with R the stated correlation of the outcomes,
which makes their directions similarly variable. Q is about the hospital's own mean, so an offset of
its scanner does not enter. It enters N because the released share is not exact: the variance of
this error, and that of offsets, are known to the centre. Whatever F, J and the weights are,
replacing a participant moves f by at most 2 ω U + 2 ω² U²/F, and adding or removing one by ω U
less, where ω is the largest |w|: see docs/explanation/glm-agreement.md.

If the effects of hospitals have a standard deviation τ, N² grows by V τ² times the squared
information of the hospital. `read_hospital_agreement` compares the released sum with
its expectation for every τ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, ndtr, ndtri

from consortium.base.array import Array

_MOST_BETWEEN = 20.0
"""Largest τ that is reported, in standard deviations within groups and sites."""
_ALLOWANCE = 0.01
"""Part of the expected score that is not known better, because J is for equal variances in all
directions and clipping acts on hospitals differently. A choice."""
_OFFSETS_KNOWN = 0.3
"""Relative error of the variance of offsets. A choice: the prior width of glm's site variance is
0.15 of 0.25, and offsets of outcomes are correlated."""
_FALSE_ALARMS = 0.05
_POWER = 0.8


def mean_root(freedom: float) -> float:
    """Return J, the mean of √(χ²/k) for k degrees of freedom, for the agreement of hospitals.

    Examples
    --------
    >>> round(mean_root(1), 4), round(mean_root(1e4), 4)
    (0.7979, 1.0)
    """
    half = freedom / 2
    return float(np.exp(gammaln(half + 0.5) - gammaln(half)) / math.sqrt(half))


def agreement_changes(most: float, floor: float) -> tuple[float, float]:
    """Return the largest change of f if a participant is added or removed, and if replaced.

    Parameters
    ----------
    most : float
        ω U, largest norm of a participant's w e.
    floor : float
        F.
    """
    expected = 2 * most**2 / floor
    return most + expected, 2 * most + expected


def agreement_score(
    sums: Array, squares: float, weighted: Array, weights: float, root: float, floor: float
) -> float:
    """Return the score f by which one hospital's own effects differ from those of all.

    Parameters
    ----------
    sums : array, length V
        Σ w e.
    squares : float
        Σ w² ‖e‖².
    weighted : array, length V
        Σ w² e.
    weights : float
        Σ w².
    root, floor : float
        J and F.
    """
    centre = float(weighted @ weighted) / weights if weights > 0 else 0.0
    expected = max(squares - centre, floor**2)
    return float(np.linalg.norm(sums)) - root * (math.sqrt(expected) - floor)


@dataclass(frozen=True, eq=False)
class AgreementModel:
    """Expected value of the released sum, from public and released numbers."""

    information: Array
    """Expected size of a hospital's score if its effect differs by 1 in one outcome, length S."""
    variances: Array
    """Expected Q of each hospital, length S."""
    persons: Array
    """Number of participants of each hospital, length S."""
    errors: float
    """Expected squared norm of the error of the common effects, after R^-¼."""
    leaks: Array
    """Further parts of E[N²], which the noise of released coefficients adds, length S."""
    offsets: Array
    """Part of E[N²] by the hospitals' offsets and errors of released shares, length S."""
    swollen: Array
    """Factor of Q by errors of released shares, length S."""
    outcomes: int
    root: float
    floor: float
    """V, J and F."""

    def moments(self, between: float) -> tuple[float, float]:
        """Return mean and variance of the sum of f, without privacy noise, if effects vary by τ."""
        own = self.information
        total = float(own.sum())
        if not total:
            return 0.0, 0.0
        varied = 1 - 2 * own / total + float(own @ own) / total**2
        squares = self.variances * np.maximum(1 - 2 * own / total, 0.0)
        squares += own**2 * self.errors + self.leaks + self.offsets
        squares += self.outcomes * np.square(own * between) * np.maximum(varied, 0.0)
        seen = self.variances * self.swollen * (1 - 1 / np.maximum(self.persons, 2.0))
        expected = np.sqrt(np.maximum(seen, self.floor**2)) - self.floor
        mean = self.root * float((np.sqrt(squares) - expected).sum())
        roots = np.sqrt(np.maximum(squares, 1e-300))
        unknown = _OFFSETS_KNOWN * self.root * float((self.offsets / (2 * roots)).sum())
        chance = float(np.square(self.offsets / roots).sum()) / 2  # the error of a share is one χ²
        return mean, (1 - self.root**2) * float(squares.sum()) + chance + unknown**2

    def share(self, between: float) -> float:
        """Return I²: τ² over the sum of τ² and the typical variance of a hospital's own effect."""
        return between**2 / (between**2 + self._typical) if between else 0.0

    @property
    def _typical(self) -> float:
        """Typical sampling variance of a hospital's own effect, as in a meta-analysis."""
        known = (self.information > 0) & (self.variances > 0)
        weights = np.square(self.information[known]) * self.outcomes / self.variances[known]
        spread = float(weights.sum() ** 2 - np.square(weights).sum())
        if spread <= 0:
            return math.inf
        return float((known.sum() - 1) * weights.sum() / spread)


@dataclass(frozen=True)
class HospitalAgreement:
    """Estimate of how much hospitals' effects of `glm` differ."""

    between: float
    """τ, standard deviation of an outcome's effect between hospitals."""
    low: float
    high: float
    """Interval of τ."""
    share: float
    """I²: τ² relative to the variance of hospitals' own effects."""
    share_low: float
    share_high: float
    p: float
    """One-sided p of no difference."""
    detectable: float
    """τ that is found with a power of 0.8."""

    @property
    def differ(self) -> bool:
        """Whether hospitals are found to differ, with at most 0.05 of false alarms."""
        return self.p <= _FALSE_ALARMS

    def scaled(self, unit: float) -> HospitalAgreement:
        """Return the same with effects in another unit."""
        names = "between", "low", "high", "detectable"
        return replace(self, **{name: unit * getattr(self, name) for name in names})


def read_hospital_agreement(
    released: float, noise: float, model: AgreementModel, confidence: float
) -> HospitalAgreement:
    """Return τ and I² with intervals, from the released sum of f.

    An interval has every τ at which the released sum is within the middle ``confidence`` of its
    distribution. Its lower end allows for the part of the score that is not known better.

    Parameters
    ----------
    noise : float
        Standard deviation of the privacy noise in the sum.
    """
    reach = float(ndtri((1 + confidence) / 2))
    doubt = _doubt(model)

    def distance(between: float, deviations: float, allowed: float) -> float:
        mean, variance = model.moments(between)
        return released - mean - allowed - deviations * math.hypot(noise, math.sqrt(variance))

    low = _root_of(lambda t: distance(t, reach, doubt))
    middle = _root_of(lambda t: distance(t, 0.0, 0.0))
    high = _root_of(lambda t: distance(t, -reach, -doubt))
    mean, variance = model.moments(0.0)
    spread = math.hypot(noise, math.sqrt(variance))
    p = float(ndtr(-(released - mean - doubt) / spread)) if spread > 0 else float(released <= mean)
    return HospitalAgreement(
        between=middle,
        low=low,
        high=high,
        share=model.share(middle),
        share_low=model.share(low),
        share_high=model.share(high),
        p=p,
        detectable=detectable_between(noise, model),
    )


def detectable_between(noise: float, model: AgreementModel) -> float:
    """Return τ that is found with a power of 0.8; infinite if it is above the largest one.

    Parameters
    ----------
    noise : float
        Standard deviation of the privacy noise in the sum.
    """
    mean, variance = model.moments(0.0)
    limit = mean + _doubt(model)
    limit += float(ndtri(1 - _FALSE_ALARMS)) * math.hypot(noise, math.sqrt(variance))

    def missing(between: float) -> float:
        own, varied = model.moments(between)
        return limit + float(ndtri(_POWER)) * math.hypot(noise, math.sqrt(varied)) - own

    if missing(_MOST_BETWEEN) > 0:
        return math.inf
    return _root_of(missing)


def _doubt(model: AgreementModel) -> float:
    seen = np.sqrt(np.maximum(model.variances, 0.0))
    return _ALLOWANCE * model.root * float(seen.sum())


def _root_of(falling: Callable[[float], float]) -> float:
    """Return where a function of τ that falls is 0, within 0 and the largest τ."""
    if falling(0.0) <= 0:
        return 0.0
    if falling(_MOST_BETWEEN) >= 0:
        return _MOST_BETWEEN
    return float(brentq(falling, 0.0, _MOST_BETWEEN, xtol=1e-6))
