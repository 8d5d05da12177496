"""A site's half of ADMM: everything from the data and from what its neighbours said.

Site i of S, with weight ω_i = S n_i / n, keeps θ_i and the dual λ_i, and minimizes over the ball of
the planned radius

    F_i(θ) = mean loss + reg/2 ‖θ‖² + (2 λ_iᵀθ + η Σ_j ‖(θ_i + θ_j)/2 - θ‖²) / ω_i

over its neighbours j (Ding et al. 2020, equation 3; ω_i makes every person count once). An entry
that is not `agreed` on, a constant of the site's own, has θ_j = θ_i for all j. The cost has
curvature Λ_i = reg + 2 η d_i / ω_i, d_i the number of neighbours. Both θ and λ follow from the
answers heard, so that a site needs no memory and an answer that was not sent was never given.

Sensitivity of the minimizer. Replacing one of n_i persons changes ∇F_i at a θ of the ball by at
most 2 L slope / n_i: a loss has slope at most 1/(1 + exp(-L R)) for vectors of norm L and ‖θ‖ <= R.
F_i is Λ_i-strongly convex, so its minimizer moves by at most that over Λ_i (add the optimality
conditions of both minimizers). The solver comes within β/Λ_i of it, β = precision·L/n_i, on both
sides: n_i times the influence is 2 L (slope + precision) / Λ_i.

Sensitivity of the gain F_i(θ_i) - min F_i over the ball of radius r around θ_i: it is the maximum
of F_i(θ_i) - F_i(θ), in which each person's part is at most L r / n_i in size. A maximum moves by
no more than what is maximized: 2 L r / n_i, and the solver's error adds at most 4 β r, both times.
Neither depends on the linear part of F_i, on what neighbours said, or on who chose the arguments.
"""

import math
from dataclasses import dataclass

import numpy as np

from consortium.algorithms.admm.kernels.logistic_in_ball import LogisticCost, minimize_in_ball
from consortium.algorithms.admm.plan import (
    LARGEST,
    PRECISION,
    STEEPEST,
    gain_influence,
    model_influence,
    solvable,
)
from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.query_arguments import array_argument, index_argument, number_argument
from consortium.errors import ProtocolError
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_columns, clip_vector

_SHORTEST = 1e-100  # L, below which the solver's squares are rounded to zero
_ROUNDING = 1e-12


@dataclass(frozen=True)
class _Problem:
    """F_i, but for the data: all of it public."""

    length: float
    curvature: float
    pull: Array
    own: Array


