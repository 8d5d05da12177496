"""capeCCA: linked directions of two or more views of the same participants.

Source: dissertation Algorithm 7.1, corrected: the second moment of the stacked views is released in
symmetric coordinates, replacing a participant moves it by √2·B/n, and vectors are clipped to a
public bound. In addition, a first release estimates the centre and the spread of the views, so the
noise is relative to differences of participants and not to their mean. A constant in the stacked
vector makes the rest of the mean part of the same release. The effect of the noise on eigenvalues
is removed (`kernels.canonical`). More than two views are allowed.

Split of the budget: a stage whose noise has the spectral norm a with the whole budget has a/√p with
a fraction p of it. The sum of their squares, a₁²/p₁ + a₂²/p₂ + ..., is smallest for fractions
proportional to a. The mean has a fixed fraction, since its remaining error is corrected later.
"""

from collections.abc import Generator, Mapping, Sequence
from functools import cached_property

import numpy as np

from consortium.algorithms.base import (
    MOST_MOMENT_FEATURES,
    AnalysisPlan,
    Array,
    Case,
    PlannedRelease,
    Query,
    Release,
    Run,
    Shape,
)
from consortium.algorithms.cca.forecast import expect
from consortium.algorithms.cca.kernels.canonical import symmetric_edge
from consortium.algorithms.cca.parameters import CcaParameters
from consortium.algorithms.cca.result import Scaled, cca_result
from consortium.algorithms.cca.site import (
    reduction,
    stacked_location,
    stacked_moment,
    view_moment,
    view_product,
)
from consortium.algorithms.site_constants import SITE_MEANS
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size, unpack_symmetric
from consortium.kernels.power import ITERATIONS, eigenpairs, orthonormal, start_basis
from consortium.privacy.bounds import Bound

LOCATION_BOUND = Bound(float(np.sqrt(1.25)))
"""Of `stacked_location` with views scaled to norms of 1/√V: vectors of norm 1, squares of 1/2."""


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


