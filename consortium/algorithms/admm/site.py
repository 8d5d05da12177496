"""A site's half of ADMM, from its data and its neighbours' answers.

Site i of S has n_i nominal participants, n the nominal participants of all sites. Its weight is
ω_i = S n_i / n. It keeps θ_i and the dual λ_i, and minimizes over the ball of the planned radius

    F_i(θ) = Σ loss / n_i + reg/2 ‖θ‖² + (2 λ_iᵀθ + η Σ_j ‖(θ_i + θ_j)/2 - θ‖²) / ω_i

over its neighbours j (Ding et al. 2020, equation 3). The sum of losses is over the site's true
participants. ω_i n_i is the same at all sites up to a constant. So every participant counts once,
for any number of them. A site with no participants minimizes the rest of F_i. An entry that is not
`agreed`, which is a constant of the site's own, has θ_j = θ_i for all j. The cost has curvature
Λ_i = reg + 2 η d_i / ω_i, d_i the number of neighbours. Both θ and λ follow from the received
answers. So a site needs no memory, and an answer that was not sent has no effect.

Sensitivity of the minimizer. Replacing a participant changes ∇F_i at a θ of the ball by at most
2 L slope / n_i: a loss has slope at most 1/(1 + exp(-L R)) for vectors of norm L and ‖θ‖ <= R.
Adding or removing one changes it by half of that. F_i is Λ_i-strongly convex with and without
losses, so its minimizer moves by at most the change over Λ_i (add the optimality conditions of both
minimizers). The solver comes within β/Λ_i of it, β = precision·L/n_i, on both sides: n_i times the
influence is 2 L (slope + precision) / Λ_i for a replacement, and L (slope + 2 precision) / Λ_i
otherwise, which is less because slope is at least ½. There is no count entry.

Sensitivity of the gain F_i(θ_i) - min F_i over the ball of radius r around θ_i: it is the maximum
of F_i(θ_i) - F_i(θ), in which each participant's part is at most L r / n_i in size. A maximum moves
by no more than the maximized function: 2 L r / n_i if one is replaced, half of that if one is added
or removed. The solver's error adds at most 4 β r in both cases. The gain is then cut to an
interval. Neither depends on the linear part of F_i, or on answers of neighbours and the centre.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.admm.kernels.logistic_in_ball import LogisticCost, minimize_in_ball
from consortium.algorithms.base import Array, Query, SiteData
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_columns, clip_vector

if TYPE_CHECKING:
    from consortium.algorithms.admm.centre import Admm

PRECISION = 1e-3
"""β over L/n: precision of the solver, which is charged."""
STEEPEST = 1e5  # L²/Λ and ΛR/L, beyond which double precision would not reach β
LARGEST = 1e100
"""Of numbers whose squares and quotients don't overflow."""


def local_model(plan: Admm, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return a site's model of `admm`: the minimizer of F_i, by explanatory entry and constant."""
    curvature, pull, own = _heard(plan, query)
    columns = _columns(plan, data)
    pull = clip_vector(pull, _limit(plan, curvature, bound.norm))
    divisor = _divisor(plan, query)
    cost = LogisticCost(columns, np.zeros(columns.shape[1]), curvature, pull, divisor)
    return minimize_in_ball(cost, bound.norm, own, PRECISION * plan.length / divisor)


def local_gain(plan: Admm, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the possible decrease of F_i from θ_i within the trusted distance, one number."""
    curvature, pull, own = _heard(plan, query)
    columns = _columns(plan, data)
    start = clip_vector(own, STEEPEST * plan.length / curvature)
    divisor = _divisor(plan, query)
    pull = clip_vector(pull - curvature * start, _limit(plan, curvature, plan.trust))
    cost = LogisticCost(columns, start @ columns, curvature, pull, divisor)
    still = np.zeros_like(start)
    found = minimize_in_ball(cost, plan.trust, still, PRECISION * plan.length / divisor)
    return np.clip([cost.fall(found)], 0.0, bound.norm)


def _heard(plan: Admm, query: Query) -> tuple[float, Array, Array]:
    """Return the parts of F_i without data: Λ_i, its linear part, and θ_i."""
    heard = query.neighbour_answers
    assert heard is not None  # noqa: S101 - the stage is among neighbours
    site = heard.site
    agreed = np.arange(plan.entries) < plan.agreed
    answers = np.where(agreed, heard.answers, heard.answers[:, [site]])
    adjacent = list(plan.neighbours[site])
    with np.errstate(all="ignore"):  # what overflows is cut
        drawn = _drawn(answers, site, adjacent, query.arguments["held"][: len(answers)])
        pull = _finite(plan.stiffness[site] * drawn)
    own = answers[-1, site] if len(answers) else np.zeros(plan.entries)
    return float(plan.curvatures[site]), pull, _finite(own)


def _divisor(plan: Admm, query: Query) -> int:
    """Return the site's nominal participants."""
    heard = query.neighbour_answers
    assert heard is not None  # noqa: S101 - the stage is among neighbours
    return plan.divisors[heard.site]


def _drawn(answers: Array, site: int, adjacent: list[int], held: Array) -> Array:
    """Return the linear part of -F_i over η/ω_i: Σ_j (θ_i + θ_j) - 2 λ_i/η.

    2 λ_i = η Σ_t Σ_j (θ_i - θ_j).
    """
    degree = len(adjacent)
    apart = degree * answers[:, site] - answers[:, adjacent].sum(axis=1)
    last = answers[-1] if len(answers) else np.zeros(answers.shape[1:])
    drawn: Array = degree * last[site] + last[adjacent].sum(axis=0) - held @ apart
    return drawn


def _finite(values: Array) -> Array:
    """Return numbers whose squares don't overflow."""
    finite: Array = np.clip(np.nan_to_num(values), -LARGEST, LARGEST)
    return finite


def _columns(plan: Admm, data: SiteData) -> Array:
    """Return each participant's clipped vector and constant, times the label: D x N."""
    if not data.units:  # a minimizer of only the neighbours' part
        return np.zeros((plan.entries, 0))
    table = data.table()
    target = plan.target
    signs = np.where(table[target] > 0, 1.0, -1.0)
    columns = np.empty((plan.entries, len(signs)))
    columns[-1] = plan.constant * signs
    vectors = clip_columns(np.delete(table, target, axis=0), plan.parameters.bound)
    columns[: len(vectors)] = vectors * signs
    return columns


def _limit(plan: Admm, curvature: float, radius: float) -> float:
    """Return ten times the length of p above which the minimizer is on the ball's border."""
    return 10 * (curvature * radius + plan.length)
