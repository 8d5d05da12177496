"""Group ICA: the brain networks that all sites' participants share, from one release.

Each participant's leading K spatial directions are a projector P = U Uᵀ of norm √K. The mean of the
participants' projectors on a public basis is released once, with the whole budget. The rest is
post-processing: the number of directions that exceed the noise, their spatial independent
components (Calhoun et al. 2001; Varoquaux et al. 2010), and the uncertainty of each, by a
parametric bootstrap.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from consortium.algorithms.base import Case, Local, Query, Run, Table
from consortium.algorithms.group_ica.forecast import expect, forecast_sentences, refuse_hopeless
from consortium.algorithms.group_ica.parameters import GroupIcaParameters
from consortium.algorithms.group_ica.plan import GroupIcaPlan
from consortium.algorithms.group_ica.with_open import cohort_remark, published_result
from consortium.algorithms.subspace import mean_projector
from consortium.algorithms.subspace_forecast import USUAL, subspace_worth
from consortium.algorithms.worth import worth_sentence


class GroupIca(GroupIcaPlan):
    """One release of d(d+1)/2 numbers."""

    name = "group_ica"
    title = "group ICA"
    takes = "series"
    needs_means = False
    Parameters = GroupIcaParameters
    statistics: ClassVar[Mapping[str, Local]] = {"projectors": mean_projector}
    cases: ClassVar[Sequence[Case]] = (
        Case({"components": 2, "replays": 10, "anyway": True}),
        Case({"directions": 3, "global_signal": "remove", "replays": 10, "anyway": True}),
        Case({"directions": 2, "replays": 10, "anyway": True}, mesh=True),
        Case({"directions": 2, "replays": 10, "anyway": True}, voxels=True),
        Case({"directions": 2, "replays": 10, "anyway": True, "open": "cohort.npz"}),
        Case({"directions": 2, "replays": 10, "anyway": True, "open": "cortex.npz"}, mesh=True),
    )

    refuse_hopeless = refuse_hopeless

    def foretell(self) -> Table:
        """Return resolution, components that are expected to be found, and how well."""
        rows = tuple((line,) for line in forecast_sentences(self))
        return Table("What this study will see", ("forecast",), rows)

    expect = expect

    def worth(self) -> str:
        """Return the worth of the release to a hospital, for the usual strengths of networks."""
        return worth_sentence(subspace_worth(self), USUAL)

    def remarks(self) -> tuple[str, ...]:
        """Return what the open cohort is, and what it means for a participant who is in it."""
        cohort = self.open_cohort
        return () if cohort is None else (cohort_remark(cohort),)

    def run(self) -> Run:
        """Ask once, and take the mean of projectors apart."""
        release = yield Query("networks", "projectors")
        return published_result(release, self)
