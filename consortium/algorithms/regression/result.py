"""How much larger a coefficient's sampling variance is than with equal residual variances.

The sampling error of a coefficient is the mean over participants of aᵀz r, r = qᵀz the residual.
Its variance is E[(aᵀz)² r²]/n for any residuals (White 1980), and E[(aᵀz)²] E[r²]/n only if all
residuals have equal variances. a and q follow from the released moment. So one more mean over
participants, of one number for each coefficient, measures the ratio of the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import Array, Release
from consortium.kernels.noisy_least_squares import Fit
from consortium.kernels.noisy_moment import NoisyMoment, is_positive

if TYPE_CHECKING:
    from consortium.algorithms.regression.centre import Regression

_USUAL = 2.0
"""Usual deviation of a ratio from 1, towards which noisier ratios are shrunk."""
_LEAST = 0.1


def worth_asking(fit: Fit, confidence: float) -> bool:
    """Return whether a regression has intervals that each contain sampling error."""
    if fit.intervals(confidence) is None or not is_positive(fit.moment.matrix[:-1, :-1]):
        return False
    return bool((fit.chance() > 0).all())


def influence_arguments(plan: Regression, fit: Fit, sites: tuple[int, ...]) -> dict[str, Array]:
    """Return factors of participants' z and residual with which a ratio of 1 is a mean of 1.

    A site's own constant concerns only its participants: its ratio is weighted by their share.
    """
    moment = fit.moment
    kept = plan.asked.kept(sites)
    lift = moment.coefficients / plan.asked.weights[kept[:-1], None]
    scale = np.sqrt(_parts(moment) / fit.chance())
    size = len(plan.asked.weights)
    influence = np.zeros((size - 1, size - 1))
    residual = np.zeros(size)
    influence[np.ix_(kept[:-1], kept[:-1])] = scale[:, None] * (fit.directions @ lift.T)
    residual[kept] = np.append(lift @ fit.solution[:-1], fit.solution[-1])
    return {"influence": influence, "residual": residual}


def with_measured_variance(
    plan: Regression, fit: Fit, sites: tuple[int, ...], release: Release
) -> Fit:
    """Return the fit with the measured sampling error, shrunk to that of equal variances."""
    parts = _parts(fit.moment)
    found = release.values[plan.asked.kept(sites)[:-1]] / parts
    trust = 1.0 / (1.0 + np.square(release.deviation / parts / _USUAL))
    return fit.widened(np.maximum(1.0 + trust * (found - 1.0), _LEAST))


def _parts(moment: NoisyMoment) -> Array:
    """Return 1 for every entry, and each constant's share of the participants."""
    return np.append(np.ones(moment.entries), moment.parts)
