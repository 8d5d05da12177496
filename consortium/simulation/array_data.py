"""Data in memory as an algorithm sees a site's data."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import (
    AnyPlaces,
    Extent,
    Places,
    Resolution,
    SurfacePlaces,
    Templates,
    units_of,
)
from consortium.algorithms.open_cohort import OpenCohort
from consortium.base.array import Array
from consortium.base.position_hashes import hashes_of_positions
from consortium.kernels.tiles import reduced_block


class ArrayData:
    """A site whose subjects' blocks are arrays.

    Parameters
    ----------
    subjects : sequence of array, each D x T_m
    unit : {'subject', 'timepoint'}
    fine : sequence of array, each V x T_m, optional
        The same subjects at full resolution. By default the same arrays.
    views : sequence of (str, int), optional
        Names and sizes of the views that the features are made of.
    places : Places or SurfacePlaces, optional
        Where the features are, if they are voxels or vertices.
    templates : Templates, optional
        Public maps that the analysis names.
    image_places : Places, optional
        Where the entries of a view of images are, if they are voxels.
    region_places : array, shape (D, 3), optional
        Centres of an atlas's regions in mm, if these are the features.
    surface_places : mapping, optional
        Of each view of surfaces by name, where its entries are.
    open_cohort : OpenTable or OpenDirections, optional
        Participants of an open cohort that the analysis names.
    person_hashes : array of uint64, optional
        One number per subject, in the same order. By default that of the subject's position.
    """

    def __init__(
        self,
        subjects: Sequence[Array],
        unit: Literal["subject", "timepoint"] = "subject",
        fine: Sequence[Array] | None = None,
        views: Sequence[tuple[str, int]] = (),
        places: AnyPlaces | None = None,
        templates: Templates | None = None,
        image_places: Places | None = None,
        region_places: Array | None = None,
        surface_places: Mapping[str, SurfacePlaces] | None = None,
        open_cohort: OpenCohort | None = None,
        person_hashes: NDArray[np.uint64] | None = None,
    ) -> None:
        self._subjects = subjects
        self._fine = subjects if fine is None else fine
        self._basis: Array | None = None
        self._reduced: Array = np.zeros((0, 0))
        self.unit: Literal["subject", "timepoint"] = unit
        # Blocks of units with several rows have these under each other.
        self.features = sum(size for _, size in views) or len(subjects[0])
        self.voxels = len(self._fine[0]) if len(self._fine) else self.features
        where = (places, templates, image_places)
        self.extent = Extent(
            self.features,
            self.voxels,
            tuple(views),
            *where,
            region_places=region_places,
            surface_places=surface_places or {},
            open_cohort=open_cohort,
        )
        self.lengths = [block.shape[1] for block in subjects]
        self._hashes = person_hashes

    @property
    def person_hashes(self) -> NDArray[np.uint64]:
        """One number per subject."""
        if self._hashes is not None:
            return self._hashes
        return hashes_of_positions(len(self.lengths))

    @property
    def units(self) -> int:
        """Units of privacy."""
        return units_of(self.unit, self.lengths)

    def blocks(self, resolution: Resolution = "features") -> Iterator[Array]:
        """Yield each subject's block."""
        yield from self._fine if resolution == "maps" else self._subjects

    def table(self) -> Array:
        """Return all subjects' blocks side by side."""
        return np.hstack(list(self._subjects))

    def reduced(self, basis: Array) -> Array:
        """Return ``basis.T @ X`` for all subjects side by side (R x N_s), the last one kept."""
        if self._basis is None or not np.array_equal(self._basis, basis):
            self._reduced = np.hstack(
                [reduced_block(basis, block, self.unit) for block in self._subjects]
            )
            self._basis = basis.copy()
        return self._reduced
