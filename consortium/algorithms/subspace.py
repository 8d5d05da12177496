"""Directions that persons share: the basis, the one release, and the site's mean of projectors.

What `group_ica` takes apart, solver subspace of `pca` begins with; `template_networks` has the
basis alone.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal, Protocol, cast

import numpy as np

from consortium.algorithms.base import (
    AnyPlaces,
    Argument,
    Array,
    PlannedRelease,
    Query,
    Shape,
    SiteData,
    SurfacePlaces,
)
from consortium.algorithms.over_persons import sum_over_persons
from consortium.algorithms.query_arguments import index_argument, number_argument
from consortium.errors import ProtocolError, StudyError
from consortium.kernels.moments import add_second_moment, pack_symmetric, packed_size
from consortium.kernels.projector_forecast import best_cutoff
from consortium.kernels.projectors import GlobalSignal, leading_directions, reduce_series
from consortium.kernels.smooth_basis import SmoothBasis
from consortium.kernels.surface_basis import SurfaceBasis
from consortium.privacy.bounds import Bound

BasisKind = Literal["smooth", "atlas", "voxels"]
_MOST_ROWS = 1500  # a million numbers, and seconds for a replay
_ROOM = 5  # dimensions for each of K directions: with fewer, anybody's directions are alike
_STEP = 0.5  # mm, so that no rounding makes two parties plan differently


class Wanted(Protocol):
    """What a study says of the directions; parameters of group ICA are such."""

    @property
    def kept(self) -> int:
        """K, leading spatial directions of each person that count."""
        ...

    @property
    def basis(self) -> BasisKind | None:
        """What maps are made of; by default what the data have."""
        ...

    @property
    def cutoff(self) -> float | None:
        """Shortest wavelength in mm, or as the noise allows."""
        ...

    @property
    def global_signal(self) -> GlobalSignal:
        """Whether the mean time series of all voxels is kept."""
        ...

    @property
    def least(self) -> float:
        """Expected correlation with the truth from which on a network counts as found."""
        ...

    @property
    def anyway(self) -> bool:
        """Whether to run a study that is expected to find nothing."""
        ...


@dataclass(frozen=True)
class Directions:
    """So many directions, all else as it is by default."""

    kept: int
    basis: BasisKind | None = None
    cutoff: float | None = None
    global_signal: GlobalSignal = "keep"
    least: float = 0.7
    anyway: bool = False


def bound_of(parameters: Wanted) -> Bound:
    """√K, of positive semidefinite matrices."""
    return Bound(math.sqrt(parameters.kept), cone=True)


def basis_of(parameters: Wanted, shape: Shape) -> BasisKind:
    """Which basis a study has.

    Raises
    ------
    StudyError
        If it can't be had from the study's features.
    """
    if parameters.basis == "smooth" and shape.places is None:
        raise StudyError(
            "field 'analysis.basis': smooth is for voxels, and the study's data.atlas has "
            "regions; choose atlas, or leave data.atlas out."
        )
    if parameters.basis == "atlas" and shape.places is not None:
        raise StudyError("field 'analysis.basis': atlas needs data.atlas; name one.")
    return parameters.basis or ("smooth" if shape.places is not None else "atlas")


def plan_projectors(parameters: Wanted, shape: Shape) -> PlannedRelease:
    """The one release, with the whole budget.

    Raises
    ------
    StudyError
        If the unit is not a person, or the basis doesn't fit the data.
    """
    if shape.unit != "subject":
        raise StudyError(
            "field 'privacy.unit': group_ica takes each participant's directions as a whole; set "
            "unit: subject."
        )
    if 1 < shape.mean_length <= parameters.kept:  # sizes are not known yet where it is 1
        raise StudyError(
            f"field 'analysis.directions': {parameters.kept} directions can't be estimated from "
            f"participants with {shape.mean_length:.0f} volumes; ask for fewer, or for longer "
            "series."
        )
    size = basis_size(parameters, shape)
    if parameters.kept >= size:
        raise StudyError(
            f"field 'analysis.directions': {parameters.kept} directions in a basis of {size} maps "
            "say nothing; ask for fewer, or for a finer basis."
        )
    if size > _MOST_ROWS:
        raise StudyError(
            f"field 'analysis.basis': {size} maps are more than {_MOST_ROWS}; choose a longer "
            "cutoff, or basis smooth."
        )
    return PlannedRelease(
        stage="networks",
        statistic="projectors",
        entries=packed_size(size),
        bound=bound_of(parameters),
        rounds=1,
        share=1.0,
        fixed=arguments_of(parameters, shape),
    )


def arguments_of(parameters: Wanted, shape: Shape) -> dict[str, Argument]:
    """What sites are to compute with, all of it decided by study and sizes."""
    return {
        "directions": parameters.kept,
        "cutoff": cutoff_planned(parameters, shape),
        "global_signal": parameters.global_signal,
    }


def basis_size(parameters: Wanted, shape: Shape) -> int:
    """d, dimensions of the basis."""
    cutoff = cutoff_planned(parameters, shape)
    if not cutoff or shape.places is None:
        return shape.features
    return smooth_basis(shape.places, cutoff).size


def finest_cutoff(places: AnyPlaces, stated: float | None) -> float:
    """Shortest wavelength in mm that voxels, or the modes of a mesh, can hold.

    Raises
    ------
    StudyError
        If the stated one is shorter.
    """
    finest = places.finest
    if stated is not None and stated < finest:
        if isinstance(places, SurfacePlaces):
            what, remedy = "the modes of the study's mesh", ""
        else:
            what, remedy = "voxels of this size", ", or a finer data.resolution"
        raise StudyError(
            f"field 'analysis.cutoff': {stated:g} mm is too short for {what}; take "
            f"{finest:.4g} mm or more{remedy}."
        )
    return finest


def cutoff_planned(parameters: Wanted, shape: Shape) -> float:
    """Shortest wavelength in mm, on a step of half a millimetre; 0 for regions and voxels.

    Raises
    ------
    StudyError
        If the study asks for finer waves than its voxels or mesh can hold.
    """
    if basis_of(parameters, shape) != "smooth" or shape.places is None:
        return 0.0
    finest = finest_cutoff(shape.places, parameters.cutoff)
    if parameters.cutoff is not None:
        return parameters.cutoff
    room = shape.places.room
    finest = max(finest, room.cutoff(0.85 * _MOST_ROWS))
    coarsest = max(finest, room.cutoff(_ROOM * parameters.kept))
    steps = np.arange(math.ceil(finest / _STEP), math.ceil(coarsest / _STEP) + 1)
    return best_cutoff(_STEP * steps, room, parameters.kept, deviation_of(parameters, shape))


def resolved(shape: Shape, cutoff: float) -> float:
    """Correlation of a usual network with what a basis shows of it; 1 of regions and voxels."""
    return shape.places.room.resolved(cutoff) if cutoff and shape.places is not None else 1.0


def deviation_of(parameters: Wanted, shape: Shape) -> float:
    """τ, standard deviation of the noise in each released number."""
    return shape.noise * bound_of(parameters).spread / sum(shape.units)


MOST_DIRECTIONS = 101


def mean_projector(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of U Uᵀ, packed: d(d+1)/2 entries.

    A person's K directions are those of Φᵀ X; their projector has norm √K or less, and nothing
    that a query holds makes it larger than the bound.
    """
    count = index_argument(query, "directions", MOST_DIRECTIONS)
    cutoff, word = number_argument(query, "cutoff"), query.arguments.get("global_signal")
    if count < 1 or word not in ("keep", "remove"):
        raise ProtocolError(
            "The query's 'directions' or 'global_signal' is nothing that is asked; discard it."
        )
    basis = basis_at(data.extent.places, cutoff)
    size = data.features if basis is None else basis.shape[1]
    scale = min(1.0, bound.norm / math.sqrt(count))
    part = partial(_sum_projectors, size, basis, cast("GlobalSignal", word), count, scale)
    return pack_symmetric(sum_over_persons(data, part, (size, size))) / len(data.lengths)


