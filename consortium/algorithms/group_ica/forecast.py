"""Forecast of the networks that a study will find, only from public numbers.

Releases of simulated participants with usual networks and the noise of the study are separated, and
their networks are found, by the function that does so for the study's own release.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import Expectation, Shape
from consortium.algorithms.group_ica.open_forecast import (
    confirmable,
    forecast_with_open,
    open_sentences,
)
from consortium.algorithms.group_ica.parameters import GroupIcaParameters
from consortium.algorithms.group_ica.result import YARDSTICK
from consortium.algorithms.group_ica.separation import GroupRelease, separate_release
from consortium.algorithms.subspace_forecast import subspace_worth, usual_worth
from consortium.algorithms.worth import POOLED, would_be_enough
from consortium.base.formatting import count
from consortium.errors import StudyError
from consortium.kernels.noise_law import SymmetricNoise
from consortium.kernels.projector_forecast import usual_projector
from consortium.kernels.surface_basis import SurfaceBasis

if TYPE_CHECKING:
    from consortium.algorithms.group_ica.centre import GroupIca

FOUND = "components found"
ALONE = "mean correlation of the open cohort's own maps with the truth"
AGREEMENT = "mean expected correlation of all components"
_RANGED = "from the least to the largest of the components that are found"
_LEAST_FOUND = 2
_DRAWS = 3
_REPLAYS = 10
_DIMENSIONS = 10
"""Maximum dimensions of a simulated release for each direction of a participant."""
_VOLUMES = 100
_FIGURES = 3
_FINE = 2.0
_COARSE = 4.0  # mm: edges of voxels
_FINEST_WAVE = 2.5 * _FINE  # mm: shortest wave that the fine ones hold, as in `Places`
_VOXELS = 5
"""Coarse voxels in a wave's length from which on finer ones add nothing to the basis."""


@dataclass(frozen=True)
class NetworkForecast:
    """Forecast of a release if networks have their usual strengths."""

    found: float
    """Number of components that are found, mean over simulated releases."""
    expected: tuple[float, ...]
    """Expected correlation of those, ascending."""
    agreement: float
    """Mean expected correlation of all components, whether they are found or not."""


def forecast_networks(plan: GroupIca) -> NetworkForecast:
    """Return the forecast of networks for a study's sizes and noise.

    The simulated release has `_DIMENSIONS` dimensions for each direction or fewer. Its noise has
    the same spectral norm as the study's, and so has the variation between its participants.
    """
    asked = plan.parameters
    size = plan.size
    fewer = min(size, _DIMENSIONS * asked.kept)
    deviation = plan.deviation * np.sqrt(size / fewer)
    bare = GroupIcaParameters(
        components=asked.most,
        directions=asked.kept,
        least=asked.least,
        separation=asked.separation,
        starts=asked.starts,
        replays=_REPLAYS,
        anyway=True,
    ).model_dump_json()
    persons = round(sum(plan.shape.units) * size / fewer)
    return _simulate(type(plan), bare, fewer, float(f"{deviation:.{_FIGURES}g}"), persons)


@lru_cache(maxsize=256)
def _simulate(
    kind: type[GroupIca], parameters: str, size: int, deviation: float, persons: int
) -> NetworkForecast:
    asked = GroupIcaParameters.model_validate_json(parameters)
    shape = Shape(size, (persons,), (persons * _VOLUMES,), "subject")
    plan = kind(asked, shape)
    found = list[float]()
    total = 0.0
    for seed in range(_DRAWS):
        generator = np.random.default_rng(seed)
        truth = usual_projector(asked.kept, size, generator)
        noisy = truth + SymmetricNoise(size, deviation).draw(generator)
        released = GroupRelease(noisy, deviation, plan, np.asarray, shape)
        separated = separate_release(released, generator)
        found += separated.expected[separated.found].tolist()
        total += float(separated.expected.sum())
    return NetworkForecast(len(found) / _DRAWS, tuple(sorted(found)), total / asked.most / _DRAWS)


def expect(plan: GroupIca) -> tuple[Expectation, ...]:
    """Return the forecast of the networks to find, in numbers."""
    worth = subspace_worth(plan)
    if plan.open_cohort is not None:
        openly = forecast_with_open(plan, plan.open_cohort)
        return (
            _agreed(openly.expected),
            Expectation(FOUND, float(openly.found)),
            Expectation(ALONE, openly.alone),
            Expectation("worth of the release to a hospital, in own participants", worth.persons),
        )
    forecast = forecast_networks(plan)
    return (
        _agreed(forecast.expected),
        Expectation(FOUND, forecast.found),
        Expectation(AGREEMENT, forecast.agreement),
        Expectation("part of a usual network that this resolution keeps", plan.resolved),
        Expectation("worth of the release to a hospital, in own participants", worth.persons),
        Expectation(POOLED, worth.enough, rises=False),
    )