class Cca(AnalysisPlan[CcaParameters]):
    """A mean, if need be a PCA of some views, and one second moment of all views together."""

    name = "cca"
    title = "capeCCA"
    takes = "features"
    needs_means = False
    Parameters = CcaParameters
    statistics = {
        "stacked_location": stacked_location,
        "view_moment": view_moment,
        "view_product": view_product,
        "stacked_moment": stacked_moment,
    }
    cases = (
        Case({"pairs": 2}, views=_VIEWS),
        Case({"pairs": 1, "site_constants": True}, views=_VIEWS),
        Case(
            {"pairs": 3, "centre_share": 0.0, "constant": 0.0, "shares": {"faces": 2}}, views=_VIEWS
        ),
        Case({"pairs": 1, "reduce": {"faces": 2, "erp": 1}, "radii": {"age": 2.0}}, views=_VIEWS),
        Case({"pairs": 1, "reduce": {"faces": 1}, "solver": "power"}, views=_VIEWS),
    )

    expect = expect

    def __init__(self, parameters: CcaParameters, shape: Shape) -> None:
        super().__init__(parameters, shape)
        if len(self.shape.views) < 2:
            raise StudyError(
                "field 'features': cca requires at least two views, because it links views with "
                "each other. Add a view."
            )
        for name in ("bounds", "radii", "shares", "reduce"):
            _check_views(f"analysis.{name}", getattr(self.parameters, name), self.shape)
        if self.stacked > MOST_MOMENT_FEATURES:
            raise StudyError(
                f"field 'analysis.reduce': the views must have at most {MOST_MOMENT_FEATURES} "
                f"entries together, got {self.stacked}. Name the views to reduce, and the number "
                "of components of each."
            )

    @property
    def sizes(self) -> dict[str, int]:
        """Entries of every view, as they are stacked."""
        return dict(self.shape.views) | self.parameters.reduce

    @property
    def stacked(self) -> int:
        """Entries of the stacked vector, with its constants."""
        return sum(self.sizes.values()) + self.places

    @cached_property
    def places(self) -> int:
        """S, constants: one for each site, one for all, or none."""
        if not self.parameters.constant:
            return 0
        return len(self.shape.units) if self.parameters.site_constants else 1

    @property
    def costly(self) -> bool:
        """Whether constants of sites more than double the noise of a link."""
        return self.means_noise > 1.0

    @property
    def means_noise(self) -> float:
        """Increase of the noise variance of a link by site means, over that variance.

        The noise ε of a site's mean is σ/(√2 c π), and Σ π ε εᵀ adds σ⁴/(4 c⁴) Σ 1/π² to the
        variance σ²/2 of an entry between two views.
        """
        parameters = self.parameters
        sizes = np.array(self.shape.units, dtype=np.float64)
        if self.places < 2:
            return 0.0
        bound = Bound(1.0 + parameters.constant**2, cone=True)
        part = (1.0 - parameters.centre_share) * self._last_part
        noise = self.shape.noise * bound.sensitivity(int(sizes.sum())) / np.sqrt(part)
        whole = float(np.square(sizes.sum() / sizes).sum())
        return float(noise**2 * whole / (2.0 * parameters.constant**4))

    def parts(self, present: Sequence[int], units: Sequence[float] | Array) -> Array:
        """Return the fraction of participants with each constant; 0 for a missing site.

        Parameters
        ----------
        units : sequence of float
            Participants of the sites that are present.
        """
        sizes = np.zeros(len(self.shape.units))
        sizes[list(present)] = units
        return sizes / sizes.sum() if self.places > 1 else np.ones(self.places)

    @property
    def bounds(self) -> Array:
        """Largest norm of each view's vectors."""
        return np.array([self.parameters.bounds.get(name, 1.0) for name, _ in self.shape.views])

    @cached_property
    def shares(self) -> Array:
        """Parts of the squared bound, adding up to one."""
        given = self.parameters.shares
        even = np.array([given.get(name, size ** (1 / 3)) for name, size in self.sizes.items()])
        return np.asarray(even / even.sum())

    @property
    def releases(self) -> tuple[PlannedRelease, ...]:
        """Every release with its part of the budget."""
        parameters = self.parameters
        views = len(self.shape.views)
        left = 1.0 - parameters.centre_share
        weights = self._weights
        parts = {stage: left * weight / sum(weights.values()) for stage, weight in weights.items()}
        found = []
        if parameters.centre_share:
            entries = self.shape.features + views
            part = parameters.centre_share
            what = ("centre", "stacked_location", entries, LOCATION_BOUND, 1, part)
            found.append(PlannedRelease(*what))
        found += [self._reduction(name, parts[name]) for name in parameters.reduce]
        bases = {f"basis-{n}": (dict(self.shape.views)[n], k) for n, k in parameters.reduce.items()}
        bound = Bound(1.0 + parameters.constant**2, cone=True)
        entries = packed_size(self.stacked)
        forms = {**self.released, **bases}
        found.append(
            PlannedRelease(
                stage="cca",
                statistic="stacked_moment",
                entries=entries,
                bound=bound,
                rounds=1,
                share=parts[""],
                arguments=forms,
            )
        )
        return tuple(found)

    @property
    def scales(self) -> Array:
        """What views are divided by for the first release."""
        return np.asarray(self.bounds * np.sqrt(len(self.bounds)))

    @cached_property
    def radii(self) -> Array:
        """Largest distances from the centre, by view; no number for those that are released."""
        unknown = np.full_like(self.bounds, np.nan) if self.parameters.centre_share else self.bounds
        views = zip(self.shape.views, unknown, strict=True)
        return np.array([self.parameters.radii.get(name, radius) for (name, _), radius in views])

    @property
    def released(self) -> dict[str, tuple[int, ...]]:
        """What of centre and radii queries carry."""
        if not self.parameters.centre_share:
            return {}
        centre: dict[str, tuple[int, ...]] = {"centre": (self.shape.features,)}
        return centre | ({"radii": self.radii.shape} if np.isnan(self.radii).any() else {})

    def geometry(self, arguments: Mapping[str, Array]) -> tuple[Array, Array]:
        """Centre and radii, as in a query."""
        radii = np.where(np.isnan(self.radii), arguments.get("radii", self.radii), self.radii)
        return arguments.get("centre", np.zeros(self.shape.features)), radii

    def by_power(self, name: str) -> bool:
        """Return whether a view's products are released instead of its second moment."""
        fits = dict(self.shape.views)[name] <= MOST_MOMENT_FEATURES
        return (self.parameters.solver or ("moment" if fits else "power")) == "power"

    def _reduction(self, name: str, part: float) -> PlannedRelease:
        size = dict(self.shape.views)[name]
        kept = self.parameters.reduce[name]
        if not self.by_power(name):
            what = (reduction(name), "view_moment", packed_size(size), Bound(1.0, cone=True))
            return PlannedRelease(*what, 1, part, self.released)
        what = (reduction(name), "view_product", size * kept, Bound(1.0))
        return PlannedRelease(*what, ITERATIONS, part, {**self.released, "basis": (size, kept)})

    @property
    def _last_part(self) -> float:
        """Fraction of the budget after the mean for the stacked moment."""
        return self._weights[""] / sum(self._weights.values())

    @property
    def _weights(self) -> dict[str, float]:
        """Spectral norm of each stage's noise with the whole budget, up to one common factor.

        The stage with an empty name is the last one.
        """
        weights = {}
        for name, kept in self.parameters.reduce.items():
            size = dict(self.shape.views)[name]
            if self.by_power(name):
                weights[name] = 2.0 * np.sqrt(ITERATIONS) * (np.sqrt(size) + np.sqrt(kept))
            else:
                weights[name] = np.sqrt(2.0) * symmetric_edge(size, 1.0)
        edges = [symmetric_edge(size, 1.0) for size in self.sizes.values()]
        weights[""] = float(np.sqrt(2.0) * np.linalg.norm(np.array(edges) / self.shares))
        return weights

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


def _check_views(field: str, values: Mapping[str, float], shape: Shape) -> None:
    sizes = dict(shape.views)
    for view, value in values.items():
        if view not in sizes:
            known = ", ".join(sizes) or "none"
            raise StudyError(
                f"field '{field}.{view}': the study has no view of this name. Choose one of "
                f"{known}."
            )
        if value <= 0:
            raise StudyError(
                f"field '{field}.{view}': must be greater than 0, got {value:g}. Raise it."
            )
        if field.endswith("reduce") and value > sizes[view]:
            raise StudyError(
                f"field '{field}.{view}': must be at most the view's {sizes[view]} entries, got "
                f"{value}. Lower it, or remove the view from this field."
            )


def find_centre(plan: Cca) -> Arrays:
    """Ask for the mean and the spread of the views of `cca`.

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


def reduce_views(plan: Cca, found: dict[str, Array]) -> Arrays:
    """Ask for the second moment of every view that `cca` reduces, or for its products.

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


def _by_products(plan: Cca, name: str, found: dict[str, Array]) -> Generator[Query, Release, Array]:
    size = dict(plan.shape.views)[name]
    kept = plan.parameters.reduce[name]
    basis = start_basis(size, kept, plan.parameters.seed)
    for left in reversed(range(ITERATIONS)):
        release = yield Query(reduction(name), "view_product", {**found, "basis": basis})
        product = release.values.reshape(size, kept)
        basis = orthonormal(product) if left else eigenpairs(product, release.deviation)[0]
    return basis
