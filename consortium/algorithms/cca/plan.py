"""What a canonical correlation analysis will release, from its parameters and public sizes.

How the budget is split: a stage whose noise has the spectral norm a with the whole budget has
a/√p with a part p of it. The sum of their squares, a₁²/p₁ + a₂²/p₂ + ..., is least for parts in
proportion to a. The mean has a fixed part: what is left of it is corrected later.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np

from consortium.algorithms.base import (
    MOST_MOMENT_FEATURES,
    AnalysisPlan,
    Argument,
    Array,
    Form,
    PlannedRelease,
    Shape,
)
from consortium.algorithms.cca.kernels.canonical import symmetric_edge
from consortium.algorithms.cca.parameters import CcaParameters
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.kernels.power import ITERATIONS
from consortium.privacy.bounds import Bound

T = TypeVar("T")
LOCATION_BOUND = Bound(float(np.sqrt(1.25)))
"""Of `stacked_location` with views scaled to norms of 1/√V: vectors of norm 1, squares of 1/2."""


def geometry_forms(features: int, views: int) -> dict[str, Form]:
    """Forms of the arguments that every statistic here has."""
    return {"centre": (features,), "norms": (views,), "factors": (views,)}


class CcaPlan(AnalysisPlan[CcaParameters]):
    """A study's stages.

    Raises
    ------
    StudyError
        If the parameters don't fit the views.
    """

    def __init__(self, parameters: CcaParameters, shape: Shape) -> None:
        super().__init__(parameters, shape)
        if len(self.shape.views) < 2:
            raise StudyError("field 'features': cca links views to each other; give at least two.")
        for name in ("bounds", "radii", "shares", "reduce"):
            _check_views(f"analysis.{name}", getattr(self.parameters, name), self.shape)
        if self.stacked > MOST_MOMENT_FEATURES:
            raise StudyError(
                f"field 'analysis.reduce': the views have {self.stacked} entries in all, and their "
                f"second moment is for {MOST_MOMENT_FEATURES} at most; name the views to reduce, "
                "and to how many components."
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
        """What site means add to the noise variance of a link, over that variance.

        The noise ε of a site's mean is σ/(√2 c π), and Σ π ε εᵀ adds σ⁴/(4 c⁴) Σ 1/π² to the
        variance σ²/2 of an entry between two views.
        """
        parameters, sizes = self.parameters, np.array(self.shape.units, dtype=np.float64)
        if self.places < 2:
            return 0.0
        bound = Bound(1.0 + parameters.constant**2, cone=True)
        part = (1.0 - parameters.centre_share) * self._last_part
        noise = self.shape.noise * bound.sensitivity(int(sizes.sum())) / np.sqrt(part)
        whole = float(np.square(sizes.sum() / sizes).sum())
        return float(noise**2 * whole / (2.0 * parameters.constant**4))

    def parts(self, present: Sequence[int]) -> Array:
        """Parts of the persons that each constant is one for; of a site that is missing, none."""
        sizes = np.zeros(len(self.shape.units))
        sizes[list(present)] = [self.shape.units[site] for site in present]
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
        parameters, views = self.parameters, len(self.shape.views)
        left = 1.0 - parameters.centre_share
        weights = self._weights
        parts = {stage: left * weight / sum(weights.values()) for stage, weight in weights.items()}
        found = []
        if parameters.centre_share:
            entries = self.shape.features + views
            part = parameters.centre_share
            found.append(
                PlannedRelease(
                    *("centre", "stacked_location", entries, LOCATION_BOUND, 1, part),
                    fixed=self.location,
                )
            )
        found += [self._reduction(name, parts[name]) for name in parameters.reduce]
        bases = {f"basis-{n}": (dict(self.shape.views)[n], k) for n, k in parameters.reduce.items()}
        bound = Bound(1.0 + parameters.constant**2, cone=True)
        entries = packed_size(self.stacked)
        last = {
            "constant": parameters.constant,
            "constants": self.places,
            **self.geometry(np.sqrt(self.shares)),
        }
        forms = {**self._carried_forms, **bases}
        found.append(
            PlannedRelease("cca", "stacked_moment", entries, bound, 1, parts[""], forms, fixed=last)
        )
        return tuple(found)

    @property
    def location(self) -> dict[str, Argument]:
        """What sites compute mean and spread with."""
        scales = self.bounds * np.sqrt(len(self.bounds))
        return {"centre": self._nowhere, "norms": self.bounds, "factors": 1.0 / scales}

    def geometry(self, scales: Array) -> dict[str, Argument]:
        """What of centre, norms and factors (``scales`` over norms) no release decides."""
        given, released = self.parameters.radii, self.parameters.centre_share > 0
        views = [name for name, _ in self.shape.views]
        if released and not given.keys() >= set(views):
            return {}
        sizes = zip(views, self.bounds, strict=True)
        radii = np.array([given.get(name, bound) for name, bound in sizes])
        found: dict[str, Argument] = {"norms": radii, "factors": scales / radii}
        return found if released else {**found, "centre": self._nowhere}

    @property
    def _nowhere(self) -> Array:
        return np.zeros(self.shape.features)

    def carried(self, geometry: Mapping[str, T]) -> dict[str, T]:
        """What of centre, norms and factors a release decides, so that queries carry it."""
        known = self.geometry(np.ones(len(self.shape.views)))
        return {name: value for name, value in geometry.items() if name not in known}

    @property
    def _carried_forms(self) -> dict[str, Form]:
        return self.carried(geometry_forms(self.shape.features, len(self.shape.views)))

    def by_power(self, name: str) -> bool:
        """Whether a view's products are released instead of its second moment."""
        fits = dict(self.shape.views)[name] <= MOST_MOMENT_FEATURES
        return (self.parameters.solver or ("moment" if fits else "power")) == "power"

    def view_arguments(self, name: str) -> dict[str, Argument]:
        """What study and sizes decide of a release of one view."""
        index = [view for view, _ in self.shape.views].index(name)
        return {"view": index, **self.geometry(np.ones(len(self.shape.views)))}

    def _reduction(self, name: str, part: float) -> PlannedRelease:
        size, kept = dict(self.shape.views)[name], self.parameters.reduce[name]
        stage, fixed = f"reduce-{name}", self.view_arguments(name)
        forms = self._carried_forms
        if not self.by_power(name):
            bound, entries = Bound(1.0, cone=True), packed_size(size)
            return PlannedRelease(stage, "view_moment", entries, bound, 1, part, forms, fixed=fixed)
        forms["basis"] = (size, kept)
        entries, bound = size * kept, Bound(1.0)
        return PlannedRelease(
            stage, "view_product", entries, bound, ITERATIONS, part, forms, fixed=fixed
        )

    @property
    def _last_part(self) -> float:
        """Part of what is left after the mean that the stacked moment has."""
        return self._weights[""] / sum(self._weights.values())

    @property
    def _weights(self) -> dict[str, float]:
        """Spectral norm of each stage's noise with the whole budget, up to one common factor.

        The stage that the empty name stands for is the last one.
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
            raise StudyError(f"field '{field}.{view}': there is no such view; there are {known}.")
        if value <= 0:
            raise StudyError(f"field '{field}.{view}': {value:g} is not positive; raise it.")
        if field.endswith("reduce") and value > sizes[view]:
            raise StudyError(
                f"field '{field}.{view}': {value} components can't be had of {sizes[view]} "
                "entries; ask for fewer or leave the view out."
            )
