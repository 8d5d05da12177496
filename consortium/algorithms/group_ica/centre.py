"""Group ICA: the brain networks that all sites' persons have in common, from one release.

Each person's leading K spatial directions are a projector P = U Uᵀ of norm √K. The mean of the
persons' projectors on a public basis is released once, with the whole budget. All that follows
is computed from it and costs nothing: how many directions stand out of the noise, spatial
independent components of these (Calhoun et al. 2001; Varoquaux et al. 2010), and how far each may
be trusted, by doing it again with fresh noise of the same law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from consortium.algorithms.base import (
    Case,
    Expectation,
    Local,
    PlannedRelease,
    Query,
    Run,
    Shape,
    Table,
    Takes,
)
from consortium.algorithms.group_ica.forecast import expect, refuse_hopeless, sentences
from consortium.algorithms.group_ica.parameters import GroupIcaParameters
from consortium.algorithms.group_ica.plan import arguments_of, plan_release
from consortium.algorithms.group_ica.result import make_result
from consortium.algorithms.group_ica.site import mean_projector


class GroupIca:
    """One release of d(d+1)/2 numbers."""

    name = "group_ica"
    title = "group ICA"
    takes: Takes = "series"
    needs_means = False
    Parameters = GroupIcaParameters
    statistics: ClassVar[Mapping[str, Local]] = {"projectors": mean_projector}
    cases: ClassVar[Sequence[Case]] = (
        Case({"components": 2, "replays": 10, "anyway": True}),
        Case({"directions": 3, "global_signal": "remove", "replays": 10, "anyway": True}),
    )

    def releases(self, parameters: GroupIcaParameters, shape: Shape) -> tuple[PlannedRelease, ...]:
        """One release with the whole budget, refused if it is expected to show nothing."""
        release = plan_release(parameters, shape)
        refuse_hopeless(parameters, shape)
        return (release,)

    def foretell(self, parameters: GroupIcaParameters, shape: Shape) -> Table:
        """Resolution, directions that are seen, and how well."""
        told = sentences(parameters, shape)
        return Table("What this study will see", ("forecast",), tuple((line,) for line in told))

    def expect(self, parameters: GroupIcaParameters, shape: Shape) -> tuple[Expectation, ...]:
        """Correlation of the maps with the truth, and how many are found."""
        return expect(parameters, shape)

    def run(self, parameters: GroupIcaParameters, shape: Shape) -> Run:
        """Ask once, and take the mean of projectors apart."""
        release = yield Query("networks", "projectors", arguments_of(parameters, shape))
        return make_result(release, parameters, shape)
