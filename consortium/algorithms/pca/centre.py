"""capePCA: the principal subspace of all sites' data.

Source: dissertation Algorithm 4.1, corrected. Three solvers: ``moment`` releases one private
second moment; ``power`` releases its products with a few columns, and is for more
features than a matrix of all their pairs can have; ``subspace`` releases what persons'
leading directions have in common. The moment is released in
coordinates that keep its norm (half the matrix), so that noise is drawn only on
free coordinates; replacing one unit moves it by √2·B/n, not B/n; volumes or
subjects are clipped to a public bound, not scaled by the data's own maximum.
"""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from consortium.algorithms.base import Case, Local, Query, Run, Table
from consortium.algorithms.pca.forecast import expect, sentences
from consortium.algorithms.pca.parameters import PcaParameters
from consortium.algorithms.pca.plan import PcaPlan
from consortium.algorithms.pca.result import (
    axes_within,
    power_subspace,
    significant_directions,
    subspace,
)
from consortium.algorithms.pca.site import power_product, second_moment, variances_within
from consortium.algorithms.subspace import mean_projector
from consortium.kernels.power import eigenpairs, orthonormal, start_basis


class Pca(PcaPlan):
    """One release of D(D+1)/2 numbers, a few of D K, or one of d(d+1)/2 and a small one."""

    name = "pca"
    title = "capePCA"
    takes = "any"
    needs_means = False
    Parameters = PcaParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        "second_moment": second_moment,
        "power": power_product,
        "projectors": mean_projector,
        "variances": variances_within,
    }
    cases: ClassVar[Sequence[Case]] = (
        Case({"components": 2}),
        Case({"components": 6, "bound": 0.7}, "timepoint"),
        Case({"components": 2, "solver": "power"}),
        Case({"components": 6, "solver": "power", "iterations": 2, "bound": 0.4}, "timepoint"),
        Case({"components": 2, "solver": "subspace"}),
        Case({"components": 2, "solver": "subspace"}, mesh=True),
        Case({"components": 2, "solver": "subspace"}, voxels=True),
    )

    expect = expect

    def foretell(self) -> Table:
        """What the study is expected to show of the leading directions."""
        rows = tuple((line,) for line in sentences(self))
        return Table("What this study will see", ("forecast",), rows)

    def run(self) -> Run:
        """Ask for the second moment or its products, and return the leading eigenpairs."""
        if self.solver == "subspace":
            return (yield from self._directions_first())
        if self.solver == "power":
            return (yield from self._iterated())
        release = yield Query("pca", "second_moment")
        return subspace(release, self.parameters.components, sum(self.shape.samples))

    def _iterated(self) -> Run:
        """Iterate from a public random basis; the last product gives the eigenpairs.

        The first product's random columns tell the total variance: E tr(Qᵀ A Q) = K/D tr A.
        """
        features, components = self.shape.features, self.parameters.components
        total, before = math.nan, None
        basis = start_basis(features, components, self.parameters.seed)
        for left in reversed(range(self.iterations)):
            release = yield Query("pca", "power", {"basis": basis})
            product = release.values.reshape(features, components)
            if math.isnan(total):
                total = features / components * float(np.sum(basis * product))
            if left:
                before = eigenpairs(product, release.deviation)[0]
                basis = orthonormal(product)
        return power_subspace(product, release, before, total, sum(self.shape.samples))

    def _directions_first(self) -> Run:
        """Ask for the directions, and for the variances along the leading ones."""
        size, waves = self.parameters.components, self.projectors.waves
        release = yield Query("pca", "projectors")
        weights, seen, limit = significant_directions(release, size, sum(self.shape.units))
        basis = weights if waves is None else waves.times(weights)
        released = yield Query("variances", "variances", {"basis": basis})
        return axes_within(basis, released, seen, limit)
