"""PP-ADMM as published and DVP, and their true privacy loss.

Both perturb each local cost by a random linear part. For losses of a linear score Redberg, Koskela
and Wang (2023) bound the Rényi divergences of such a perturbation. Here the neighbour has another
participant, not one less. The privacy loss is at most 2 log of the determinants' ratio for one
participant, plus s²/2, plus the sum of two normal numbers' sizes, of deviation s/2 each; by Cauchy
and Schwarz its moments are at most those of one of deviation s, s = 2/(n σ).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from consortium.algorithms.admm.kernels.logistic_in_ball import LogisticCost, minimize_in_ball
from consortium.algorithms.base import Array
from consortium.privacy.gdp import epsilon_of

ROUNDS, DELTA, SMOOTH, BETA, SPLIT = 30, 1e-4, 0.25, 10**-3.5, 0.001
_ORDERS = 1 + np.geomspace(1e-2, 1e4, 400)
_BALL = 1e3  # the papers have none
GROWTH = 1.02
"""Growth of M-ADMM's and R-ADMM's steps, which PP-ADMM's paper does not state."""


@dataclass(frozen=True)
class Perturbed:
    """A method's numbers: curvatures, and noise in the cost and in the model."""

    regularization: float
    step: float
    cost_noise: float
    model_noise: float
    gamma: bool = False
    tolerance: float = BETA
    """β, norm of the gradient at which each minimization stops."""
    growth: float = 1.0
    """Factor of the step from each round to the next."""
    reuse: bool = False
    """Whether every other round takes the previous round's gradient in place of new data."""


def pp_admm(
    nominal: float,
    count: int,
    degree: int,
    step: float,
    *,
    split: float = SPLIT,
    beta: float = BETA,
) -> Perturbed:
    """Run algorithm 1 for a total of ``nominal``, with the paper's settings if not named."""
    rho = nominal**2 / (4 * math.log(1 / DELTA)) / ROUNDS
    own, rest = rho * (1 - split), rho * split
    first = own + 2 * math.sqrt(own * math.log(1 / DELTA))
    third = 0.99 * first
    regularization = 2.8 * SMOOTH / ((first - third) * count)  # the paper's, over the sites
    curvature = regularization + 2 * step * degree
    return Perturbed(
        regularization,
        step,
        2 * math.sqrt(2 * math.log(1.25 / DELTA)) / (count * third),
        beta / (math.sqrt(2 * rest) * curvature),
        tolerance=beta,
    )


def pp_admm_at(
    target: float,
    count: int,
    degree: int,
    step: float,
    *,
    split: float = SPLIT,
    beta: float = BETA,
    pure: float = 0.0,
) -> Perturbed:
    """Run algorithm 1 with the nominal ε for which the provable one is ``target``.

    A mechanism that is ``pure``-DP is included.
    """

    def method(nominal: float) -> Perturbed:
        return pp_admm(nominal, count, degree, step, split=split, beta=beta)

    def excess(nominal: float) -> float:
        return true_epsilon(method(nominal), count, degree, pure) - target

    return method(brentq(excess, 1e-3, 2 * target))


def true_epsilon(method: Perturbed, count: int, degree: int, pure: float = 0.0) -> float:
    """Return the ε that can be proved for all rounds and a mechanism that is ``pure``-DP."""
    curvature = method.regularization + 2 * method.step * degree
    s = 2 / (count * method.cost_noise)
    determinant = -2 * math.log1p(-SMOOTH / count / curvature)
    twice = log_ndtr((_ORDERS - 1) * s) + math.log(2)
    each = determinant + _ORDERS * s**2 / 2 + twice / (_ORDERS - 1)
    output = (
        2 * method.tolerance / curvature / method.model_noise
    ) ** 2 / 2  # both solutions are off
    beside = np.minimum(_ORDERS * pure**2 / 2, pure)
    return _converted(ROUNDS * (each + _ORDERS * output) + beside)


