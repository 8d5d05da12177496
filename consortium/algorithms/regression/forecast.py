"""Forecast of the error of the AUC on held-out participants."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from consortium.algorithms.base import Expectation
from consortium.algorithms.regression.held_out import ASSUMED_AUC, forecast_auc
from consortium.base.formatting import number
from consortium.errors import StudyError

if TYPE_CHECKING:
    from consortium.algorithms.regression.centre import Regression


def expect_auc(plan: Regression) -> tuple[Expectation, ...]:
    """Forecast the error of the AUC by noise and by chance; nothing if no one is held out."""
    if not plan.parameters.held_out:
        return ()
    noise, chance = _errors(plan)
    return (
        Expectation(f"noise of an AUC of {ASSUMED_AUC:g}", noise, rises=False),
        Expectation(f"standard error of an AUC of {ASSUMED_AUC:g} by chance", chance, rises=False),
    )


def refuse_noisy_auc(plan: Regression) -> None:
    """Raise StudyError if the AUC is expected to have too large an error."""
    parameters = plan.parameters
    if not parameters.held_out or not plan.shape.noise or parameters.anyway:
        return
    noise, chance = _errors(plan)
    error = math.hypot(noise, chance)
    most = parameters.auc_error
    if error <= most:
        return
    # With f times the participants the variance is (noise / f)² + chance² / f.
    half = (chance / most) ** 2 / 2
    enough = math.ceil(sum(plan.shape.units) * (half + math.hypot(half, noise / most)))
    raise StudyError(
        f"field 'analysis.auc_error': the forecast standard error of the AUC must be at most "
        f"{most:g}, got {number(error)} ({number(noise)} by noise, {number(chance)} by chance). "
        f"About {enough:,} participants would be enough, or raise epsilon, held_out or judging. "
        "With 'anyway: true' it is run nevertheless."
    )


def _errors(plan: Regression) -> tuple[float, float]:
    persons = sum(plan.shape.units)
    noise = plan.releases[-1].round_deviation(plan.shape) * persons
    parameters = plan.parameters
    return forecast_auc(persons * parameters.held_out, parameters.prevalence, noise)
