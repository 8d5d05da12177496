"""capePCA: the principal subspace of all sites' data from one private second moment.

Source: dissertation Algorithm 4.1, corrected. The moment is released in
coordinates that keep its norm (half the matrix), so that noise is drawn only on
free coordinates; replacing one unit moves it by √2·B/n, not B/n; volumes or
subjects are clipped to a public bound, not scaled by the data's own maximum.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from scipy.linalg import eigh

from consortium.algorithms.base import (
    Array,
    Local,
    PlannedRelease,
    Query,
    Release,
    Result,
    Run,
    Shape,
    SiteData,
)
from consortium.errors import StudyError
from consortium.kernels.moments import (
    add_second_moment,
    clipped_volumes,
    pack_symmetric,
    packed_size,
    subject_scale,
    unpack_symmetric,
)
from consortium.privacy.bounds import Bound

_MOST_FEATURES = 6_000  # 18 million numbers: 144 MB a message and 288 MB in memory
_DEFAULT_BOUND = {"subject": 0.5, "timepoint": 2.0}


class PcaParameters(BaseModel):
    """Parameters of `pca`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    components: int = Field(ge=1, le=500, description="K, dimensions to keep.")
    bound: float | None = Field(
        default=None,
        gt=0,
        description="Clipping bound: unit subject, Frobenius norm of a subject's own second moment "
        "(its trace is 1 after standardize: subject); unit timepoint, squared norm of a volume. "
        "By default 0.5 and 2.",
    )


def _second_moment(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over units of the clipped second moment, packed: D(D+1)/2 entries."""
    del query
    total = np.zeros((data.features, data.features), order="F")
    for block in data.blocks():
        if data.unit == "subject":
            total = add_second_moment(total, block, subject_scale(block, bound.norm))
        else:
            total = add_second_moment(total, clipped_volumes(block, bound.norm), 1.0)
    units = len(data.lengths) if data.unit == "subject" else sum(data.lengths)
    return pack_symmetric(total) / units


class Pca:
    """One release of D(D+1)/2 numbers."""

    name = "pca"
    title = "capePCA"
    needs_means = False
    Parameters = PcaParameters
    statistics: ClassVar[Mapping[str, Local]] = {"second_moment": _second_moment}

    def releases(self, parameters: PcaParameters, shape: Shape) -> tuple[PlannedRelease, ...]:
        """One release with the whole budget."""
        if parameters.components > shape.features:
            raise StudyError(
                f"field 'analysis.components': {parameters.components} components can't be had "
                f"from {shape.features} features; ask for fewer or refine the resolution."
            )
        if shape.features > _MOST_FEATURES:
            raise StudyError(
                f"field 'data.resolution': the grid has {shape.features} voxels, and a second "
                f"moment is for {_MOST_FEATURES} at most; choose a coarser resolution or a "
                "smaller mask."
            )
        bound = Bound(parameters.bound or _DEFAULT_BOUND[shape.unit], cone=True)
        entries = packed_size(shape.features)
        return (PlannedRelease("pca", "second_moment", entries, bound, 1, 1.0),)

    def run(self, parameters: PcaParameters, shape: Shape) -> Run:
        """Ask for the second moment and return its leading eigenvectors and eigenvalues."""
        del shape
        release = yield Query("pca", "second_moment")
        return subspace(release, parameters.components)


def subspace(release: Release, components: int) -> Result:
    """Leading eigenpairs of a released second moment.

    Returns
    -------
    Result
        ``basis`` (D x K, orthonormal columns), ``eigenvalues`` (K, descending); ``noise_edge``
        is the spectral norm that noise alone would have: smaller eigenvalues mean nothing.
    """
    matrix = unpack_symmetric(release.values)
    size = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=(size - components, size - 1))
    arrays: dict[str, Array] = {"basis": vectors[:, ::-1], "eigenvalues": values[::-1]}
    numbers: dict[str, Any] = {
        "noise_edge": release.deviation * float(np.sqrt(2.0 * size)),
        "captured": float(values.sum()),
        "total": float(np.trace(matrix)),
    }
    return Result(arrays, numbers, maps="basis")