def local_model(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Minimizer of F_i, one number for each explaining entry and the constant."""
    problem = _problem(data, query)
    length, curvature = problem.length, problem.curvature
    _refuse_beyond(bound, model_influence(length, curvature, bound.norm))
    if not solvable(length, curvature, bound.norm):
        raise ProtocolError("The query's 'penalty' is too small or too large; discard it.")
    columns = _columns(data, query)
    count = columns.shape[1]
    cost = LogisticCost(
        columns, np.zeros(count), curvature, clip_vector(problem.pull, _limit(problem, bound.norm))
    )
    return minimize_in_ball(cost, bound.norm, problem.own, PRECISION * length / count)


def local_gain(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """How much F_i would fall from θ_i within the trusted distance, one number."""
    problem, trust = _problem(data, query), number_argument(query, "trust")
    length, curvature = problem.length, problem.curvature
    _refuse_beyond(bound, gain_influence(length, trust))
    if not solvable(length, curvature, trust):
        raise ProtocolError("The query's 'trust' is too small or too large; discard it.")
    columns = _columns(data, query)
    count = columns.shape[1]
    start = clip_vector(problem.own, STEEPEST * length / curvature)
    pull = clip_vector(problem.pull - curvature * start, _limit(problem, trust))
    cost = LogisticCost(columns, start @ columns, curvature, pull)
    still = np.zeros_like(start)
    found = minimize_in_ball(cost, trust, still, PRECISION * length / count)
    return np.clip([cost.fall(found)], 0.0, bound.norm)


def _problem(data: SiteData, query: Query) -> _Problem:
    """Read the query and what was heard.

    Raises
    ------
    ProtocolError
        If anything of it is missing, or does not fit the data.
    """
    reach, constant = number_argument(query, "reach"), number_argument(query, "constant")
    penalty = number_argument(query, "penalty")
    regularization = number_argument(query, "regularization")
    answers, site = _heard(query, data.features - 1 + (constant > 0))
    agreed = index_argument(query, "agreed", answers.shape[2] + 1)
    answers = np.where(np.arange(answers.shape[2]) < agreed, answers, answers[:, [site]])
    beside = _beside(query, site, answers.shape[1])
    weights = array_argument(query, "weights", 1)
    held = array_argument(query, "held", 1)[: len(answers)]
    if len(weights) != answers.shape[1] or len(held) != len(answers) or not len(beside):
        raise ProtocolError("The query's arguments don't fit what was received; discard it.")
    length = math.hypot(reach, constant)
    with np.errstate(all="ignore"):  # what overflows is refused, or cut
        stiffness = penalty / weights[site]
        curvature = float(regularization + 2 * stiffness * len(beside))
        pull = _finite(stiffness * _drawn(answers, site, beside, held))
    if not (length > _SHORTEST and curvature > 0 and math.isfinite(length + curvature)):
        raise ProtocolError("The query's numbers make no cost to minimize; discard it.")
    own = answers[-1, site] if len(answers) else np.zeros(answers.shape[2])
    return _Problem(length, curvature, pull, _finite(own))


def _drawn(answers: Array, site: int, beside: Array, held: Array) -> Array:
    """Linear part of -F_i over η/ω_i: Σ_j (θ_i + θ_j) - 2 λ_i/η, 2 λ_i = η Σ_t Σ_j (θ_i - θ_j)."""
    degree = len(beside)
    apart = degree * answers[:, site] - answers[:, beside].sum(axis=1)
    last = answers[-1] if len(answers) else np.zeros(answers.shape[1:])
    drawn: Array = degree * last[site] + last[beside].sum(axis=0) - held @ apart
    return drawn


def _finite(values: Array) -> Array:
    """Numbers whose squares don't overflow."""
    finite: Array = np.clip(np.nan_to_num(values), -LARGEST, LARGEST)
    return finite


def _heard(query: Query, entries: int) -> tuple[Array, int]:
    if query.neighbour_answers is None:
        raise ProtocolError("The query came without the neighbours' answers; discard it.")
    answers, site = query.neighbour_answers.answers, query.neighbour_answers.site
    if answers.ndim != 3 or answers.shape[2] != entries or not 0 <= site < answers.shape[1]:
        raise ProtocolError(
            f"What was received has shape {answers.shape}, which does not fit {entries} numbers a "
            "site; discard it."
        )
    return answers, site


def _beside(query: Query, site: int, sites: int) -> Array:
    """The site's neighbours, as often as the edges name them."""
    edges = array_argument(query, "edges", 2)
    if edges.shape[1] != 2 or not np.isin(edges, np.arange(sites)).all():
        raise ProtocolError("The query's 'edges' are no pairs of sites; discard it.")
    ends = edges[(edges == site).any(axis=1)].astype(np.int64)
    found: Array = ends.sum(axis=1) - site
    return found


def _columns(data: SiteData, query: Query) -> Array:
    """Each person's clipped vector and constant, times the label: D x N."""
    target = index_argument(query, "target", data.features)
    reach, constant = number_argument(query, "reach"), number_argument(query, "constant")
    table = data.table()
    signs = np.where(table[target] > 0, 1.0, -1.0)
    columns = np.empty((len(table) - 1 + (constant > 0), len(signs)))
    columns[-1] = constant * signs
    columns[: len(table) - 1] = clip_columns(np.delete(table, target, axis=0), reach) * signs
    return columns


def _refuse_beyond(bound: Bound, influence: float) -> None:
    if not influence <= bound.spread * (1 + _ROUNDING):
        raise ProtocolError(
            "The query's arguments let a participant move the answer further than planned; "
            "discard it."
        )


def _limit(problem: _Problem, radius: float) -> float:
    """Ten times the length of p from which on the minimizer lies on the ball's border."""
    return 10 * (problem.curvature * radius + problem.length)
