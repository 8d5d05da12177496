"""Public information about the data of a study: sizes, views and places, but no values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.linalg import null_space, orth

from consortium.algorithms.open_cohort import OpenCohort, OpenTable
from consortium.base.array import Array
from consortium.base.formatting import begun
from consortium.errors import StudyError
from consortium.kernels.projector_forecast import MapExtent
from consortium.kernels.smooth_basis import SmoothBasis
from consortium.kernels.surface_modes import SurfaceModes
from consortium.privacy.bounds import Unit

_FINEST = 2.5  # voxel edges: with a shorter cut-off the maps are as many as the voxels


def units_of(unit: Unit, lengths: Sequence[int]) -> int:
    """Return the units of privacy of participants with given numbers of volumes."""
    return len(lengths) if unit == "subject" else sum(lengths)


@dataclass(frozen=True, eq=False)
class Places:
    """Public positions of a study's voxels or vertices."""

    coordinates: Array
    """Shape (D, 3). Centres of the features' voxels in mm."""
    volume: float
    """Volume of a voxel in mm³."""
    fine: Array | None = None
    """Shape (V, 3). Centres of the voxels of full-resolution maps. By default the same."""
    basis: Callable[[Array, float], SmoothBasis] = SmoothBasis
    """Smooth basis of a cut-off over the coordinates, where it is kept."""
    word: ClassVar[str] = "voxel"

    @property
    def finest(self) -> float:
        """Shortest wavelength in mm that voxels of this size hold."""
        return float(_FINEST * np.cbrt(self.volume))

    @property
    def room(self) -> MapExtent:
        """Volume of all voxels."""
        return MapExtent(self.volume * len(self.coordinates))


@dataclass(frozen=True, eq=False)
class SurfacePlaces:
    """Where the vertices of both hemispheres are: public."""

    coordinates: Array
    """Shape (V, 3). In mm, one hemisphere after the other."""
    make: Callable[[], tuple[SurfaceModes, ...]]
    """Works out each hemisphere's modes, which takes a minute for a mesh that is new."""
    word: ClassVar[str] = "vertex"
    fine: ClassVar[None] = None

    @cached_property
    def modes(self) -> tuple[SurfaceModes, ...]:
        """Each hemisphere's lowest modes, worked out when they are first asked for."""
        return self.make()

    @property
    def finest(self) -> float:
        """Shortest wavelength in mm of the modes.

        It is rounded to hundredths. So no party's last bits decide whether the shortest wave fits.
        """
        return math.ceil(100 * max(side.finest for side in self.modes)) / 100

    @property
    def room(self) -> MapExtent:
        """Area of both."""
        return MapExtent(sum(side.area for side in self.modes), 2)


AnyPlaces = Places | SurfacePlaces
"""Where the numbers of smooth maps are."""


@dataclass(frozen=True, eq=False)
class Templates:
    """Public maps that a study names, over its features."""

    values: Array
    """Shape (D, R)."""
    fine: Array | None = None
    """Shape (V, R). At the voxels of full-resolution maps. By default the same."""

    @property
    def count(self) -> int:
        """R."""
        return int(self.values.shape[1])


@dataclass(frozen=True)
class Extent:
    """Number of values of any participant, which is public."""

    features: int
    """D, rows of every data block (voxels in the study's mask, regions, entries of all views)."""
    voxels: int = 0
    """V, rows of a full-resolution map; 0 if they are the features."""
    views: tuple[tuple[str, int], ...] = ()
    """Name and number of entries of every view of a study of feature vectors."""
    places: AnyPlaces | None = field(default=None, compare=False, repr=False)
    """Where the features are, if they are voxels or vertices."""
    templates: Templates | None = field(default=None, compare=False, repr=False)
    """Public maps that the analysis names."""
    image_places: AnyPlaces | None = field(default=None, compare=False, repr=False)
    """Where the entries of a view of images are, if they are voxels."""
    known_sums: tuple[tuple[range, float], ...] = field(default=(), repr=False)
    """Entries whose sum is the same number for all participants, and the number."""
    region_places: Array | None = field(default=None, compare=False, repr=False)
    """Shape (D, 3). Centres in mm of an atlas's regions, if these are the features."""
    surface_places: Mapping[str, SurfacePlaces] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Places of the entries of each view of surfaces, by the name of the view."""
    open_cohort: OpenCohort | None = field(default=None, compare=False, repr=False)
    """Participants of an open cohort that the analysis names."""

    def shape(self, subjects: Sequence[int], samples: Sequence[int], unit: Unit) -> Shape:
        """Add the sites' sizes."""
        return Shape(
            features=self.features,
            subjects=tuple(subjects),
            samples=tuple(samples),
            unit=unit,
            voxels=self.voxels,
            views=self.views,
            places=self.places,
            templates=self.templates,
            image_places=self.image_places,
            known_sums=self.known_sums,
            region_places=self.region_places,
            surface_places=self.surface_places,
            open_cohort=self.open_cohort,
        )


