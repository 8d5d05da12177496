"""What the sites agreed on: their models, their mean, and how far apart they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from consortium.algorithms.admm.plan import AdmmPlan
from consortium.algorithms.base import MOST_ROWS, Array, Result, Table


def admm_result(
    plan: AdmmPlan, history: Sequence[Array], gains: Sequence[float], noise: float
) -> Result:
    """Mean of the last iterations' models over sites, in which their noise averages out.

    Parameters
    ----------
    plan : AdmmPlan
    history : sequence of array, S x D
        All sites' models after each iteration.
    gains : sequence of float
        Released gains of IPP, as parts of the most that a gain can be.
    noise : float
        Standard deviation of the noise in an entry of a model.
    """
    last = max(1, round(plan.parameters.averaged * len(history)))
    models = np.mean(history[-last:], axis=0)
    joint = models.mean(axis=0)
    entries, target, constant = plan.shape.features - 1, plan.target, plan.constant
    arrays = {
        "coefficients": np.insert(joint[:entries], target, 0.0)[:, None],
        "intercept": constant * joint[entries:],
        "site_coefficients": np.insert(models[:, :entries], target, 0.0, axis=1).T,
        "site_intercepts": constant * models[:, entries:].ravel(),
        "iterations": np.stack([each.mean(axis=0) for each in history]),
    }
    apart = [_disagreement(each) for each in history]
    numbers = {
        "iterations": len(history),
        "disagreement": _disagreement(models),
        "model_noise": noise,
        "model_norm": float(np.linalg.norm(joint)),
    }
    tables = {"coefficients": _coefficients(plan, arrays["coefficients"])}
    tables["agreement"] = Table(
        "Root mean square distance of the sites' models from their mean, with their noise, "
        "iteration by iteration.",
        ("iteration", "distance"),
        tuple(enumerate(apart, 1)),
    )
    if gains:
        tables["gains"] = Table(
            "Released gains, as part of the most that they can be; models were exchanged from "
            f"{plan.parameters.threshold:g} on.",
            ("iteration", "gain"),
            tuple(enumerate(gains, 2)),
        )
    return Result(arrays, numbers, loadings="coefficients", tables=tables)


def _disagreement(models: Array) -> float:
    return float(np.sqrt(np.mean(np.sum((models - models.mean(axis=0)) ** 2, axis=1))))


def _coefficients(plan: AdmmPlan, values: Array) -> Table:
    names = [(view, entry + 1) for view, size in plan.shape.views for entry in range(size)]
    rows = [
        (*name, float(value))
        for name, value in zip(names, values[:, 0], strict=True)
        if name[0] != plan.parameters.target
    ]
    return Table(
        f"Coefficients of the log odds of {plan.parameters.target}, the mean of the sites' models.",
        ("view", "entry", "coefficient"),
        tuple(rows[:MOST_ROWS]),
    )
