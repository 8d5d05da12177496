"""Group ICA: the brain networks that all sites' participants share, from one release.

Each participant's leading K spatial directions are a projector P = U Uᵀ of norm √K. The mean of the
participants' projectors on a public basis is released once, with the whole budget. The rest is
post-processing: the number of directions that exceed the noise, their spatial independent
components (Calhoun et al. 2001; Varoquaux et al. 2010), and the uncertainty of each, by a
parametric bootstrap.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from consortium.algorithms.base import (
    AnalysisPlan,
    Case,
    PlannedRelease,
    Query,
    Run,
    Shape,
    Table,
)
from consortium.algorithms.group_ica.forecast import expect, forecast_sentences, refuse_hopeless
from consortium.algorithms.group_ica.kernels.open_posterior import OpenMean
from consortium.algorithms.group_ica.parameters import GroupIcaParameters
from consortium.algorithms.group_ica.with_open import (
    cohort_remark,
    mean_of_cohort,
    published_result,
)
from consortium.algorithms.open_cohort import OpenDirections
from consortium.algorithms.subspace import ProjectorPlan, mean_projector
from consortium.algorithms.subspace_forecast import usual_worth
from consortium.errors import StudyError


class GroupIca(ProjectorPlan, AnalysisPlan[GroupIcaParameters]):
    """One release of d(d+1)/2 numbers: the mean of the participants' projectors."""

    name = "group_ica"
    title = "group ICA"
    takes = "series"
    needs_means = False
    Parameters = GroupIcaParameters
    statistics = {"projectors": mean_projector}
    cases = (
        Case({"components": 2, "replays": 10, "anyway": True}),
        Case({"directions": 3, "global_signal": "remove", "replays": 10, "anyway": True}),
        Case({"directions": 2, "replays": 10, "anyway": True}, mesh=True),
        Case({"directions": 2, "replays": 10, "anyway": True}, voxels=True),
        Case({"directions": 2, "replays": 10, "anyway": True, "open": "cohort.npz"}),
        Case({"directions": 2, "replays": 10, "anyway": True, "open": "cortex.npz"}, mesh=True),
    )

    def __init__(self, parameters: GroupIcaParameters, shape: Shape) -> None:
        asked = parameters.asked
        cohort = shape.open_cohort
        if isinstance(cohort, OpenDirections) and cohort.cutoff and asked.cutoff is None:
            asked = replace(asked, cutoff=cohort.cutoff)
        super().__init__(asked, shape)
        self.parameters = parameters

    @cached_property
    def releases(self) -> tuple[PlannedRelease, ...]:
        """One release with the whole budget."""
        self.check_open_cohort()
        return (self.release,)

    @property
    def open_cohort(self) -> OpenDirections | None:
        """Participants of an open cohort whose directions the study names."""
        cohort = self.shape.open_cohort
        return cohort if isinstance(cohort, OpenDirections) else None

    @property
    def open_mean(self) -> OpenMean | None:
        """Mean projector of the open cohort."""
        cohort = self.open_cohort
        if cohort is None:
            return None
        self.check_open_cohort()
        return mean_of_cohort(cohort, self.asked.kept)

    @property
    def by_itself(self) -> GroupIca:
        """The same plan without an open cohort, in the same basis."""
        fixed = self.parameters.model_copy(update={"cutoff": self.cutoff or None, "open": None})
        return type(self)(fixed, replace(self.shape, open_cohort=None))

    def check_open_cohort(self) -> None:
        """Raise StudyError if the open cohort's directions are not of the study's basis."""
        if self.parameters.open is None or self.shape.open_cohort is None:
            return
        cohort = self.open_cohort
        if cohort is None:
            raise StudyError(
                "field 'analysis.open': group_ica requires a file of directions, got a table. "
                "Make the file with 'consortium open-cohort'."
            )
        _, size, kept = cohort.values.shape
        own_basis = self.cutoff, self.size, self.asked.global_signal
        cohort_basis = cohort.cutoff, size, cohort.global_signal
        if own_basis != cohort_basis or kept < self.asked.kept:
            raise StudyError(
                f"field 'analysis.open': its directions must be {self.asked.kept} in the study's "
                f"basis ({_basis(*own_basis)}), and they are {kept} in another one "
                f"({_basis(*cohort_basis)}). Make the file again with this study."
            )

    refuse_hopeless = refuse_hopeless

    def foretell(self) -> Table:
        """Return resolution, components that are expected to be found, and how well."""
        rows = tuple((line,) for line in forecast_sentences(self))
        return Table("What this study will see", ("forecast",), rows)

    expect = expect

    def worth(self) -> str:
        """Return the worth of the release to a hospital, for the usual strengths of networks."""
        return usual_worth(self)

    def remarks(self) -> tuple[str, ...]:
        """Return a sentence on the open cohort, and on a participant who is also in it."""
        cohort = self.open_cohort
        return () if cohort is None else (cohort_remark(cohort),)

    def run(self) -> Run:
        """Ask once, and take the mean of projectors apart."""
        release = yield Query("networks", "projectors")
        return published_result(release, self)


def _basis(cutoff: float, size: int, global_signal: str) -> str:
    where = f"waves longer than {cutoff:g} mm" if cutoff else "regions or voxels"
    return f"{size} maps, {where}, global_signal: {global_signal}"