def _agreed(expected: tuple[float, ...]) -> Expectation:
    """Return the mean expected correlation of the components that are found, with its range."""
    agreed = Expectation("expected correlation", 0.0, ranged=_RANGED)
    if not expected:
        return agreed
    mean = sum(expected) / len(expected)
    return replace(agreed, value=mean, low=expected[0], high=expected[-1])


def forecast_sentences(plan: GroupIca) -> tuple[str, ...]:
    """Return the forecast of the networks to find, in sentences."""
    asked = plan.asked
    where = f"waves longer than {plan.cutoff:g} mm" if plan.cutoff else "the study's features"
    edge = SymmetricNoise(plan.size, plan.deviation).edge
    basis = (
        f"Each participant has {asked.kept} directions in a basis of {plan.size} maps ({where}). "
        f"The noise has a spectral norm of {edge:.3g}; a direction that all participants share "
        "has 1."
    )
    if is_finer_than_waves(plan):
        basis += (
            f" Warning: voxels of {_FINE:g} mm or less need eight times as much of a site's disk "
            f"and memory as voxels of {_COARSE:g} mm, which also hold these waves. Set "
            f"data.resolution: {_COARSE:g}."
        )
    if plan.open_cohort is not None:
        lines = [basis, *open_sentences(plan, plan.open_cohort), YARDSTICK]
        if is_hopeless(plan):
            lines.append(f"Warning: {_too_little(plan)}")
        return tuple(lines)
    forecast = forecast_networks(plan)
    networks = (
        f"If networks have their usual strengths, about {forecast.found:.1f} of "
        f"{plan.parameters.most} components are found: their expected correlation with the truth "
        f"is {asked.least:g} or more, and they are stronger than white noise. {_smooth_noise(plan)}"
        f"The resolution keeps {plan.resolved:.2f} of a usual network."
    )
    measure = (
        f"The mean expected correlation of all components is about {forecast.agreement:.2f}. "
        f"{YARDSTICK}"
    )
    lines = [basis, networks, measure]
    if is_hopeless(plan):
        lines.append(f"Warning: {_too_little(plan)}")
    elif (lost := plan.parameters.most - round(forecast.found)) > 0:
        lines.append(
            f"Warning: {count(lost, 'component')} {'is' if lost == 1 else 'are'} likely to be "
            "withheld; more participants, a larger epsilon or a longer cutoff would show more."
        )
    return (*lines, *filter(None, [usual_worth(plan)]))


def is_finer_than_waves(plan: GroupIca) -> bool:
    """Return whether voxels of `_COARSE` would hold the basis at an eighth of the size or less."""
    places = plan.shape.places
    if places is None or places.word != "voxel":
        return False
    return places.finest <= 1.001 * _FINEST_WAVE and plan.cutoff >= _VOXELS * _COARSE


def _smooth_noise(plan: GroupIca) -> str:
    """Return how the result is stricter than the forecast, which knows no places of networks."""
    if plan.shape.places is None and plan.shape.region_places is None:
        return ""
    cortex = isinstance(plan.waves, SurfaceBasis)
    which = ", whose width is the same everywhere on the cortex" if cortex else ""
    return f"The result also compares them with smooth noise{which}, and may report fewer. "


def is_hopeless(plan: GroupIca) -> bool:
    """Return whether too few networks are expected to be found, or to be confirmed."""
    if plan.open_cohort is not None:
        return confirmable(plan, plan.open_cohort) < min(_LEAST_FOUND, plan.parameters.most)
    return forecast_networks(plan).found < min(_LEAST_FOUND, plan.parameters.most)


def refuse_hopeless(plan: GroupIca) -> None:
    """Refuse a study that is expected to find fewer than two networks, unless it runs anyway.

    Raises StudyError with sufficient numbers.
    """
    if not plan.asked.anyway and plan.shape.noise and is_hopeless(plan):
        raise StudyError(f"field 'privacy.epsilon': {_too_little(plan)}")


def _too_little(plan: GroupIca) -> str:
    remedy = would_be_enough(
        shape=plan.shape,
        sees=lambda less: not is_hopeless(type(plan)(plan.parameters, less)),
        purpose="to expect two networks" if plan.open_cohort is None else "to confirm two",
    )
    if plan.open_cohort is not None:
        return (
            f"the noise over {sum(plan.shape.units)} participants is too large to confirm a "
            f"network of the open cohort, so the study would add nothing to it. "
            f"{remedy}. Set analysis.anyway to run it nevertheless."
        )
    return (
        f"the noise over {sum(plan.shape.units)} participants hides nearly all networks that are "
        f"usual. {remedy}. Set analysis.anyway to run it nevertheless."
    )
