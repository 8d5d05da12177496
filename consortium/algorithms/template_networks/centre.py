"""Networks by templates: what all sites' persons have beside public maps of networks.

Dual regression (Beckmann et al. 2009) gives each person's own maps of networks whose templates
are public. Their mean is released once, and with a small share of the budget the mean of how the
networks' courses go together. What follows is free: each map is put between its template and what
was released by the noise that is known, so that it is never worse than the better of the two, and
a map of which the release tells nothing beyond its template is said to be that.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from consortium.algorithms.base import Case, Local, Query, Run, Table
from consortium.algorithms.template_networks.forecast import expect, refuse_hopeless, sentences
from consortium.algorithms.template_networks.parameters import TemplateNetworksParameters
from consortium.algorithms.template_networks.plan import TemplateNetworksPlan
from consortium.algorithms.template_networks.result import make_result
from consortium.algorithms.template_networks.site import mean_connectivity, mean_maps

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

    refuse_hopeless = refuse_hopeless

    def foretell(self) -> Table:
        """Resolution, and how much better than templates maps will be."""
        rows = tuple((line,) for line in sentences(self))
        return Table("What this study will see", ("forecast",), rows)

    expect = expect

    def run(self) -> Run:
        """Ask for maps, then for connectivity, and put maps between templates and release."""
        connectivity = None
        maps = yield Query("maps", "template_maps")
        if self.share:
            connectivity = yield Query("connectivity", "template_connectivity")
        return make_result(maps, connectivity, self)