@dataclass(frozen=True)
class Shape:
    """Public information about the data, which is never derived from values.

    Examples
    --------
    >>> views = (("clinic", 3), ("age", 1))
    >>> shape = Shape(4, (30, 20), (30, 20), "subject", views=views)
    >>> shape.units, shape.view_slice("clinic", "analysis.view"), shape.mean_length
    ((30, 20), slice(0, 3, None), 1.0)
    >>> shape.single_entry("age", "analysis.target", "name a view of one number")
    3
    """

    features: int
    """D, rows of every data block (voxels in the study's mask)."""
    subjects: tuple[int, ...]
    """M_s, participants per site, in the order of the study's sites."""
    samples: tuple[int, ...]
    """N_s, volumes per site."""
    unit: Unit
    voxels: int = 0
    """V, rows of a full-resolution map; 0 if they are the features."""
    views: tuple[tuple[str, int], ...] = ()
    """Name and number of entries of every view of a study of feature vectors, which stacks them:
    their sum is D."""
    sites: tuple[str, ...] = ()
    """Names of the sites that take part; a plan fills them in."""
    noise: float = 0.0
    """Standard deviation over sensitivity of a release that uses the whole budget, set by a plan; 0
    means no noise."""
    alone: float = 0.0
    """The same of each site's own answer, released by itself."""
    places: AnyPlaces | None = field(default=None, compare=False, repr=False)
    """Where the features are, if they are voxels or vertices."""
    templates: Templates | None = field(default=None, compare=False, repr=False)
    """Public maps that the analysis names."""
    image_places: AnyPlaces | None = field(default=None, compare=False, repr=False)
    """Where the entries of a view of images are, if they are voxels."""
    known_sums: tuple[tuple[range, float], ...] = field(default=(), repr=False)
    """Entries whose sum is the same number for all participants, and the number."""
    region_places: Array | None = field(default=None, compare=False, repr=False)
    """Shape (D, 3). Centres in mm of an atlas's regions, if these are the features."""
    surface_places: Mapping[str, SurfacePlaces] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Places of the entries of each view of surfaces, by the name of the view."""
    open_cohort: OpenCohort | None = field(default=None, compare=False, repr=False)
    """Participants of an open cohort that the analysis names."""
    labels: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """Names of all views' entries, empty where there is none; a plan fills them in."""

    @property
    def open_table(self) -> OpenTable | None:
        """Table of the open cohort that the analysis names; None if there is none."""
        return self.open_cohort if isinstance(self.open_cohort, OpenTable) else None

    @property
    def entry_names(self) -> list[tuple[str, str | int]]:
        """Every entry's view, and its name, or its number in the view from 1 if it has no name."""
        pairs = [(view, k + 1) for view, size in self.views for k in range(size)]
        labels = self.labels or ("",) * len(pairs)
        return [(v, label or k) for (v, k), label in zip(pairs, labels, strict=True)]

    @property
    def map_rows(self) -> int:
        """Rows of a full-resolution map."""
        return self.voxels or self.features

    @property
    def units(self) -> tuple[int, ...]:
        """Units of privacy per site."""
        return self.subjects if self.unit == "subject" else self.samples

    def with_units(self, units: Sequence[float]) -> Shape:
        """Return the same with other numbers of units, rounded and at least 1."""
        lengths = [v / s for v, s in zip(self.samples, self.subjects, strict=True)]
        subjects = units
        if self.unit == "timepoint":
            subjects = [many / length for many, length in zip(units, lengths, strict=True)]
        samples = [many * length for many, length in zip(subjects, lengths, strict=True)]
        return replace(
            self,
            subjects=tuple(max(1, round(many)) for many in subjects),
            samples=tuple(max(1, round(many)) for many in samples),
        )

    @property
    def mean_length(self) -> float:
        """Mean number of volumes per participant."""
        return sum(self.samples) / sum(self.subjects)

    def view_slice(self, name: str, field: str) -> slice:
        """Return the entries of a view within a participant's vector.

        Raises StudyError if the study has no such view.

        Parameters
        ----------
        name : str
            The view's name in the study.
        field : str
            Field of the study that names it, for the message.
        """
        start = 0
        for view, size in self.views:
            if view == name:
                return slice(start, start + size)
            start += size
        known = ", ".join(view for view, _ in self.views) or "none"
        raise StudyError(
            f"field '{field}': must be the name of a view ({known}), got '{name}'. Correct the "
            "name."
        )

    def single_entry(self, name: str, field: str, remedy: str) -> int:
        """Return the place of a view of one entry within a participant's vector.

        Raises StudyError if the study has no such view, or it has more entries.

        Parameters
        ----------
        name, field
            As in `view_slice`.
        remedy : str
            What to do if the view has more, for the message.
        """
        found = self.view_slice(name, field)
        if found.stop - found.start != 1:
            raise StudyError(
                f"field '{field}': view '{name}' has {found.stop - found.start} entries. "
                f"{begun(remedy)}."
            )
        return int(found.start)

    def still_directions(self, target: int, constant: bool) -> Array:
        """Return directions of the entries but ``target`` along which participants don't differ.

        They can't be distinguished from a model's constant, or from nothing if it has none.

        Returns
        -------
        array, shape (D - 1, R)
            Independent columns.
        """
        sums = [(one, value) for one, value in self.known_sums if target not in one]
        columns = np.zeros((self.features, len(sums)))
        for number, (entries, _) in enumerate(sums):
            columns[entries, number] = 1.0
        columns = np.delete(columns, target, axis=0)
        if not constant and sums:
            columns = columns @ null_space(np.array([[value for _, value in sums]]))
        return np.asarray(orth(columns)) if columns.size else columns
