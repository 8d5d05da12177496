"""What group ICA will release: the directions that persons share, and nothing else."""

from functools import cached_property

from consortium.algorithms.base import AnalysisPlan, PlannedRelease, Shape
from consortium.algorithms.group_ica.parameters import GroupIcaParameters
from consortium.algorithms.subspace import ProjectorPlan


class GroupIcaPlan(AnalysisPlan[GroupIcaParameters], ProjectorPlan):
    """What every site and the centre know before the release."""

    def __init__(self, parameters: GroupIcaParameters, shape: Shape) -> None:
        super().__init__(parameters, shape)
        self.asked = parameters.asked

    @cached_property
    def releases(self) -> tuple[PlannedRelease, ...]:
        """One release with the whole budget."""
        return (self.release,)
