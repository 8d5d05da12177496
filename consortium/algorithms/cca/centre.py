"""capeCCA: linked directions of two or more views of the same persons.

Source: dissertation Algorithm 7.1, corrected: the second moment of the stacked views is released in
symmetric coordinates, replacing a person moves it by √2·B/n, and vectors are clipped to a public
bound. Beyond it: a first release finds the centre and the spread of the views, so that the noise
is measured against how persons differ and not against what they share; a constant in the stacked
vector makes what is left of the mean part of the same release; what the noise does to eigenvalues
is taken out (`kernels.canonical`); and more than two views are allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from consortium.algorithms.base import (
    Argument,
    Local,
    PlannedRelease,
    Query,
    Run,
    Shape,
    Takes,
)
from consortium.algorithms.cca.plan import CcaParameters, CcaPlan
from consortium.algorithms.cca.result import Scaled, cca_result
from consortium.algorithms.cca.site import (
    stacked_location,
    stacked_moment,
    view_moment,
    view_product,
)
from consortium.algorithms.cca.stages import find_centre, reduce_views


class Cca:
    """A mean, if need be a PCA of some views, and one second moment of all views together."""

    name = "cca"
    title = "capeCCA"
    takes: Takes = "features"
    needs_means = False
    Parameters = CcaParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        "stacked_location": stacked_location,
        "view_moment": view_moment,
        "view_product": view_product,
        "stacked_moment": stacked_moment,
    }

    def releases(self, parameters: CcaParameters, shape: Shape) -> tuple[PlannedRelease, ...]:
        """Mean and spread; a PCA for each view to reduce; the stacked moment."""
        return CcaPlan(parameters, shape).releases

    def run(self, parameters: CcaParameters, shape: Shape) -> Run:
        """Find centre and radii, reduce what is to be reduced, and solve."""
        plan = CcaPlan(parameters, shape)
        centre, radii = yield from find_centre(plan)
        bases = yield from reduce_views(plan, centre, radii)
        factors = np.sqrt(plan.shares) / radii
        arguments: dict[str, Argument] = {"centre": centre, "norms": radii, "factors": factors}
        arguments["constant"] = parameters.constant
        arguments |= {f"basis-{name}": basis for name, basis in bases.items()}
        release = yield Query("cca", "stacked_moment", arguments)
        views = [
            Scaled(name, float(factor), size, bases.get(name))
            for (name, size), factor in zip(shape.views, factors, strict=True)
        ]
        return cca_result(release, views, centre, parameters, sum(shape.subjects))
