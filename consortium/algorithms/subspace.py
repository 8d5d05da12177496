"""Directions that participants share: the basis, the one release, and a site's mean projector.

`group_ica` separates them, and the solver subspace of `pca` begins with them. `template_networks`
uses only the basis.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Literal, Protocol

import numpy as np

from consortium.algorithms.base import (
    AnyPlaces,
    Array,
    PlannedRelease,
    Query,
    Shape,
    SiteData,
    SurfacePlaces,
)
from consortium.algorithms.over_persons import sum_over_persons
from consortium.errors import StudyError
from consortium.kernels.moments import add_second_moment, pack_symmetric, packed_size
from consortium.kernels.projector_forecast import best_cutoff, expected_cosines
from consortium.kernels.projectors import GlobalSignal, leading_directions, reduce_series
from consortium.kernels.smooth_basis import SmoothBasis
from consortium.kernels.surface_basis import SurfaceBasis
from consortium.privacy.bounds import Bound

BasisKind = Literal["smooth", "atlas", "voxels"]
_MOST_ROWS = 1500  # a million numbers, and seconds for a replay
_ROOM = 5  # dimensions for each of K directions: with fewer, all directions are similar
_STEP = 0.5  # mm: rounding then never makes two parties' plans differ
_LEAST_SEEN = 2


@dataclass(frozen=True)
class Directions:
    """Fields of a study file about shared directions."""

    kept: int
    """K, number of leading spatial directions of each participant."""
    field: str
    """Field of the study that states K."""
    basis: BasisKind | None = None
    """Kind of basis of the maps (default: that of the data)."""
    cutoff: float | None = None
    """Shortest wavelength in mm, or as the noise allows."""
    global_signal: GlobalSignal = "keep"
    """Whether the mean time series of all voxels is kept."""
    least: float = 0.7
    """Expected correlation with the truth from which on a network counts as found."""
    anyway: bool = False
    """Whether to run a study that is expected to find nothing."""


class OnBasis(ABC):
    """A plan whose sites answer in a public basis: waves of a cutoff, or the features."""

    shape: Shape

    @property
    @abstractmethod
    def cutoff(self) -> float:
        """Shortest wavelength in mm; 0 for regions and voxels."""

    @property
    def waves(self) -> SmoothBasis | SurfaceBasis | None:
        """The basis, or nothing for the identity."""
        places = self.shape.places
        return smooth_basis(places, self.cutoff) if self.cutoff and places is not None else None

    @property
    def for_series(self) -> Array | None:
        """Φ for a site's series, or nothing for the identity."""
        return None if self.waves is None else self.waves.for_series

    @cached_property
    def computed(self) -> dict[str, Array | float]:
        """The cut-off, which the noise may have decided, and a map's coefficients in the basis."""
        if self.waves is None:
            return {"cutoff": self.cutoff}
        map_of_all = np.cos(np.arange(self.shape.features))[:, None]
        return {"cutoff": self.cutoff, "basis": self.waves.coefficients(map_of_all)}

    @property
    def resolved(self) -> float:
        """Correlation of a usual network with its smooth part; 1 for regions and voxels."""
        places = self.shape.places
        return places.room.resolved(self.cutoff) if self.cutoff and places is not None else 1.0


class ProjectorPlan(OnBasis):
    """Public quantities of the one release of directions, at every site and at the centre.

    Parameters
    ----------
    asked : Directions
    shape : Shape
        With the noise of this release.
    """

    def __init__(self, asked: Directions, shape: Shape) -> None:
        self.asked = asked
        self.shape = shape

    @property
    def projectors(self) -> "ProjectorPlan":
        """Itself, as `mean_projector` asks for it."""
        return self

    @property
    def bound(self) -> Bound:
        """√K, of positive semidefinite matrices."""
        return Bound(math.sqrt(self.asked.kept), cone=True)

    @property
    def basis(self) -> BasisKind:
        """Which basis the study has.

        Raises StudyError if it can't be had from the study's features.
        """
        voxels = self.shape.places is not None
        if self.asked.basis == "smooth" and not voxels:
            raise StudyError(
                "field 'data.atlas': basis smooth requires voxels, and an atlas has regions. "
                "Choose basis atlas, or remove data.atlas."
            )
        if self.asked.basis == "atlas" and voxels:
            raise StudyError("field 'data.atlas': basis atlas requires an atlas. Name one.")
        return self.asked.basis or ("smooth" if voxels else "atlas")

    @cached_property
    def cutoff(self) -> float:
        """Shortest wavelength in mm, on a step of half a millimetre; 0 for regions and voxels.

        Raises StudyError if the study asks for finer waves than its voxels or mesh can hold.
        """
        places = self.shape.places
        kept = self.asked.kept
        if self.basis != "smooth" or places is None:
            return 0.0
        if self.asked.cutoff is not None:
            return checked_cutoff(places, self.asked.cutoff)
        steps = cutoffs_to(places, _MOST_ROWS, places.room.cutoff(_ROOM * kept))
        return best_cutoff(steps, places.room, kept, self.deviation)

    @cached_property
    def size(self) -> int:
        """d, dimensions of the basis."""
        return self.shape.features if self.waves is None else self.waves.size

    @property
    def deviation(self) -> float:
        """τ, standard deviation of the noise in each released number."""
        return self.shape.noise * self.bound.spread / sum(self.shape.units)

    @cached_property
    def cosines(self) -> Array:
        """Expected cosine of each of K usual directions with the truth; 0 for a hidden one."""
        return expected_cosines(self.asked.kept, self.size, self.deviation)

    @property
    def likely(self) -> int:
        """Directions that are expected to be found."""
        return int(np.count_nonzero(self.cosines >= self.asked.least))

    @property
    def hopeless(self) -> bool:
        """Whether too few directions are expected to be found."""
        return self.likely < min(_LEAST_SEEN, self.asked.kept)

    @cached_property
    def release(self) -> PlannedRelease:
        """The one release, with the whole budget.

        Raises StudyError if the unit is not a participant, or the basis doesn't fit the data.
        """
        kept = self.asked.kept
        volumes = self.shape.mean_length
        if self.shape.unit != "subject":
            raise StudyError(
                "field 'privacy.unit': directions of whole participants require unit subject, got "
                f"{self.shape.unit}. Set unit: subject."
            )
        if 1 < volumes <= kept:  # sizes are not known yet where it is 1
            raise StudyError(
                f"field '{self.asked.field}': {kept} directions can't be estimated from "
                f"participants with {volumes:.0f} volumes. Set fewer, or use longer series."
            )
        if kept >= self.size:
            raise StudyError(
                f"field '{self.asked.field}': must be less than the basis's {self.size} maps, got "
                f"{kept}. Set fewer, or use a finer basis."
            )
        if self.size > _MOST_ROWS:
            raise StudyError(
                f"The basis must have at most {_MOST_ROWS} maps, got {self.size}. Use a smooth "
                "basis with a longer cutoff, or an atlas with fewer regions."
            )
        entries = packed_size(self.size)
        return PlannedRelease(
            stage="networks",
            statistic="projectors",
            entries=entries,
            bound=self.bound,
            rounds=1,
            share=1.0,
        )


