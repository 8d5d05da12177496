"""The release of group ICA: only the directions that participants share."""

from functools import cached_property

from consortium.algorithms.base import AnalysisPlan, PlannedRelease, Shape
from consortium.algorithms.group_ica.parameters import GroupIcaParameters
from consortium.algorithms.subspace import ProjectorPlan

YARDSTICK = (
    "In mean correlation with 20 networks of other participants, 20 random smooth maps score "
    "0.47, and one hospital of 15, 88 or 150 participants by itself reaches 0.79, 0.84 or 0.87 "
    "without noise (published series of 200 regions)."
)
"""Measured by `python -m benchmarks.networks yardstick`."""


class GroupIcaPlan(ProjectorPlan, AnalysisPlan[GroupIcaParameters]):
    """Public quantities of every site and the centre before the release."""

    def __init__(self, parameters: GroupIcaParameters, shape: Shape) -> None:
        super().__init__(parameters.asked, shape)
        self.parameters = parameters

    @cached_property
    def releases(self) -> tuple[PlannedRelease, ...]:
        """One release with the whole budget."""
        return (self.release,)
