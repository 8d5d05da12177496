"""How the directions of a release become networks, and which of them count."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Array, Shape
from consortium.algorithms.group_ica.kernels.agreement import of_replays
from consortium.algorithms.group_ica.kernels.network_nulls import (
    NullDraws,
    beyond_null,
    beyond_smooth,
    contrast_of_chance,
    white_null,
)
from consortium.algorithms.group_ica.kernels.smooth_null import (
    SmoothPlaces,
    SmoothRelease,
    surface_covariances,
)
from consortium.algorithms.group_ica.plan import GroupIcaPlan
from consortium.kernels.component_bootstrap import (
    Networks,
    NoisyDirections,
    find_directions,
    find_networks,
    law_of_mean,
)
from consortium.kernels.separations import FastIca, Paint, SeparationMethod, Varimax
from consortium.kernels.surface_basis import SurfaceBasis

_MORE = 1.25
"""Number of separated directions, over the maximum number of networks."""


@dataclass(frozen=True, eq=False)
class GroupRelease:
    """A release of group ICA."""

    matrix: Array
    """Shape (d, d)."""
    deviation: float
    """Standard deviation of the privacy noise in a released number."""
    plan: GroupIcaPlan
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
        kept = self.plan.asked.kept
        law = law_of_mean(self.matrix, self.deviation, kept, self.persons)
        skew = len(self.matrix) / (kept * self.persons)
        return find_directions(self.matrix, law, self.plan.parameters.most, skew, uncut)

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


@dataclass(frozen=True, eq=False)
class Separated:
    """What became of a release."""

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
    parameters = released.plan.parameters
    seen = released.directions()
    if not seen.count:
        return _nothing(seen)
    directions, way = _taken_apart(released, seen)
    networks = find_networks(directions, way, parameters.replays, generator)
    networks = networks.first(parameters.most)
    if not networks.weights.shape[1]:
        return _nothing(directions)
    again = networks.replay_correlations
    expected = of_replays(again) if parameters.separation == "varimax" else again
    found = expected >= parameters.least
    if found.any():
        found = _significant(
            released=released,
            directions=directions,
            networks=networks,
            reliable=found,
            way=way,
            generator=generator,
        )
    return Separated(directions, networks, expected, found)


def _nothing(directions: NoisyDirections) -> Separated:
    return Separated(directions, None, np.zeros(0), np.zeros(0, dtype=bool))


def _taken_apart(
    released: GroupRelease, seen: NoisyDirections
) -> tuple[NoisyDirections, SeparationMethod]:
    """Return the directions that are separated, and the method."""
    parameters = released.plan.parameters
    if parameters.separation != "varimax":
        return seen, FastIca(released.paint, parameters.starts)
    uncut = min(round(_MORE * parameters.most), len(released.matrix))
    return released.directions(uncut), Varimax(released.paint)


def _significant(
    released: GroupRelease,
    directions: NoisyDirections,
    networks: Networks,
    reliable: NDArray[np.bool_],
    way: SeparationMethod,
    generator: np.random.Generator,
) -> NDArray[np.bool_]:
    """Return which reliable components exceed both nulls, or white noise without places."""
    parameters = released.plan.parameters
    weights = networks.weights
    places = released.places
    matrix = released.matrix
    draws = NullDraws(way, directions.count, generator)
    if places is None:
        kept = reliable & beyond_null(matrix, white_null(directions), weights, draws)
    else:
        smooth = SmoothRelease(
            matrix=matrix,
            places=places,
            deviation=released.deviation,
            kept=parameters.kept,
            persons=released.persons,
            volumes=round(released.plan.shape.mean_length),
        )
        kept = beyond_smooth(smooth, weights, reliable, draws)
    if isinstance(way, FastIca):
        size = weights.shape[1]
        chance = contrast_of_chance(directions, released.paint, size, generator)
        kept &= networks.contrast > chance
    return kept
