"""Participants of an open cohort, whose data anyone may download: they count without noise.

A coordinator makes a file of them and puts it next to the study file. It is signed with the study,
and every party reads its own copy. An analysis uses it like any other public constant, so it costs
no privacy.
"""

from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from consortium.base.array import Array


@dataclass(frozen=True, eq=False)
class OpenTable:
    """Rows of an open cohort's table, one for each participant."""

    names: tuple[str, ...]
    """Names of the columns."""
    cells: tuple[tuple[str, ...], ...]
    """One row for each participant, in the order of ``names``."""
    digest: str
    """SHA-256 of the file."""
    source: str = ""
    """Where the data come from and under which terms, for people."""


@dataclass(frozen=True, eq=False)
class OpenDirections:
    """Leading spatial directions of an open cohort's participants, in a study's basis."""

    values: Array
    """Shape (n, d, K). Orthonormal columns for each participant."""
    sites: NDArray[Any]
    """Shape (n,). Name of the site where each was scanned."""
    cutoff: float
    """Shortest wavelength of the basis in mm; 0 for regions and voxels."""
    global_signal: Literal["keep", "remove"]
    """Whether the mean time series of all voxels was kept."""
    digest: str
    """SHA-256 of the file."""
    source: str = ""
    """Where the data come from and under which terms, for people."""

    @property
    def persons(self) -> int:
        """Number of participants."""
        return len(self.values)


OpenCohort = OpenTable | OpenDirections