def least_epsilon(method: Perturbed, count: int) -> float:
    """Return a lower limit of ε for any accounting.

    Slopes of misclassified participants are constant.
    """
    return epsilon_of(2 / (count * method.cost_noise) * math.sqrt(ROUNDS), DELTA)


def dvp(target: float, count: int, degree: int, step: float) -> Perturbed:
    """Run Zhang and Zhu (2016): noise of Gamma norm, each round ε_t-DP, composed as zCDP."""
    return _gamma(target, ROUNDS, count, degree, step)


def m_admm(target: float, count: int, degree: int, step: float) -> Perturbed:
    """Run Zhang, Khalili and Liu (2018a), as PP-ADMM's paper describes it in a sentence.

    Noise of the penalty, too, is a random linear part of the cost, for which the loss is that of
    `dvp`. What differs is a step that grows.
    """
    return replace(dvp(target, count, degree, step), growth=GROWTH)


def r_admm(target: float, count: int, degree: int, step: float) -> Perturbed:
    """Run Zhang, Khalili and Liu (2018b): every other round has the last one's gradient.

    So half of the rounds have a loss.
    """
    return replace(_gamma(target, ROUNDS // 2, count, degree, step), growth=GROWTH, reuse=True)


def _gamma(target: float, rounds: int, count: int, degree: int, step: float) -> Perturbed:
    each = brentq(lambda e: _converted(rounds * _ORDERS * e**2 / 2) - target, 1e-6, target)
    spent = 2 * math.log1p(SMOOTH / count / (2 * step * degree))
    return Perturbed(0.0, step, 2 / (count * (each - spent)), 0.0, gamma=True)


def _converted(divergences: Array) -> float:
    """Convert Rényi divergences to (ε, δ): Canonne, Kamath and Steinke (2020), Proposition 12."""
    shift = np.log1p(-1 / _ORDERS) - (math.log(DELTA) + np.log(_ORDERS)) / (_ORDERS - 1)
    return float(max(0.0, (divergences + shift).min()))


def run(
    method: Perturbed,
    columns: list[Array],
    beside: Array,
    generator: np.random.Generator,
    *,
    selected: Callable[[Array, Array], Array] | None = None,
) -> Array:
    """Return all sites' models after each round: rounds x S x D.

    ``columns`` are D x N of participants times labels, and ``beside`` is the graph's S x S matrix.
    ``selected`` returns the models that the sites have sent, given the last ones and the new ones.
    """
    sites, features, degrees = len(columns), len(columns[0]), beside.sum(axis=1)
    models, duals, slopes = np.zeros((3, sites, features))
    history = []
    for number in range(ROUNDS):
        step = method.step * method.growth**number
        pulls = step * (degrees[:, None] * models + beside @ models) - 2 * duals
        curvatures = method.regularization + 2 * step * degrees
        if method.reuse and number % 2:
            near = pulls - slopes + SMOOTH * models
            models = near / (curvatures + SMOOTH)[:, None]
        else:
            pulls -= _linear(method, models.shape, generator)
            found = _minimized(columns, curvatures, pulls, models, method.tolerance)
            slopes = pulls - curvatures[:, None] * found
            new = found + method.model_noise * generator.standard_normal(models.shape)
            models = selected(models, new) if selected else new
        duals += step / 2 * (degrees[:, None] * models - beside @ models)
        history.append(models)
    return np.stack(history)


def _minimized(
    columns: list[Array], curvatures: Array, pulls: Array, starts: Array, tolerance: float
) -> Array:
    """Return the minimizer of every site's perturbed cost."""
    found = []
    for each, curvature, pull, start in zip(columns, curvatures, pulls, starts, strict=True):
        persons = each.shape[1]
        cost = LogisticCost(each, np.zeros(persons), float(curvature), pull, persons)
        found.append(minimize_in_ball(cost, _BALL, start, tolerance))
    return np.stack(found)


def _linear(method: Perturbed, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    noise = generator.standard_normal(shape)
    if not method.gamma:
        return method.cost_noise * noise
    sizes = generator.gamma(shape[1], method.cost_noise, shape[0])
    return noise * (sizes / np.linalg.norm(noise, axis=1))[:, None]
