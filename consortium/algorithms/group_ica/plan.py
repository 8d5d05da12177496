"""The release of group ICA: only the directions that participants share."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, lru_cache

from consortium.algorithms.base import AnalysisPlan, PlannedRelease, Shape
from consortium.algorithms.group_ica.kernels.open_posterior import OpenMean
from consortium.algorithms.group_ica.parameters import GroupIcaParameters
from consortium.algorithms.open_cohort import OpenDirections
from consortium.algorithms.subspace import ProjectorPlan
from consortium.errors import StudyError

YARDSTICK = (
    "In mean correlation with 20 networks of other participants, 20 random smooth maps score "
    "0.47, and one hospital of 15, 88 or 150 participants by itself reaches 0.79, 0.84 or 0.87 "
    "without noise (published series of 200 regions)."
)
"""Measured by `python -m benchmarks.networks yardstick`."""


class GroupIcaPlan(ProjectorPlan, AnalysisPlan[GroupIcaParameters]):
    """Public quantities of every site and the centre before the release."""

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
    def by_itself(self) -> GroupIcaPlan:
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
                "field 'analysis.open': group_ica requires a file of directions, and a table was "
                "given. Make the file with 'consortium open-cohort'."
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


@lru_cache(maxsize=4)  # a cohort is one object for each space
def mean_of_cohort(cohort: OpenDirections, kept: int) -> OpenMean:
    """Return the mean of the leading directions of an open cohort's participants."""
    return OpenMean.of(cohort.values[:, :, :kept])


def _basis(cutoff: float, size: int, global_signal: str) -> str:
    where = f"waves longer than {cutoff:g} mm" if cutoff else "regions or voxels"
    return f"{size} maps, {where}, global_signal: {global_signal}"
