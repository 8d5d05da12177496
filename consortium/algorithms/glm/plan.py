"""What a regression of every outcome will release, from the study alone.

The persons of each group are declared in the study, so that the plan needs neither data nor the
sites' own word.
"""

from __future__ import annotations

import math

import numpy as np

from consortium.algorithms.base import Argument, Form, PlannedRelease, Shape, forms_of
from consortium.algorithms.glm.choice import (
    BELOW,
    DIVISOR_SHARE,
    SPREAD_SHARE,
    SQUARES_SHARE,
    Choice,
    Design,
    Groups,
)
from consortium.algorithms.glm.entries import Columns, resolve
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.privacy.block_bounds import Block, BlocksBound, bound_blocks

_MOST_SPREAD = 4.0  # E


class GlmPlan:
    """A study's two releases.

    Parameters
    ----------
    parameters : GlmParameters
    shape : Shape
    outcomes : int, optional
        Plan for so many outcomes instead of those there are.

    Raises
    ------
    StudyError
        If names are unknown, or no site has both groups.
    """

    def __init__(
        self, parameters: GlmParameters, shape: Shape, outcomes: int | None = None
    ) -> None:
        self.parameters = parameters
        self.shape = shape
        self.columns: Columns = resolve(parameters, shape)
        self.outcomes = len(self.columns.outcomes) if outcomes is None else outcomes  # V
        self.covariates = len(self.columns.covariates)  # p
        self.groups = _groups(parameters, shape, self.columns.group.level)
        if not self.groups.spread.any():
            raise StudyError(
                "field 'analysis.groups': no site has persons of both groups, so that group can't "
                "be told from site; add a site that has."
            )
        self.design = Design(
            *(self.outcomes, self.covariates, self.groups, shape.noise),
            parameters.norms.correlation,
            parameters.gap,
            parameters.explained,
        )

    @property
    def choice(self) -> Choice:
        """The clipping bound and all that follows from it."""
        return self.design.choice

    @property
    def releases(self) -> tuple[PlannedRelease, ...]:
        """The covariates' sums, if there are covariates, and the outcomes'."""
        second = self._second
        forms = forms_of(self.contrast_arguments)
        if not self.covariates:
            return (self._release("contrast", second, forms, self.contrast_arguments, 1.0),)
        shares = self.choice.shares
        part = shares["contrast"] + shares["moment"] + shares["means"]
        sites = len(self.groups.persons)
        own = self.covariate_arguments
        forms |= {"slopes": (self.covariates,), "centres": (sites, self.covariates)}
        return (
            self._release("covariates", self._first, forms_of(own), own, part),
            self._release("contrast", second, forms, self.contrast_arguments, 1 - part),
        )

    def _release(
        self,
        stage: str,
        bound: BlocksBound,
        forms: dict[str, Form],
        fixed: dict[str, Argument],
        part: float,
    ) -> PlannedRelease:
        return PlannedRelease(
            *(stage, f"glm_{stage}", bound.entries, bound, 1, part, forms), fixed=fixed
        )

    @property
    def _first(self) -> BlocksBound:
        p, reach, shares = self.covariates, self.design.covariate_reach, self.choice.shares
        limit, sites = self.choice.contrast_reach * reach, len(self.groups.persons)
        return bound_blocks(
            [
                Block("contrast", p, limit, 2 * limit, shares["contrast"]),
                Block(
                    "moment", packed_size(p), reach**2, math.sqrt(2) * reach**2, shares["moment"]
                ),
                Block("means", sites * p, reach, 2 * reach, shares["means"]),
            ]
        )

    @property
    def _second(self) -> BlocksBound:
        choice, count = self.choice, self.outcomes
        fair = self.groups.largest[self.groups.spread > 0]
        effects, divisor = choice.reach * choice.norm, choice.reach * float(fair.max())
        squares = 1.2 * math.sqrt(count) + 2
        return bound_blocks(
            [
                Block("effects", count, effects, 2 * effects, choice.shares["effects"]),
                Block("divisor", 1, divisor, (1 + BELOW) * divisor, DIVISOR_SHARE),
                Block("squares", count, squares, math.sqrt(2) * squares, SQUARES_SHARE),
                Block("spread", 1, _MOST_SPREAD, _MOST_SPREAD, SPREAD_SHARE),
            ]
        )

    @property
    def _common_arguments(self) -> dict[str, Argument]:
        columns = self.columns
        found: dict[str, Argument] = {
            "group": columns.group.row,
            "threshold": columns.threshold,
            "proportions": self.groups.proportions,
            "weights": self.choice.weights,
        }
        if self.covariates:
            found |= {
                "covariates": columns.covariates,
                "means": columns.means,
                "deviations": columns.deviations,
                "covariate-reach": self.design.covariate_reach,
            }
        return found

    @property
    def covariate_arguments(self) -> dict[str, Argument]:
        """Arguments of the first query, all of them public before it."""
        return self._common_arguments

    @property
    def contrast_arguments(self) -> dict[str, Argument]:
        """Arguments of the second query that no release decides."""
        columns = self.columns
        return {
            **self._common_arguments,
            "outcomes": columns.outcomes,
            "location": columns.location,
            "scales": columns.deviation,
            "correlation": self.parameters.norms.correlation,
            "reach": self.choice.reach,
            "seed": self.parameters.seed,
        }


def _groups(parameters: GlmParameters, shape: Shape, level: int) -> Groups:
    names = shape.sites or tuple(parameters.groups)
    counts = np.array([parameters.groups[name] for name in names], dtype=np.float64)
    persons = counts.sum(axis=1)
    return Groups(persons, counts[:, level] / persons)
