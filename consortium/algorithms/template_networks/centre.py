"""Networks by templates: mean maps of all sites' participants, and their difference from templates.

Dual regression (Beckmann et al. 2009) gives each participant's own maps of networks whose templates
are public. Their mean is released once. The mean correlations between the networks' time series
are released with a small share of the budget. The rest is post-processing: each map is shrunk to
its template according to the known noise, so it is never worse than the better of the two. A map
about which the release adds nothing to its template is reported as such.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from consortium.algorithms.base import (
    AnalysisPlan,
    AnyPlaces,
    Array,
    Case,
    Expectation,
    PlannedRelease,
    Query,
    Run,
    Table,
    Templates,
)
from consortium.algorithms.subspace import OnBasis, checked_cutoff, cutoffs_to, smooth_basis
from consortium.algorithms.template_networks.kernels.template_shrinkage import Agreement
from consortium.algorithms.template_networks.parameters import TemplateNetworksParameters
from consortium.algorithms.template_networks.result import make_result
from consortium.algorithms.template_networks.site import mean_connectivity, mean_maps
from consortium.algorithms.worth import would_be_enough
from consortium.base.formatting import count, number
from consortium.errors import StudyError
from consortium.kernels.projector_forecast import MapExtent
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import column_norms

STRENGTH = 0.5
"""Assumed norm of the mean over participants of one network's maps, each of norm one."""
AGREEMENT = 0.7
"""Assumed correlation of a template with the group's map."""
_MOST_DIMENSIONS = 3000
_ROOM = 3  # dimensions orthogonal to the templates, which shrinkage requires
_COARSEST = 120.0  # mm
_LEAST_SINGULAR = 0.05  # below it, a template (norm one) is nearly a combination of the others
_LEAST_KEPT = 0.1  # fraction of a template's norm that the basis must represent
# Limits of connectivity's share of the budget.
_LEAST_SHARE = 0.05
_MOST_SHARE = 0.25
_MARGIN = 1.1  # factor of the noise: avoids resolutions at which a usual map is barely detected
_GOAL = 0.05  # standard error of a connection by noise that would do
_FILE = "templates.nii.gz"


