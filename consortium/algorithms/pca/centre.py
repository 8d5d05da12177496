"""capePCA: the principal subspace of all sites' data.

Source: dissertation Algorithm 4.1, corrected. Three solvers: ``moment`` releases one private second
moment; ``power`` releases its products with a few columns, and is for more features than a matrix
of all their pairs can have; ``subspace`` releases the directions that participants share. The
moment is released in coordinates that preserve its norm (half the matrix). So noise is drawn only
on free coordinates, and replacing one unit moves it by √2·B/n, not B/n. Volumes or subjects are
clipped to a public bound, not scaled by the data's own maximum.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from consortium.algorithms.assumed import round_deviation
from consortium.algorithms.base import Case, Expectation, Local, Query, Run, Table
from consortium.algorithms.pca.kernels.power_plan import expected_energies, expected_strengths
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
from consortium.algorithms.subspace_forecast import expect as expect_directions
from consortium.algorithms.subspace_forecast import sentences
from consortium.algorithms.worth import would_be_enough
from consortium.base.formatting import count
from consortium.kernels.noise_law import SymmetricNoise
from consortium.kernels.power import eigenpairs, orthonormal, start_basis

_LITTLE = 0.5
"""Fraction of the energy below which more than half of the result is noise."""
_NAME = "part of the leading directions' energy"


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

    def expect(self) -> tuple[Expectation, ...]:
        """Forecast the energy of released over leading directions, for a brain's spectrum.

        For a second moment, the agreement of each direction with the truth follows from the planned
        noise and the strength of its eigenvector. Solver subspace has the forecast of group ICA.
        """
        if self.solver == "subspace":
            return expect_directions(self.projectors)
        (planned,) = self.releases
        shape = self.shape
        size = self.parameters.components
        deviation = round_deviation(planned, shape)
        noise = Expectation("noise in a released number", deviation, rises=False)
        if self.solver == "power":
            once = round_deviation(replace(planned, rounds=1), shape)
            energy = expected_energies(shape.features, size, once, self.iterations)[-1]
            return Expectation(_NAME, energy), noise
        strengths = expected_strengths(shape.features, size)
        overlaps = np.nan_to_num(SymmetricNoise(shape.features, deviation).overlaps(strengths))
        share = float(overlaps @ strengths / strengths.sum())
        return Expectation(_NAME, max(share, size / shape.features)), noise

    def foretell(self) -> Table:
        """Return the forecast of the leading directions."""
        rows = tuple((line,) for line in self._sentences())
        return Table("What this study will see", ("forecast",), rows)

    def _sentences(self) -> tuple[str, ...]:
        if self.solver == "subspace":
            return sentences(self.projectors)
        energy = self.expect()[0].value
        shown = []
        shown.append(
            f"If variances fall as in usual resting data (as 1 over their number), the "
            f"{count(self.parameters.components, 'component')} have about {energy:.2f} of the "
            "energy of the true ones."
        )
        if energy < _LITTLE:
            enough = would_be_enough(
                self.shape,
                lambda less: type(self)(self.parameters, less).expect()[0].value >= _LITTLE,
            )
            shown.append(
                f"Warning: most of the result would be noise; {enough}, as would fewer components "
                "or features."
            )
        if self.solver == "power":
            shown.append(_of_products(self.iterations))
        return tuple(shown)

    def run(self) -> Run:
        """Ask for the second moment or its products, and return the leading eigenpairs."""
        if self.solver == "subspace":
            return (yield from self._directions_first())
        if self.solver == "power":
            return (yield from self._iterated())
        release = yield Query("pca", "second_moment")
        samples = sum(self.estimated_shape(release).samples)
        return subspace(release, self.parameters.components, samples)

    def _iterated(self) -> Run:
        """Iterate from a public random basis; the last product gives the eigenpairs.

        The first product's random columns estimate the total variance: E tr(Qᵀ A Q) = K/D tr A.
        """
        features = self.shape.features
        components = self.parameters.components
        total = math.nan
        before = None
        basis = start_basis(features, components, self.parameters.seed)
        for left in reversed(range(self.iterations)):
            release = yield Query("pca", "power", {"basis": basis})
            product = release.values.reshape(features, components)
            if math.isnan(total):
                total = features / components * float(np.sum(basis * product))
            if left:
                before = eigenpairs(product, release.deviation)[0]
                basis = orthonormal(product)
        samples = sum(self.estimated_shape(release).samples)
        return power_subspace(product, release, before, total, samples)

    def _directions_first(self) -> Run:
        """Ask for the directions, and for the variances along the leading ones."""
        size = self.parameters.components
        waves = self.projectors.waves
        release = yield Query("pca", "projectors")
        persons = sum(self.estimated_shape(release).units)
        weights, seen, limit = significant_directions(release, size, persons)
        basis = weights if waves is None else waves.times(weights)
        released = yield Query("variances", "variances", {"basis": basis})
        return axes_within(basis, released, seen, limit)


def _of_products(rounds: int) -> str:
    if rounds == 1:
        return (
            "With one product no single component can be found, because its stability is unknown."
        )
    return f"The budget is shared by {rounds} products, each with columns that the last one led to."
