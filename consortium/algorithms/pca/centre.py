"""capePCA: the principal subspace of all sites' data.

Source: dissertation Algorithm 4.1, corrected. Two solvers: ``moment`` releases one private
second moment; ``power`` (see `power`) releases its products with a few columns, and is for more
features than a matrix of all their pairs can have. The moment is released in
coordinates that keep its norm (half the matrix), so that noise is drawn only on
free coordinates; replacing one unit moves it by √2·B/n, not B/n; volumes or
subjects are clipped to a public bound, not scaled by the data's own maximum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from scipy.linalg import eigh

from consortium.algorithms.base import (
    Array,
    Captions,
    Local,
    PlannedRelease,
    Query,
    Release,
    Result,
    Run,
    Shape,
    SiteData,
    Takes,
)
from consortium.algorithms.pca.power import (
    DEFAULT_BOUND,
    choose_iterations,
    plan_power,
    power_product,
    run_power,
)
from consortium.errors import StudyError
from consortium.kernels.moments import (
    add_second_moment,
    pack_symmetric,
    packed_size,
    unpack_symmetric,
)
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_columns, clip_moment

_MOST_FEATURES = 6_000  # 18 million numbers: 144 MB a message and 288 MB in memory
_MOMENT_BOUND = {"subject": 0.5, "timepoint": 2.0}

Solver = Literal["moment", "power"]


class PcaParameters(BaseModel):
    """Parameters of `pca`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    components: int = Field(ge=1, le=500, description="K, dimensions to keep.")
    bound: float | None = Field(
        default=None,
        gt=0,
        description="Clipping bound: unit subject, Frobenius norm of a subject's own second moment "
        "(its trace is 1 after standardize: subject); unit timepoint, squared norm of a volume. "
        "By default 0.5 and 2. With solver power, Frobenius norm of the moment's product with "
        "orthonormal columns, which is at most as large; by default 0.3 and 1.",
    )
    solver: Solver | None = Field(
        default=None,
        description="'moment' releases the second moment at once; 'power' its products with K "
        "columns, round by round, without a number for every pair of features. By default "
        f"moment up to {_MOST_FEATURES} features, and power beyond.",
    )
    iterations: int | None = Field(
        default=None,
        ge=1,
        le=50,
        description="Solver power: products, each with an equal part of the stage's budget; by "
        "default as many as are best for the study's noise.",
    )
    seed: int = Field(
        default=0, ge=0, lt=2**32, description="Solver power: of the public random start."
    )


def _second_moment(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over units of the clipped second moment, packed: D(D+1)/2 entries."""
    del query
    total = np.zeros((data.features, data.features), order="F")
    for block in data.blocks():
        if data.unit == "subject":
            rows, scale = clip_moment(block, bound.norm)
        else:
            rows, scale = clip_columns(block, math.sqrt(bound.norm)), 1.0  # ‖x xᵀ‖ = ‖x‖²
        total = add_second_moment(total, rows, scale)
    units = len(data.lengths) if data.unit == "subject" else sum(data.lengths)
    return pack_symmetric(total) / units


class Pca:
    """One release of D(D+1)/2 numbers, or a few of D K."""

    name = "pca"
    title = "capePCA"
    takes: Takes = "any"
    needs_means = False
    Parameters = PcaParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        "second_moment": _second_moment,
        "power": power_product,
    }

    def releases(self, parameters: PcaParameters, shape: Shape) -> tuple[PlannedRelease, ...]:
        """One release with the whole budget, or as many as there are iterations."""
        size, features = parameters.components, shape.features
        if size > features:
            raise StudyError(
                f"field 'analysis.components': {size} components can't be had "
                f"from {features} features; ask for fewer or refine the resolution."
            )
        if _solver(parameters, shape) == "power":
            norm = parameters.bound or DEFAULT_BOUND[shape.unit]
            return (plan_power(features, size, norm, _iterations(parameters, shape)),)
        if features > _MOST_FEATURES:
            raise StudyError(
                f"field 'analysis.solver': the data have {features} features, and a second "
                f"moment is for {_MOST_FEATURES} at most; choose power, or a coarser resolution."
            )
        bound = Bound(parameters.bound or _MOMENT_BOUND[shape.unit], cone=True)
        return (PlannedRelease("pca", "second_moment", packed_size(features), bound, 1, 1.0),)

    def run(self, parameters: PcaParameters, shape: Shape) -> Run:
        """Ask for the second moment or its products, and return the leading eigenpairs."""
        size = parameters.components
        if _solver(parameters, shape) == "power":
            iterations = _iterations(parameters, shape)
            return (yield from run_power(shape.features, size, iterations, parameters.seed))
        release = yield Query("pca", "second_moment")
        return subspace(release, size)


def _iterations(parameters: PcaParameters, shape: Shape) -> int:
    bound = parameters.bound or DEFAULT_BOUND[shape.unit]
    return parameters.iterations or choose_iterations(shape, parameters.components, bound)


def _solver(parameters: PcaParameters, shape: Shape) -> Solver:
    return parameters.solver or ("moment" if shape.features <= _MOST_FEATURES else "power")


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
    return Result(arrays, numbers, maps="basis", captions=Captions(sign=True))
