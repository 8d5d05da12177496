"""What a regression of every outcome will release, from the study alone.

The persons of each group are declared in the study, so that the plan needs neither data nor the
sites' own word.
"""

from __future__ import annotations

import math

import numpy as np

from consortium.algorithms.base import MOST_ROWS, Argument, Form, PlannedRelease, Shape, forms_of
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
STAGES = {
    "covariates": "covariates",
    "slope_covariates": "covariates",
    "contrast": "contrast",
    "slope": "contrast",
}
"""Stages by their statistics."""


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
        _check_outcomes(parameters, self.outcomes)
        self.groups = _groups(parameters, shape, self.columns)
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
            parameters.importance,
        )

    @property
    def rows(self) -> int:
        """Coefficients of an outcome that are released: the contrast's, or all."""
        return 1 + self.covariates if self.parameters.importance else 1

    @property
    def choice(self) -> Choice:
        """The clipping bound and all that follows from it."""
        return self.design.choice

    @property
    def releases(self) -> tuple[PlannedRelease, ...]:
        """The covariates' sums, if there are covariates, and the outcomes'."""
        second = self._second
        forms = forms_of(self.contrast_arguments)
        clipped = self.design.clipped_columns
        name = "slope" if self.columns.slope else "contrast"
        if not clipped:
            return (self._release(name, second, forms, self.contrast_arguments, 1.0),)
        shares = self.choice.shares
        part = sum(shares.get(block, 0.0) for block in ("contrast", "moment", "means"))
        own = self.covariate_arguments
        forms["centres"] = (len(self.groups.persons), clipped)
        if self.covariates:
            forms["slopes"] = (self.covariates,)
        first = "slope_covariates" if self.columns.slope else "covariates"
        return (
            self._release(first, self._first, forms_of(own), own, part),
            self._release(name, second, forms, self.contrast_arguments, 1 - part),
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
            *(STAGES[stage], f"glm_{stage}", bound.entries, bound, 1, part, forms), fixed=fixed
        )

    @property
    def _first(self) -> BlocksBound:
        p, reach, shares = self.covariates, self.design.covariate_reach, self.choice.shares
        means = len(self.groups.persons) * self.design.clipped_columns
        blocks = [Block("means", means, reach, 2 * reach, shares["means"])]
        if p:
            limit, square = self.design.product_reach, reach**2
            moment, size = math.sqrt(2) * square, packed_size(p)
            blocks = [
                Block("contrast", p, limit, 2 * limit, shares["contrast"]),
                Block("moment", size, square, moment, shares["moment"]),
                *blocks,
            ]
        return bound_blocks(blocks)

    @property
    def _second(self) -> BlocksBound:
        choice, groups = self.choice, len(self.columns.averages)
        effects, divisor = choice.reach * choice.norm, choice.divisor
        squares = 1.2 * math.sqrt(self.outcomes + groups) + 2
        return bound_blocks(
            [
                Block(
                    "effects",
                    self.rows * self.outcomes,
                    effects,
                    2 * effects,
                    choice.shares["effects"],
                ),
                Block("divisor", 1, divisor, (1 + BELOW) * divisor, DIVISOR_SHARE),
                Block(
                    "squares",
                    self.outcomes + groups,
                    squares,
                    math.sqrt(2) * squares,
                    SQUARES_SHARE,
                ),
                Block("spread", 1, _MOST_SPREAD, _MOST_SPREAD, SPREAD_SHARE),
            ]
        )

    @property
    def _common_arguments(self) -> dict[str, Argument]:
        columns, found = self.columns, dict[str, Argument](weights=self.choice.weights)
        if not columns.slope:
            found |= {
                "group": columns.group.row,
                "threshold": columns.threshold,
                "proportions": self.groups.proportions,
            }
        if self.design.clipped_columns:
            rows, means, scales = columns.covariates, columns.means, columns.deviations
            if columns.slope:
                mean, scale = columns.group_norm
                rows = np.concatenate([[float(columns.group.row)], rows])
                means, scales = np.append(mean, means), np.append(scale, scales)
            found |= {
                "covariates": rows,
                "means": means,
                "deviations": scales,
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
        found: dict[str, Argument] = {
            **self._common_arguments,
            "outcomes": columns.outcomes,
            "location": columns.location,
            "scales": columns.deviation,
            "correlation": self.parameters.norms.correlation,
            "pair-reach": self.choice.pair_reach,
            "seed": self.parameters.seed,
        }
        if columns.slope:
            found["most"] = self.choice.most
        if self.rows > 1:
            found["importance"] = self.importance
        if len(columns.averages):
            found["averages"] = columns.averages
        return found

    @property
    def importance(self) -> float:
        """What the covariates are multiplied by in the rows of their own coefficients: κ W_c."""
        return self.parameters.importance * min(self.choice.contrast_reach, 1.0)


def _check_outcomes(parameters: GlmParameters, outcomes: int) -> None:
    """Refuse more coefficients than a table has lines for."""
    if parameters.importance and outcomes > MOST_ROWS:
        raise StudyError(
            f"field 'analysis.contrasts': all coefficients of {outcomes} outcomes are more than "
            f"can be told, which are those of {MOST_ROWS}; name one contrast."
        )


def _groups(parameters: GlmParameters, shape: Shape, columns: Columns) -> Groups:
    if columns.slope:
        persons = np.array(shape.subjects, dtype=np.float64)
        return Groups(persons, np.full(len(persons), 0.5), slope=True)
    names = shape.sites or tuple(parameters.groups)
    counts = np.array([parameters.groups[name] for name in names], dtype=np.float64)
    persons = counts.sum(axis=1)
    if not counts[:, columns.group.level].any():
        raise StudyError(
            f"field 'analysis.groups': no site has persons of the level that '"
            f"{parameters.contrasted}' stands for; contrast a level that some site has."
        )
    return Groups(persons, counts[:, columns.group.level] / persons)