class TemplateNetworks(OnBasis, AnalysisPlan[TemplateNetworksParameters]):
    """One release of d·R numbers, and one of R(R - 1)/2."""

    name = "template_networks"
    title = "networks by templates"
    takes = "series"
    needs_means = False
    Parameters = TemplateNetworksParameters
    statistics = {
        "template_maps": mean_maps,
        "template_connectivity": mean_connectivity,
    }
    cases = (
        Case({"templates": _FILE, "anyway": True}, templates=2),
        Case(
            {
                "templates": _FILE,
                "connectivity": False,
                "global_signal": "remove",
                "anyway": True,
            },
            templates=3,
        ),
        Case({"templates": "templates.dscalar.nii", "anyway": True}, templates=1, mesh=True),
    )

    @property
    def templates(self) -> Templates:
        """The study's templates; raises StudyError if it has none."""
        if self.shape.templates is None:
            raise StudyError(
                "field 'analysis.templates': the maps of the templates are required, and were "
                "not read. State their file."
            )
        return self.shape.templates

    @cached_property
    def releases(self) -> tuple[PlannedRelease, ...]:
        """Maps, and connectivity if it is requested.

        Raises StudyError if the unit is not a participant, or templates, basis and data don't fit.
        """
        if self.shape.unit != "subject":
            raise StudyError(
                "field 'privacy.unit': template_networks requires unit subject, because each "
                "participant's maps are one contribution. Set unit: subject."
            )
        self._check_templates()
        rest = 1.0 - self.share
        size = self.maps.size
        bound = self.bound
        maps = PlannedRelease(
            stage="maps", statistic="template_maps", entries=size, bound=bound, rounds=1, share=rest
        )
        if not self.share:
            return (maps,)
        what = (self.connections, self.connectivity_bound, 1, self.share)
        return maps, PlannedRelease("connectivity", "template_connectivity", *what)

    @property
    def bound(self) -> Bound:
        """√R, of all maps together."""
        return Bound(math.sqrt(self.templates.count))

    @property
    def connections(self) -> int:
        """R(R - 1)/2."""
        return self.templates.count * (self.templates.count - 1) // 2

    @property
    def connectivity_bound(self) -> Bound:
        """Of all Fisher values together."""
        return Bound(self.parameters.connectivity_bound * math.sqrt(self.connections))

    @cached_property
    def share(self) -> float:
        """Part of the budget for connectivity: what makes its noise small, within limits."""
        if not self.parameters.connectivity or self.templates.count < 2:
            return 0.0
        whole = self._deviation(self.connectivity_bound)
        return round(min(max((whole / _GOAL) ** 2, _LEAST_SHARE), _MOST_SHARE), 2)

    @property
    def deviation(self) -> float:
        """τ, standard deviation of the noise in each number of the released maps."""
        return self._deviation(self.bound) / math.sqrt(1.0 - self.share)

    @property
    def connection_error(self) -> float:
        """Standard error by noise of a Fisher-transformed correlation; 0 if none is released."""
        if not self.share:
            return 0.0
        return self._deviation(self.connectivity_bound) / math.sqrt(self.share)

    def _deviation(self, bound: Bound) -> float:
        """Return the standard deviation of a number's noise, with the whole budget."""
        return self.shape.noise * bound.spread / sum(self.shape.units)

    @cached_property
    def cutoff(self) -> float:
        """Shortest wavelength in mm, on a step of half a millimetre; 0 for regions.

        Raises StudyError if the study asks for finer waves than its voxels or mesh can hold.
        """
        places = self.shape.places
        if places is None:
            return 0.0
        if self.parameters.cutoff is not None:
            return checked_cutoff(places, self.parameters.cutoff)
        count = self.templates.count
        room = places.room
        coarsest = min(_COARSEST, room.cutoff(2.0 * count + _ROOM))
        steps = cutoffs_to(places, _MOST_DIMENSIONS, coarsest)[::-1]
        scores = [_score(float(cutoff), count, room, self.deviation) for cutoff in steps]
        return float(steps[int(np.argmax(np.round(scores, 9)))])  # the coarsest of equals

    @cached_property
    def sizes(self) -> Array:
        """Fraction of each template's norm within the basis, length R."""
        values = self.templates.values
        held = values if self.waves is None else self.waves.coefficients(values)
        return np.asarray(np.linalg.norm(held, axis=0))

    @cached_property
    def maps(self) -> Array:
        """Templates in the basis, d x R, each of norm one.

        Raises StudyError if the basis shows nothing of one.
        """
        whole = np.linalg.norm(self.templates.values, axis=0)
        lost = np.flatnonzero(self.sizes < _LEAST_KEPT * whole)
        if len(lost):
            raise StudyError(
                f"field 'analysis.cutoff': waves longer than {self.cutoff:g} mm can't represent "
                f"template {lost[0] + 1}. Set a shorter cutoff, or remove the template."
            )
        return in_basis(self.templates, self.shape.places, self.cutoff)

    @cached_property
    def usual(self) -> Agreement:
        """A map as strong, and a template as good, as is usual."""
        size, count = self.maps.shape
        return agreement_of(size, count, self.deviation)

    def _check_templates(self) -> None:
        """Raise StudyError if participants' maps can't be computed with them."""
        size, count = self.maps.shape
        if size > _MOST_DIMENSIONS:
            raise StudyError(
                f"field 'analysis.cutoff': must give at most {_MOST_DIMENSIONS} dimensions, got "
                f"{size}. Set a longer cutoff."
            )
        if size < count + _ROOM:
            raise StudyError(
                "field 'analysis.templates': there must be fewer templates than maps in the "
                f"basis, got {count} templates and {size} maps. Use fewer templates, or a shorter "
                "cutoff."
            )
        volumes = self.shape.mean_length
        if 1 < volumes <= count:  # sizes are not known yet where it is 1
            raise StudyError(
                "field 'analysis.templates': there must be fewer templates than a participant "
                f"has volumes, got {count} templates and {volumes:.0f} volumes. Use fewer "
                "templates, or longer scans."
            )
        _, singular, directions = np.linalg.svd(self.maps, full_matrices=False)
        if singular[-1] < _LEAST_SINGULAR:
            alike = np.sort(np.argsort(np.abs(directions[-1]))[-2:]) + 1
            raise StudyError(
                "field 'analysis.templates': the templates must be linearly independent in this "
                f"basis, and are not, most of all {alike[0]} and {alike[1]}. Remove one of them."
            )

    def expect(self) -> tuple[Expectation, ...]:
        """Return the forecast in numbers, for maps and templates of usual strength and quality."""
        usual = self.usual
        error = self.connection_error
        agreed = Expectation(
            "expected correlation", usual.expected if usual.is_reported else AGREEMENT
        )
        links = Expectation("error of a connection (Fisher's z)", error, rises=False)
        return (agreed, links) if error else (agreed,)

    def foretell(self) -> Table:
        """Return the resolution, and the forecast improvement of maps over templates."""
        rows = tuple((line,) for line in self._sentences())
        return Table("What this study will see", ("forecast",), rows)

    def _sentences(self) -> list[str]:
        size, maps = self.maps.shape
        where = f"waves longer than {self.cutoff:g} mm" if self.cutoff else "the study's features"
        basis = (
            f"{maps} maps of each participant in {size} dimensions ({where}, which keep "
            f"{self.resolved:.2f} of a usual network; finer details are the templates')."
        )
        lines = [basis]
        if self.usual.is_reported:
            lines.append(
                f"A template that agrees with the group's map by {AGREEMENT:g} is expected to "
                f"become a map that agrees by about {self.usual.expected:.2f}."
            )
        else:
            lines.append(f"Warning: {self._too_little()}")
        largest = max(self.shape.units)
        lines.append(
            f"The largest site's {count(largest, 'participant')} alone, without noise, are "
            f"expected to come to {_of_site(size, maps, largest):.2f}, if sites don't differ."
        )
        if self.connection_error:
            lines.append(
                f"Noise leaves each connection a standard error of {number(self.connection_error)} "
                f"(Fisher's z), for {self.share:.0%} of the budget."
            )
        return lines

    def refuse_hopeless(self) -> None:
        """Refuse a study that is expected to find nothing, unless it states `anyway`.

        Raises StudyError with sufficient numbers.
        """
        if not self.parameters.anyway and self.shape.noise and not self.usual.is_reported:
            raise StudyError(f"field 'privacy.epsilon': {self._too_little()}")

    def _too_little(self) -> str:
        remedy = would_be_enough(
            self.shape, lambda less: type(self)(self.parameters, less).usual.is_reported
        )
        return (
            f"the noise over {sum(self.shape.units)} participants hides how they differ from "
            f"templates that agree with them by {AGREEMENT:g}. {remedy}. Set "
            "analysis.anyway to run it nevertheless."
        )

    def run(self) -> Run:
        """Ask for maps, then for connectivity, and put maps between templates and release."""
        connectivity = None
        maps = yield Query("maps", "template_maps")
        if self.share:
            connectivity = yield Query("connectivity", "template_connectivity")
        return make_result(maps, connectivity, self)


