"""How the directions of a release become networks, and which of them count."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Shape
from consortium.algorithms.group_ica.kernels.agreement import of_replays
from consortium.algorithms.group_ica.kernels.network_nulls import (
    NullDraws,
    beyond_null,
    beyond_smooth,
    contrast_of_chance,
    white_null,
)
from consortium.algorithms.group_ica.kernels.open_posterior import EntryErrors
from consortium.algorithms.group_ica.kernels.smooth_null import (
    SmoothNull,
    SmoothPlaces,
    SmoothRelease,
    surface_covariances,
)
from consortium.base.array import Array
from consortium.kernels.component_bootstrap import (
    Networks,
    NoisyDirections,
    directions_of_mean,
    find_networks,
    strongest_directions,
)
from consortium.kernels.separations import FastIca, Paint, SeparationMethod, Varimax
from consortium.kernels.surface_basis import SurfaceBasis

if TYPE_CHECKING:
    from consortium.algorithms.group_ica.centre import GroupIca

_MORE = 1.25
"""Number of separated directions, over the maximum number of networks."""


@dataclass(frozen=True, eq=False)
class GroupRelease:
    """A released mean projector of group ICA, with its noise."""

    matrix: Array
    """Shape (d, d)."""
    deviation: float
    """Standard deviation of the privacy noise in a released number."""
    plan: GroupIca
    paint: Paint
    """To the analysed voxels."""
    shape: Shape
    """Public sizes, with estimated numbers of participants."""

    @property
    def persons(self) -> int:
        """Estimated number of participants of all sites, n."""
        return sum(self.shape.units)

    def directions(self, uncut: int = 0) -> NoisyDirections:
        """Return directions that exceed the noise, or at least the first ``uncut`` ones."""
        return directions_of_mean(
            self.matrix,
            self.deviation,
            kept=self.plan.asked.kept,
            persons=self.persons,
            most=self.plan.parameters.most,
            uncut=uncut,
        )

    @property
    def places(self) -> SmoothPlaces | None:
        """Where the basis's dimensions are; none for a table of regions."""
        waves = self.plan.waves
        shape = self.plan.shape
        if isinstance(waves, SurfaceBasis):
            return SmoothPlaces(waves.centres, own=partial(surface_covariances, waves))
        if waves is not None:
            return SmoothPlaces(waves.centres, waves.local)
        features = shape.region_places if shape.places is None else shape.places.coordinates
        return None if features is None else SmoothPlaces(features)

    @cached_property
    def smooth(self) -> SmoothRelease | None:
        """The release for a comparison with smooth noise; None for regions without places."""
        places = self.places
        if places is None:
            return None
        return SmoothRelease(
            matrix=self.matrix,
            places=places,
            deviation=self.deviation,
            kept=self.plan.asked.kept,
            persons=self.persons,
            volumes=round(self.plan.shape.mean_length),
        )

    def nulls(self, directions: NoisyDirections) -> tuple[SmoothNull, ...]:
        """Return participants without networks that are most like the whole release.

        Parameters
        ----------
        directions : NoisyDirections
            Of the release, for a table of regions without places.
        """
        smooth = self.smooth
        if smooth is None:
            return (white_null(directions),)
        return (smooth.even,) if smooth.local is None else (smooth.even, smooth.local)


@dataclass(frozen=True, eq=False)
class Separated:
    """Networks into which a release of group ICA was separated, with their tests."""

    directions: NoisyDirections
    networks: Networks | None
    """None if nothing stands out of the noise."""
    expected: Array
    """Shape (R,). Expected correlation of each network with the truth."""
    found: NDArray[np.bool_]
    """True or false, shape (R,). Whether each is expected to agree with the truth by ``least`` and
    is stronger than participants without networks explain."""


def separate_release(released: GroupRelease, generator: np.random.Generator) -> Separated:
    """Return networks of a release, the most reliable first, up to the maximum number."""
    separated, way = _separated(released, generator)
    if separated.networks is None or not separated.found.any():
        return separated
    found = _significant(
        released=released,
        directions=separated.directions,
        networks=separated.networks,
        reliable=separated.found,
        way=way,
        generator=generator,
    )
    return replace(separated, found=found)


def separate_mean(
    released: GroupRelease, errors: EntryErrors, generator: np.random.Generator
) -> Separated:
    """Return maps of a mean projector as `separate_release`, without a test against nulls.

    Parameters
    ----------
    errors : EntryErrors
        Expected errors of the mean projector. Replays that draw these need no calibration.
    """
    return _separated(released, generator, errors)[0]


def _separated(
    released: GroupRelease, generator: np.random.Generator, errors: EntryErrors | None = None
) -> tuple[Separated, SeparationMethod]:
    """Return maps that agree with the truth if they exist, and the method that made them."""
    parameters = released.plan.parameters
    seen = released.directions()
    directions, way = _taken_apart(released, seen) if seen.count else (seen, _varimax(released))
    if errors is not None:
        directions = replace(directions, whole=(released.matrix, errors.draw))
    networks = None
    if seen.count:
        networks = find_networks(directions, way, parameters.replays, generator)
        networks = networks.first(parameters.most)
    if networks is None or not networks.weights.shape[1]:
        return Separated(directions, None, np.zeros(0), np.zeros(0, dtype=bool)), way
    again = networks.replay_correlations
    calibrated = errors is None and parameters.separation == "varimax"
    expected = of_replays(again) if calibrated else again
    return Separated(directions, networks, expected, expected >= parameters.least), way


def _varimax(released: GroupRelease) -> Varimax:
    return Varimax(released.paint)


def open_maps(plan: GroupIca, matrix: Array, paint: Paint) -> Array:
    """Return the weights of the maps of a mean projector without noise, shape (d, R)."""
    many = min(round(_MORE * plan.parameters.most), len(matrix))
    bulk = float(np.median(np.linalg.eigvalsh(matrix)))
    vectors, excess = strongest_directions(matrix, many, bulk)
    return Varimax(paint).first(vectors, excess, np.random.default_rng(0))[1]


def _taken_apart(
    released: GroupRelease, seen: NoisyDirections
) -> tuple[NoisyDirections, SeparationMethod]:
    """Return the directions that are separated, and the method."""
    parameters = released.plan.parameters
    if parameters.separation != "varimax":
        return seen, FastIca(released.paint, parameters.starts)
    uncut = min(round(_MORE * parameters.most), len(released.matrix))
    return released.directions(uncut), _varimax(released)


def _significant(
    released: GroupRelease,
    directions: NoisyDirections,
    networks: Networks,
    reliable: NDArray[np.bool_],
    way: SeparationMethod,
    generator: np.random.Generator,
) -> NDArray[np.bool_]:
    """Return which reliable components are stronger than their null models explain.

    If the study has places, the null models are smooth participants without networks, with even and
    with local smoothness (`beyond_smooth`). Otherwise it is participants of white noise. With
    FastICA, a component must also be less Gaussian than a separation of chance finds.
    """
    weights = networks.weights
    matrix = released.matrix
    draws = NullDraws(way, directions.count, generator)
    smooth = released.smooth
    if smooth is None:
        kept = reliable & beyond_null(matrix, white_null(directions), weights, draws)
    else:
        kept = beyond_smooth(smooth, weights, reliable, draws)
    if isinstance(way, FastIca):
        size = weights.shape[1]
        chance = contrast_of_chance(directions, released.paint, size, generator)
        kept &= networks.contrast > chance
    return kept