def _sum_projectors(
    size: int,
    basis: Array | None,
    global_signal: GlobalSignal,
    count: int,
    scale: float,
    blocks: Iterable[Array],
) -> Array:
    total = np.zeros((size, size), order="F")
    for directions in directions_of(blocks, basis, global_signal, count):
        if directions.shape[1]:
            total = add_second_moment(total, directions, scale)
    return total


def directions_of(
    blocks: Iterable[Array], basis: Array | None, global_signal: GlobalSignal, count: int
) -> Iterator[Array]:
    """Each person's leading directions in the basis, d x K or fewer."""
    narrow = basis
    for block in blocks:
        if narrow is not None and narrow.dtype != block.dtype:
            narrow = narrow.astype(block.dtype)
        yield leading_directions(reduce_series(block, narrow, global_signal), count)


def basis_at(places: AnyPlaces | None, cutoff: float) -> Array | None:
    """Φ, or nothing for the identity.

    Raises
    ------
    ProtocolError
        If there are waves of something that has no places.
    """
    if not cutoff:
        return None
    if places is None:
        raise ProtocolError("The query's 'cutoff' is for voxels in mm; discard it.")
    return smooth_basis(places, cutoff).matrix


@lru_cache(maxsize=4)  # public, and asked for by plan, site and centre
def smooth_basis(places: AnyPlaces, cutoff: float) -> SmoothBasis | SurfaceBasis:
    """The basis of a study; places are one object for each space."""
    if isinstance(places, SurfacePlaces):
        return SurfaceBasis(places.coordinates, places.modes, cutoff)
    return SmoothBasis(places.coordinates, cutoff)
