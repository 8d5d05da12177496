"""Networks by templates: mean maps of all sites' participants, and their difference from templates.

Dual regression (Beckmann et al. 2009) gives each participant's own maps of networks whose templates
are public. Their mean is released once. The mean correlations between the networks' time series
are released with a small share of the budget. The rest is post-processing: each map is shrunk to
its template according to the known noise, so it is never worse than the better of the two. A map
about which the release adds nothing to its template is reported as such.
"""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from consortium.algorithms.base import Case, Expectation, Local, Query, Run, Table
from consortium.algorithms.template_networks.parameters import TemplateNetworksParameters
from consortium.algorithms.template_networks.plan import (
    AGREEMENT,
    STRENGTH,
    TemplateNetworksPlan,
    agreement_of,
)
from consortium.algorithms.template_networks.result import make_result
from consortium.algorithms.template_networks.site import mean_connectivity, mean_maps
from consortium.algorithms.worth import would_be_enough
from consortium.base.formatting import count, number
from consortium.errors import StudyError

_FILE = "templates.nii.gz"


class TemplateNetworks(TemplateNetworksPlan):
    """One release of d·R numbers, and one of R(R - 1)/2."""

    name = "template_networks"
    title = "networks by templates"
    takes = "series"
    needs_means = False
    Parameters = TemplateNetworksParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        "template_maps": mean_maps,
        "template_connectivity": mean_connectivity,
    }
    cases: ClassVar[Sequence[Case]] = (
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
            f"templates that agree with them by {AGREEMENT:g}; {remedy}; set analysis.anyway to "
            "run it nevertheless."
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
