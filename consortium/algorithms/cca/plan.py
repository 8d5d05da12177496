"""The releases of a canonical correlation analysis, from its parameters and public sizes.

Split of the budget: a stage whose noise has the spectral norm a with the whole budget has a/√p with
a fraction p of it. The sum of their squares, a₁²/p₁ + a₂²/p₂ + ..., is smallest for fractions
proportional to a. The mean has a fixed fraction, since its remaining error is corrected later.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from consortium.algorithms.base import (
    MOST_MOMENT_FEATURES,
    AnalysisPlan,
    Array,
    PlannedRelease,
    Shape,
)
from consortium.algorithms.cca.kernels.canonical import symmetric_edge
from consortium.algorithms.cca.parameters import CcaParameters
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.kernels.power import ITERATIONS
from consortium.privacy.bounds import Bound

LOCATION_BOUND = Bound(float(np.sqrt(1.25)))
"""Of `stacked_location` with views scaled to norms of 1/√V: vectors of norm 1, squares of 1/2."""


def reduction(view: str) -> str:
    """Return the stage that reduces a view."""
    return f"reduce-{view}"


class CcaPlan(AnalysisPlan[CcaParameters]):
    """A study's stages; raises StudyError if the parameters don't fit the views."""

    def __init__(self, parameters: CcaParameters, shape: Shape) -> None:
        super().__init__(parameters, shape)
        if len(self.shape.views) < 2:
            raise StudyError("field 'features': cca links views to each other; give at least two.")
        for name in ("bounds", "radii", "shares", "reduce"):
            _check_views(f"analysis.{name}", getattr(self.parameters, name), self.shape)
        if self.stacked > MOST_MOMENT_FEATURES:
            raise StudyError(
                f"field 'analysis.reduce': the views have {self.stacked} entries in all, and "
                f"their second moment is for at most {MOST_MOMENT_FEATURES}; name the views to "
                "reduce, and to how many components."
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


def _check_views(field: str, values: Mapping[str, float], shape: Shape) -> None:
    sizes = dict(shape.views)
    for view, value in values.items():
        if view not in sizes:
            known = ", ".join(sizes) or "none"
            raise StudyError(
                f"field '{field}.{view}': no view has this name. Choose one of {known}."
            )
        if value <= 0:
            raise StudyError(f"field '{field}.{view}': {value:g} is not positive; raise it.")
        if field.endswith("reduce") and value > sizes[view]:
            raise StudyError(
                f"field '{field}.{view}': {value} components can't be had of {sizes[view]} "
                "entries; ask for fewer or leave the view out."
            )
