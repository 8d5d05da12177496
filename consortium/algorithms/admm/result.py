"""The agreed result: the sites' models, their mean, and their differences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from consortium.algorithms.base import MOST_ROWS, Array, Captions, Result, Table
from consortium.algorithms.findings import Finding
from consortium.base.formatting import count

if TYPE_CHECKING:
    from consortium.algorithms.admm.centre import Admm

_RISK = 0.05


def admm_result(
    plan: Admm, history: Sequence[Array], gains: Sequence[float], noise: float
) -> Result:
    """Return the mean of the last models over sites, and the coefficients that exceed its noise.

    Parameters
    ----------
    history : sequence of array, S x D
        All sites' models after each iteration.
    gains : sequence of float
        Released gains of IPP, as fractions of the largest possible gain.
    noise : float
        Standard deviation of the noise in an entry of a model.
    """
    last = max(1, round(plan.parameters.averaged * len(history)))
    models = np.mean(history[-last:], axis=0)
    joint = models.mean(axis=0)
    entries = plan.shape.features - 1
    target = plan.target
    constant = plan.constant
    arrays = {
        "coefficients": np.insert(joint[:entries], target, 0.0)[:, None],
        "intercept": constant * joint[entries:],
        "site_coefficients": np.insert(models[:, :entries], target, 0.0, axis=1).T,
        "site_intercepts": constant * models[:, entries:].ravel(),
        "iterations": np.stack([each.mean(axis=0) for each in history]),
    }
    apart = [_disagreement(each[:, : plan.agreed]) for each in history]
    floor = gathered_floor(plan, len(history), noise)
    found = np.abs(arrays["coefficients"][:, 0]) > floor
    arrays["found"] = found[:, None]
    numbers = {
        "iterations": len(history),
        "disagreement": _disagreement(models[:, : plan.agreed]),
        "model_noise": noise,
        "floor": floor,
        "found": int(found.sum()),
        "model_norm": float(np.linalg.norm(joint)),
    }
    tables = {
        "coefficients": _coefficients(plan, arrays["coefficients"], found),
        **_course(plan, apart, gains),
    }
    words = Captions(
        "coefficient",
        _headline(int(found.sum()), floor),
        f"Coefficient of the log odds of {plan.parameters.target}.",
        found=bool(found.any()),
    )
    withheld = np.insert(~np.delete(found, target), target, False)[:, None]
    shown = partial(Result, loadings="coefficients", drawn="found", withheld=withheld)
    return shown(arrays, numbers, tables=tables, captions=words)


def _course(plan: Admm, apart: Sequence[float], gains: Sequence[float]) -> dict[str, Table]:
    """Tabulate differences of the models and released gains, iteration by iteration."""
    tables = {
        "agreement": Table(
            "Root mean square distance of the sites' models from their mean, with their noise, "
            "iteration by iteration.",
            ("iteration", "distance"),
            tuple(enumerate(apart, 1)),
        )
    }
    if gains:
        tables["gains"] = Table(
            "Released gains, as part of the most that they can be; models were exchanged from "
            f"{plan.parameters.threshold:g} on.",
            ("iteration", "gain"),
            tuple(enumerate(gains, 2)),
        )
    return tables


def gathered_floor(plan: Admm, rounds: int, noise: float) -> float:
    """Return the limit that no coefficient of `admm` without effect exceeds in 95 % of studies.

    Models are a random walk: the mean over S sites gathers σ √(rounds/S) of the messages' noise.
    Sampling error moves it along a direction of curvature h by min(t, 1/h) √(h/n), t = rounds/Λ,
    which is at most √(t/n). For a model that was cut to the ball, its radius is the bound.
    """
    sites = len(plan.shape.units)
    persons = sum(plan.shape.units)
    chance = rounds / (plan.curvature * persons)
    deviation = float(np.sqrt(noise**2 * rounds / sites + chance))
    tests = 2 * max(plan.shape.features - 1, 1)
    return -float(ndtri(_RISK / tests)) * deviation


def _headline(found: int, floor: float) -> str:
    if not found:
        return (
            f"Nothing was found; at this ε and these numbers a coefficient below {floor:.2g} would "
            "not be seen."
        )
    return f"{count(found, 'coefficient')} found beyond the limits of noise and chance."


def _disagreement(models: Array) -> float:
    return float(np.sqrt(np.mean(np.sum((models - models.mean(axis=0)) ** 2, axis=1))))


def _coefficients(plan: Admm, values: Array, found: Array) -> Table:
    rows = [
        (*name, float(value) if sure else Finding(), "found" if sure else "not found")
        for name, value, sure in zip(plan.shape.entry_names, values[:, 0], found, strict=True)
        if name[0] != plan.parameters.target
    ]
    sites = (
        "Each site has a constant of its own."
        if plan.parameters.site_constants and plan.constant
        else "Differences between sites are part of them."
    )
    return Table(
        f"Coefficients of the log odds of {plan.parameters.target}, the mean of the sites' "
        f"models, without intervals; those that noise and chance could make are withheld. {sites}",
        ("view", "entry", "coefficient", "state"),
        tuple(rows[:MOST_ROWS]),
    )
