"""Forecast of a study with an open cohort, only from public data.

Releases of hospitals whose participants are like the open cohort's are drawn with the study's
noise, and become networks by the function that does so for the study's own release.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from consortium.algorithms.base import Release, Shape
from consortium.algorithms.group_ica.kernels.open_posterior import (
    OpenMean,
    draw_like,
    measure_strengths,
)
from consortium.algorithms.group_ica.kernels.smooth_null import SmoothNull
from consortium.algorithms.group_ica.parameters import GroupIcaParameters
from consortium.algorithms.group_ica.result import group_release
from consortium.algorithms.group_ica.separation import open_maps
from consortium.algorithms.group_ica.with_open import mean_of_cohort, result_with_open
from consortium.algorithms.open_cohort import OpenDirections
from consortium.base.array import Array
from consortium.base.formatting import count
from consortium.kernels.moments import pack_symmetric

if TYPE_CHECKING:
    from consortium.algorithms.group_ica.centre import GroupIca

_REPLAYS = 10
_FIGURES = 3
_HALVES = 2
_LEAST_AGREEMENT = 0.05
_ERROR_ALONE = 0.09
"""Two standard errors of the agreement of an open cohort by itself, over cohorts of 40 to 150
participants."""


@dataclass(frozen=True)
class OpenForecast:
    """Forecast of a study if the hospitals' participants are like the open cohort's."""

    found: int
    """Number of networks that the release confirms."""
    expected: tuple[float, ...]
    """Expected correlation of those with the truth, ascending."""
    alone: float
    """Expected correlation of the open cohort's own maps with the truth, without any release."""


def forecast_with_open(plan: GroupIca, cohort: OpenDirections) -> OpenForecast:
    """Return the forecast of a plan with an open cohort."""
    plan.check_open_cohort()
    fewer = plan.parameters.model_copy(update={"replays": _REPLAYS}).model_dump_json()
    noise = float(f"{plan.shape.noise:.{_FIGURES}g}")
    return _simulate(type(plan), fewer, replace(plan.shape, noise=noise), cohort)


@lru_cache(maxsize=64)
def _simulate(
    kind: type[GroupIca], parameters: str, shape: Shape, cohort: OpenDirections
) -> OpenForecast:
    plan = kind(GroupIcaParameters.model_validate_json(parameters), shape)
    generator = np.random.default_rng(0)
    truth = mean_of_cohort(cohort, plan.asked.kept)
    drawn = draw_like(truth, plan.deviation, sum(shape.units), generator)
    # Another cohort of as many participants; its sampling error is not in the release.
    other = OpenMean.of(truth.directions[generator.integers(cohort.persons, size=cohort.persons)])
    result = result_with_open(Release(pack_symmetric(drawn), plan.deviation), plan, other)
    images = result.images.get("components")
    accuracy = images.accuracy if images is not None else ()
    expected = sorted(each.value for each in accuracy if each.reported)
    return OpenForecast(len(expected), tuple(expected), agreement_alone(plan, cohort))


def confirmable(plan: GroupIca, cohort: OpenDirections) -> float:
    """Return the expected number of the open cohort's maps that the release confirms."""
    mean = mean_of_cohort(cohort, plan.asked.kept)
    fixed = plan.by_itself
    weights, nulls = _open_maps(type(plan), fixed.parameters.model_dump_json(), fixed.shape, cohort)
    strengths = measure_strengths(
        release=mean.matrix,
        cohort=mean,
        weights=weights,
        nulls=nulls,
        deviation=plan.deviation,
        persons=sum(plan.shape.units),
    )
    return float(strengths.power.sum())


@lru_cache(maxsize=4)
def _open_maps(
    kind: type[GroupIca], parameters: str, shape: Shape, cohort: OpenDirections
) -> tuple[Array, tuple[SmoothNull, ...]]:
    """Return the strongest maps of an open cohort, and participants without networks like it."""
    one = replace(shape, subjects=(len(cohort.values),), samples=(len(cohort.values),), sites=())
    plan = kind(GroupIcaParameters.model_validate_json(parameters), one)
    mean = mean_of_cohort(cohort, plan.asked.kept)
    released = group_release(Release(pack_symmetric(mean.matrix), 0.0), plan)
    weights = open_maps(plan, mean.matrix, released.paint)[:, : plan.parameters.most]
    return weights, released.nulls(released.directions(plan.parameters.most))


def agreement_alone(plan: GroupIca, cohort: OpenDirections) -> float:
    """Return the expected mean correlation of the open cohort's own maps with the truth.

    It is the agreement of two halves, by sites, stepped up to the whole (Spearman and Brown).
    """
    paint = group_release(Release(np.zeros(1), 0.0), plan).paint
    maps = []
    for chosen in _halves_by_site(cohort.sites):
        half = OpenMean.of(cohort.values[chosen][:, :, : plan.asked.kept])
        painted = paint(open_maps(plan, half.matrix, paint))
        centred = painted - painted.mean(axis=0)
        maps.append(centred / np.linalg.norm(centred, axis=0))
    table = np.abs(maps[0].T @ maps[1])
    agreed = np.maximum(table[linear_sum_assignment(-table)], _LEAST_AGREEMENT)
    best = np.sort(agreed)[-plan.parameters.most :]
    return float(np.mean(_HALVES * best / (1.0 + best)))


def _halves_by_site(sites: NDArray[np.str_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return two halves of similar size, with no site in both unless one site has most."""
    names, many = np.unique(sites, return_counts=True)
    first = np.zeros(len(sites), dtype=bool)
    for name in names[np.argsort(-many, kind="stable")]:
        own = sites == name
        if first.sum() + own.sum() <= len(sites) / 2.0 + 1.0:
            first |= own
    if min(first.sum(), (~first).sum()) < len(sites) / 4.0:
        first = np.arange(len(sites)) % 2 == 0
    return first, ~first


def open_sentences(plan: GroupIca, cohort: OpenDirections) -> tuple[str, ...]:
    """Return the forecast of networks with an open cohort, in sentences."""
    forecast = forecast_with_open(plan, cohort)
    low = max(forecast.alone - _ERROR_ALONE, 0.0)
    high = min(forecast.alone + _ERROR_ALONE, 1.0)
    alone = (
        f"If the hospitals' participants are like those of the open cohort, its maps by themselves "
        f"have a mean correlation with the truth of about {forecast.alone:.2f} ({low:.2f} to "
        f"{high:.2f}; {count(cohort.persons, 'open participant')})."
    )
    adds = (
        f"The release states which networks the hospitals have: about {forecast.found} of "
        f"{plan.parameters.most} are confirmed."
    )
    return alone, adds
