"""PP-ADMM as published and DVP, and their true privacy loss.

Both perturb each local cost by a random linear part. For losses of a linear score Redberg, Koskela
and Wang (2023) bound the Rényi divergences of such a perturbation. Here the neighbour has another
participant, not one less. The privacy loss is at most 2 log of the determinants' ratio for one
participant, plus s²/2, plus the sum of two normal numbers' sizes, of deviation s/2 each; by Cauchy
and Schwarz its moments are at most those of one of deviation s, s = 2/(n σ).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from consortium.algorithms.admm.kernels.logistic_in_ball import LogisticCost, minimize_in_ball
from consortium.algorithms.base import Array
from consortium.privacy.gdp import epsilon_of

ROUNDS, DELTA, SMOOTH, BETA, SPLIT = 30, 1e-4, 0.25, 10**-3.5, 0.001
_ORDERS = 1 + np.geomspace(1e-2, 1e4, 400)
_BALL = 1e3  # the papers have none


@dataclass(frozen=True)
class Perturbed:
    """A method's numbers: curvatures, and noise in the cost and in the model."""

    regularization: float
    step: float
    cost_noise: float
    model_noise: float
    gamma: bool = False


def pp_admm(nominal: float, count: int, degree: int, step: float) -> Perturbed:
    """Run algorithm 1 with the paper's settings for a total of ``nominal``."""
    rho = nominal**2 / (4 * math.log(1 / DELTA)) / ROUNDS
    own, rest = rho * (1 - SPLIT), rho * SPLIT
    first = own + 2 * math.sqrt(own * math.log(1 / DELTA))
    third = 0.99 * first
    regularization = 2.8 * SMOOTH / ((first - third) * count)  # the paper's, over the sites
    curvature = regularization + 2 * step * degree
    return Perturbed(
        regularization,
        step,
        2 * math.sqrt(2 * math.log(1.25 / DELTA)) / (count * third),
        BETA / (math.sqrt(2 * rest) * curvature),
    )


def true_epsilon(method: Perturbed, count: int, degree: int) -> float:
    """Return the ε that can be proved for all rounds."""
    curvature = method.regularization + 2 * method.step * degree
    s = 2 / (count * method.cost_noise)
    determinant = -2 * math.log1p(-SMOOTH / count / curvature)
    twice = log_ndtr((_ORDERS - 1) * s) + math.log(2)
    each = determinant + _ORDERS * s**2 / 2 + twice / (_ORDERS - 1)
    output = (2 * BETA / curvature / method.model_noise) ** 2 / 2  # both solutions are off
    return _converted(ROUNDS * (each + _ORDERS * output))


def least_epsilon(method: Perturbed, count: int) -> float:
    """Return a lower limit of ε for any accounting.

    Slopes of misclassified participants are constant.
    """
    return epsilon_of(2 / (count * method.cost_noise) * math.sqrt(ROUNDS), DELTA)


def dvp(target: float, count: int, degree: int, step: float) -> Perturbed:
    """Run Zhang and Zhu (2016): noise of Gamma norm, each round ε_t-DP, composed as zCDP."""
    each = brentq(lambda e: _converted(ROUNDS * _ORDERS * e**2 / 2) - target, 1e-6, target)
    spent = 2 * math.log1p(SMOOTH / count / (2 * step * degree))
    return Perturbed(0.0, step, 2 / (count * (each - spent)), 0.0, gamma=True)


def _converted(divergences: Array) -> float:
    """Convert Rényi divergences to (ε, δ): Canonne, Kamath and Steinke (2020), Proposition 12."""
    shift = np.log1p(-1 / _ORDERS) - (math.log(DELTA) + np.log(_ORDERS)) / (_ORDERS - 1)
    return float(max(0.0, (divergences + shift).min()))


def run(
    method: Perturbed, columns: list[Array], beside: Array, generator: np.random.Generator
) -> Array:
    """Return all sites' models after each round: rounds x S x D.

    ``columns`` are D x N of participants times labels, and ``beside`` is the graph's S x S matrix.
    """
    sites, features, degrees = len(columns), len(columns[0]), beside.sum(axis=1)
    models, duals = np.zeros((2, sites, features))
    history = []
    for _ in range(ROUNDS):
        pulls = method.step * (degrees[:, None] * models + beside @ models) - 2 * duals
        pulls -= _linear(method, models.shape, generator)
        found = []
        for site, each in enumerate(columns):
            curvature = method.regularization + 2 * method.step * degrees[site]
            persons = each.shape[1]
            cost = LogisticCost(each, np.zeros(persons), curvature, pulls[site], persons)
            found.append(minimize_in_ball(cost, _BALL, models[site], BETA))
        models = np.stack(found) + method.model_noise * generator.standard_normal(models.shape)
        duals += method.step / 2 * (degrees[:, None] * models - beside @ models)
        history.append(models)
    return np.stack(history)


def _linear(method: Perturbed, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    noise = generator.standard_normal(shape)
    if not method.gamma:
        return method.cost_noise * noise
    sizes = generator.gamma(shape[1], method.cost_noise, shape[0])
    return noise * (sizes / np.linalg.norm(noise, axis=1))[:, None]