def checked_cutoff(places: AnyPlaces, cutoff: float) -> float:
    """Return a stated shortest wavelength in mm, checked against voxels or modes of a mesh.

    Raises StudyError if it is too short for them.
    """
    if cutoff >= places.finest:
        return cutoff
    if isinstance(places, SurfacePlaces):
        what = "the modes of the study's mesh"
        remedy = ""
    else:
        what = "voxels of this size"
        remedy = ", or a finer data.resolution"
    raise StudyError(
        f"The cutoff must be {places.finest:.4g} mm or more for {what}, got {cutoff:g} mm. Set a "
        f"longer cutoff{remedy}."
    )


def cutoffs_to(places: AnyPlaces, most: int, coarsest: float) -> Array:
    """Return wavelengths in mm of a plan, the finest with at most ``most`` dimensions."""
    finest = max(places.finest, places.room.cutoff(0.85 * most))
    ends = math.ceil(finest / _STEP), math.ceil(max(finest, coarsest) / _STEP) + 1
    return _STEP * np.arange(*ends)


class _WithProjectors(Protocol):
    @property
    def projectors(self) -> ProjectorPlan: ...


def mean_projector(plan: _WithProjectors, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean over participants of U Uᵀ, packed: d(d+1)/2 entries.

    A participant's K directions are those of Φᵀ X. Their projector has norm √K or less, and is
    scaled down to the bound. Φ, of voxels or of a mesh, makes it no larger: the directions are
    orthonormalized after it.
    """
    del query
    asked = plan.projectors.asked
    basis = plan.projectors.for_series
    size = data.features if basis is None else basis.shape[1]
    scale = min(1.0, bound.norm / math.sqrt(asked.kept))
    part = partial(
        _sum_projectors,
        size=size,
        basis=basis,
        global_signal=asked.global_signal,
        count=asked.kept,
        scale=scale,
    )
    return pack_symmetric(sum_over_persons(data, part, (size, size))) / len(data.lengths)


def _sum_projectors(
    blocks: Iterable[Array],
    *,
    size: int,
    basis: Array | None,
    global_signal: GlobalSignal,
    count: int,
    scale: float,
) -> Array:
    total = np.zeros((size, size), order="F")
    for directions in directions_of(blocks, basis, global_signal, count):
        if directions.shape[1]:
            total = add_second_moment(total, directions, scale)
    return total


def directions_of(
    blocks: Iterable[Array], basis: Array | None, global_signal: GlobalSignal, count: int
) -> Iterator[Array]:
    """Yield each participant's leading directions in the basis, d x K or fewer."""
    for series in series_in(blocks, basis, global_signal):
        yield leading_directions(series, count)


def series_in(
    blocks: Iterable[Array], basis: Array | None, global_signal: GlobalSignal
) -> Iterator[Array]:
    """Yield each participant's series in the basis of shared directions, d x T."""
    for block in blocks:
        if basis is not None and basis.dtype != block.dtype:
            basis = basis.astype(block.dtype)
        yield reduce_series(block, basis, global_signal)


@lru_cache(maxsize=4)  # public, and asked for by plan, site and centre
def smooth_basis(places: AnyPlaces, cutoff: float) -> SmoothBasis | SurfaceBasis:
    """Return the basis of a study; places are one object for each space."""
    if isinstance(places, SurfacePlaces):
        return SurfaceBasis(places.coordinates, places.modes, cutoff)
    return places.basis(places.coordinates, cutoff)
