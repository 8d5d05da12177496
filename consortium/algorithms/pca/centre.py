"""capePCA: the principal subspace of all sites' data.

Source: dissertation Algorithm 4.1, corrected. Two solvers: ``moment`` releases one private
second moment; ``power`` releases its products with a few columns, and is for more
features than a matrix of all their pairs can have. The moment is released in
coordinates that keep its norm (half the matrix), so that noise is drawn only on
free coordinates; replacing one unit moves it by √2·B/n, not B/n; volumes or
subjects are clipped to a public bound, not scaled by the data's own maximum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from consortium.algorithms.base import (
    Case,
    Local,
    PlannedRelease,
    Query,
    Run,
    Shape,
    Takes,
)
from consortium.algorithms.pca.parameters import PcaParameters
from consortium.algorithms.pca.plan import chosen_solver, plan_releases, planned_iterations
from consortium.algorithms.pca.result import power_subspace, subspace
from consortium.algorithms.pca.site import power_product, second_moment
from consortium.kernels.power import orthonormal, start_basis


class Pca:
    """One release of D(D+1)/2 numbers, or a few of D K."""

    name = "pca"
    title = "capePCA"
    takes: Takes = "any"
    needs_means = False
    Parameters = PcaParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        "second_moment": second_moment,
        "power": power_product,
    }
    cases: ClassVar[Sequence[Case]] = (
        Case({"components": 2}),
        Case({"components": 6, "bound": 0.7}, "timepoint"),
        Case({"components": 2, "solver": "power"}),
        Case({"components": 6, "solver": "power", "iterations": 2, "bound": 0.4}, "timepoint"),
    )

    def releases(self, parameters: PcaParameters, shape: Shape) -> tuple[PlannedRelease, ...]:
        """One release with the whole budget, or as many as there are iterations."""
        return plan_releases(parameters, shape)

    def run(self, parameters: PcaParameters, shape: Shape) -> Run:
        """Ask for the second moment or its products, and return the leading eigenpairs."""
        size = parameters.components
        if chosen_solver(parameters, shape) == "power":
            iterations = planned_iterations(parameters, shape)
            return (yield from run_power(shape, size, iterations, parameters.seed))
        release = yield Query("pca", "second_moment")
        return subspace(release, size, sum(shape.samples))


def run_power(shape: Shape, components: int, iterations: int, seed: int) -> Run:
    """Iterate from a public random basis; the last product gives the eigenpairs.

    The first product's random columns tell the total variance: E tr(Qᵀ A Q) = K/D tr A.

    Returns
    -------
    Result
        As `subspace`; ``total`` is not known.
    """
    features, total = shape.features, math.nan
    basis = start_basis(features, components, seed)
    for left in reversed(range(iterations)):
        release = yield Query("pca", "power", {"basis": basis})
        product = release.values.reshape(features, components)
        if math.isnan(total):
            total = features / components * float(np.sum(basis * product))
        if left:
            basis = orthonormal(product)
    return power_subspace(product, release, total, sum(shape.samples))