def _of_site(size: int, maps: int, persons: int) -> float:
    """Return the expected agreement of participants' mean map, which has only sampling error."""
    deviation = math.sqrt((1.0 - STRENGTH**2) / (size - maps) / persons)
    alone = agreement_of(size, maps, deviation)
    return alone.expected if alone.is_reported else AGREEMENT


def in_basis(templates: Templates, places: AnyPlaces | None, cutoff: float) -> Array:
    """Return a study's templates in its basis, each of norm one, or zero: d x R."""
    values = np.asarray(templates.values, dtype=np.float64)
    if cutoff and places is not None:
        values = smooth_basis(places, cutoff).coefficients(values)
    norms = column_norms(values)
    return np.asarray(values / np.where(norms > 0, norms, 1.0))


def agreement_of(size: int, count: int, deviation: float) -> Agreement:
    """Return the agreement of the usual map with its template, in a basis of d maps."""
    return Agreement(max(size - count, _ROOM), deviation, STRENGTH, AGREEMENT)


def _score(cutoff: float, count: int, room: MapExtent, deviation: float) -> float:
    """Return the expected fraction of a usual map: in the basis, and outside by the template."""
    within = room.resolved(cutoff) ** 2
    size = round(room.size(cutoff))
    captured = agreement_of(size, count, _MARGIN * deviation).captured
    return within * captured + (1.0 - within) * AGREEMENT**2
