"""capeCCA: linked directions of two or more views of the same participants.

Source: dissertation Algorithm 7.1, corrected: the second moment of the stacked views is released in
symmetric coordinates, replacing a participant moves it by √2·B/n, and vectors are clipped to a
public bound. In addition: a first release estimates the centre and the spread of the views, so the
noise is relative to differences of participants and not to their mean; a constant in the stacked
vector makes the rest of the mean part of the same release; the effect of the noise on eigenvalues
is removed (`kernels.canonical`); and more than two views are allowed.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from consortium.algorithms.base import (
    Array,
    Case,
    Local,
    Query,
    Release,
    Run,
)
from consortium.algorithms.cca.forecast import expect
from consortium.algorithms.cca.parameters import CcaParameters
from consortium.algorithms.cca.plan import CcaPlan, reduction
from consortium.algorithms.cca.result import Scaled, cca_result
from consortium.algorithms.cca.site import (
    stacked_location,
    stacked_moment,
    view_moment,
    view_product,
)
from consortium.algorithms.site_constants import SITE_MEANS
from consortium.kernels.moments import unpack_symmetric
from consortium.kernels.power import ITERATIONS, eigenpairs, orthonormal, start_basis

Arrays = Generator[Query, Release, dict[str, Array]]

ONE_CONSTANT = (
    "All sites have one constant together: differences between sites that show in two views count "
    "as a link. Set analysis.site_constants to change it."
)
COSTLY = (
    "With this number of participants and this ε, the noise of sites' means hides most links. "
    "With analysis.site_constants: false more are detected, but differences between sites count "
    "as links."
)
_VIEWS = (("faces", 3), ("erp", 2), ("age", 1))  # the examples' views


class Cca(CcaPlan):
    """A mean, if need be a PCA of some views, and one second moment of all views together."""

    name = "cca"
    title = "capeCCA"
    takes = "features"
    needs_means = False
    Parameters = CcaParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        "stacked_location": stacked_location,
        "view_moment": view_moment,
        "view_product": view_product,
        "stacked_moment": stacked_moment,
    }
    cases: ClassVar[Sequence[Case]] = (
        Case({"pairs": 2}, views=_VIEWS),
        Case({"pairs": 1, "site_constants": True}, views=_VIEWS),
        Case(
            {"pairs": 3, "centre_share": 0.0, "constant": 0.0, "shares": {"faces": 2}}, views=_VIEWS
        ),
        Case({"pairs": 1, "reduce": {"faces": 2, "erp": 1}, "radii": {"age": 2.0}}, views=_VIEWS),
        Case({"pairs": 1, "reduce": {"faces": 1}, "solver": "power"}, views=_VIEWS),
    )

    expect = expect

    def run(self) -> Run:
        """Estimate centre and radii, reduce views, and solve."""
        found = yield from find_centre(self)
        bases = yield from reduce_views(self, found)
        carried = {f"basis-{name}": basis for name, basis in bases.items()}
        release = yield Query("cca", "stacked_moment", found | carried)
        centre, radii = self.geometry(found)
        factors = np.sqrt(self.shares) / radii
        views = [
            Scaled(name, float(factor), size, bases.get(name))
            for (name, size), factor in zip(self.shape.views, factors, strict=True)
        ]
        return cca_result(release, views, centre, self)

    def remarks(self) -> tuple[str, ...]:
        """State which constants the model has, and whether they cost power."""
        if self.places > 1:
            return (SITE_MEANS, COSTLY) if self.costly else (SITE_MEANS,)
        if len(self.shape.units) > 1 and self.places:
            return (ONE_CONSTANT,)
        return ()


def find_centre(plan: CcaPlan) -> Arrays:
    """Ask for the mean and the spread of the views.

    Returns
    -------
    dict of str to array
        What later queries carry: ``centre``, length D, and ``radii``, norms to clip deviations from
        the centre to, length V.
    """
    if not plan.parameters.centre_share:
        return {}
    release = yield Query("centre", "stacked_location")
    features = plan.shape.features
    sizes = [size for _, size in plan.shape.views]
    parts = np.split(release.values[:features], np.cumsum(sizes)[:-1])
    spreads = _spreads(parts, release.values[features:], release.deviation)
    centre = np.concatenate([p * scale for p, scale in zip(parts, plan.scales, strict=True)])
    radii = np.minimum(plan.parameters.headroom * spreads * plan.scales, 2.0 * plan.bounds)
    found = {"centre": centre, "radii": radii}
    return {name: found[name] for name in plan.released}


def _spreads(parts: list[Array], squares: Array, deviation: float) -> Array:
    """Return root mean squared distances from the mean, of views with norms of 1/√V.

    The noise adds σ² D_v to the squared norm of a mean vector, which is subtracted. A spread has a
    lower limit that follows from the noise.
    """
    to_square = 2.0 / np.sqrt(len(parts))
    means = np.array([np.square(p).sum() - len(p) * deviation**2 for p in parts])
    unsure = deviation * np.sqrt(to_square**2 + 4.0 * np.maximum(means, 0.0))
    left = to_square * squares - np.maximum(means, 0.0)
    least = np.maximum(unsure, np.finfo(np.float64).eps)
    return np.asarray(np.sqrt(np.maximum(left, least)))


def reduce_views(plan: CcaPlan, found: dict[str, Array]) -> Arrays:
    """Ask for the second moment of every view to reduce, or for its products.

    Returns
    -------
    dict of str to array, each D_v x k_v
        Orthonormal columns, by view.
    """
    bases = {}
    for name, kept in plan.parameters.reduce.items():
        if plan.by_power(name):
            bases[name] = yield from _by_products(plan, name, found)
            continue
        release = yield Query(reduction(name), "view_moment", found)
        vectors = np.linalg.eigh(unpack_symmetric(release.values))[1]
        bases[name] = vectors[:, ::-1][:, :kept]
    return bases


def _by_products(
    plan: CcaPlan, name: str, found: dict[str, Array]
) -> Generator[Query, Release, Array]:
    size = dict(plan.shape.views)[name]
    kept = plan.parameters.reduce[name]
    basis = start_basis(size, kept, plan.parameters.seed)
    for left in reversed(range(ITERATIONS)):
        release = yield Query(reduction(name), "view_product", {**found, "basis": basis})
        product = release.values.reshape(size, kept)
        basis = orthonormal(product) if left else eigenpairs(product, release.deviation)[0]
    return basis
