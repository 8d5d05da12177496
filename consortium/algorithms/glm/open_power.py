"""Forecast error of only an open cohort, and of the release combined with it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from consortium.algorithms.findings import Cell
from consortium.algorithms.glm.kernels.with_open import share_of_release
from consortium.base.formatting import count
from consortium.errors import StudyError

if TYPE_CHECKING:
    from consortium.algorithms.glm.centre import Glm

_EMPTY = "–"
_LEAST_GAIN = 0.05  # least reduction, relative to the open cohort's error

ALONE = "only the open cohort"
BOTH = "with the open cohort"


def errors_with_open(plan: Glm, error: float) -> tuple[float, float, float] | None:
    """Return the errors of only the open cohort, by chance and in all, and of both together.

    The error of the open cohort is that of its effects as estimates of the hospitals'. It includes
    the variance of effects between the open cohort's own sites, because populations differ.

    Parameters
    ----------
    error : float
        Forecast standard error of the release.

    Returns
    -------
    tuple of float, or None if the open cohort has no estimate of the contrast
    """
    if plan.open is None or not plan.open.knows_contrast:
        return None
    fit = plan.open.fit
    alone = math.hypot(fit.error, math.sqrt(fit.between))
    both = math.sqrt(share_of_release(error**2, fit.error, fit.between)) * error
    return fit.error, alone, both


def check_gain(plan: Glm, error: float) -> None:
    """Raise StudyError if the release is expected to add nothing to the open cohort."""
    found = errors_with_open(plan, error)
    if found is None:
        return
    _, alone, both = found
    if both > (1 - _LEAST_GAIN) * alone:
        raise StudyError(
            "field 'analysis.open': this study is expected to add nothing to its open cohort: as "
            f"estimates for the hospitals, the cohort's own effects have an error of {alone:.2g} "
            f"standard deviations, and the release would lower it to {both:.2g}. Raise ε, add "
            "participants, or set analysis.anyway: true."
        )


def rows_with_open(plan: Glm, error: float) -> tuple[tuple[Cell, ...], ...]:
    """Return rows of the forecast's table on only the open cohort, and on both together."""
    found = errors_with_open(plan, error)
    if found is None:
        return ()
    chance, alone, both = found
    return (ALONE, alone, chance, *(_EMPTY,) * 3), (BOTH, both, *(_EMPTY,) * 4)


def caption_with_open(plan: Glm) -> str:
    """Return the meaning of these rows; empty if there are none."""
    if plan.open is None or not plan.open.knows_contrast:
        return ""
    return (
        f" The error of '{ALONE}' is that of its effects as estimates of the hospitals'; it "
        "includes how much effects vary between the open cohort's own sites, which may be less "
        f"than between both populations. Effects '{BOTH}' are not only the hospitals'."
    )


def cohort_sentences(plan: Glm) -> tuple[str, ...]:
    """Return a sentence on the open cohort's table, if there is one."""
    found = plan.open
    if found is None:
        return ()
    lacking = f"; {count(found.left_out, 'row')} without all values were left out"
    sentence = (
        f"Norms, correlations and slopes of the outcomes are from {plan.parameters.open}, a table "
        f"of {count(found.persons, 'participant')} of an open cohort at "
        f"{count(found.sites, 'site')}{lacking if found.left_out else ''}. If one of them is also "
        "in a hospital, the table is public as before, and the release protects this participant "
        "as it protects all others."
    )
    return (sentence,)
