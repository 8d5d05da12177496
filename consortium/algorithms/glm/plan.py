"""What a regression of every outcome will release, from the study alone.

The persons of each group stand in the study, or, where they are to be counted, what part of the
persons is expected to be of which: the plan needs neither data nor the sites' own word.
"""

from __future__ import annotations

import math

import numpy as np

from consortium.algorithms.base import (
    MOST_ROWS,
    Argument,
    Array,
    Form,
    Places,
    PlannedRelease,
    Shape,
    forms_of,
)
from consortium.algorithms.glm.choice import (
    BELOW,
    DIVISOR_SHARE,
    SPREAD_SHARE,
    SQUARES_SHARE,
    Choice,
)
from consortium.algorithms.glm.design import Design
from consortium.algorithms.glm.entries import Columns, resolve
from consortium.algorithms.glm.groups import Groups
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.algorithms.glm.smooth import cutoffs_of, places_of, smoothly_alike
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.kernels.outcome_correlation import EqualCorrelation, OutcomeCorrelation
from consortium.privacy.block_bounds import Block, BlocksBound, bound_blocks

_MOST_SPREAD = 4.0  # E
_MOST_PRODUCT, _MOST_SQUARE = 2.5, 7.0  # of means of outcomes, over what is usual
STAGES = {
    "counts": "counts",
    "covariates": "covariates",
    "slope_covariates": "covariates",
    "contrast": "contrast",
    "slope": "contrast",
}
"""Stages by their statistics."""


class GlmPlan:
    """A study's releases: of counts if nobody states them, of covariates, and of outcomes.

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
        if parameters.smooth:
            places = places_of(parameters, shape)
            self.cutoff, self.design = self._smooth_design(places, cutoffs_of(parameters, places))
        else:
            correlation = parameters.norms.correlation
            self.design = self._design(EqualCorrelation(self.outcomes, correlation))

    def _design(self, likeness: OutcomeCorrelation) -> Design:
        parameters = self.parameters
        return Design(
            *(self.outcomes, self.covariates, self.groups, self.shape.noise, likeness),
            parameters.gap,
            parameters.explained,
            parameters.importance,
            parameters.counted,
            len(self.columns.averages),
        )

    def _smooth_design(self, places: Places, cutoffs: tuple[float, ...]) -> tuple[float, Design]:
        """The cut-off with the least error, where what is smoothed away is an error, too."""
        tried = list[tuple[float, float, Design]]()
        for cutoff in cutoffs:
            likeness = smoothly_alike(places, self.parameters.smoothness or 0.0, cutoff)
            design = self._design(likeness)
            lost = self.parameters.detect * (1 - likeness.kept)
            tried.append((design.choice.error**2 + lost**2, cutoff, design))
        _, cutoff, design = min(tried, key=lambda each: each[:2])
        return cutoff, design

    @property
    def likeness(self) -> OutcomeCorrelation:
        """How alike outcomes are taken to be, and what is released of them."""
        return self.design.likeness

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
        """The counts, if they are released, the covariates' sums, if there are any, and T."""
        shares, sites = self.choice.shares, len(self.groups.persons)
        clipped, found = self.design.clipped_columns, list[PlannedRelease]()
        heard: dict[str, Form] = {}
        if self.parameters.counted:
            own, part = self.count_arguments, shares["counts"]
            found.append(self._release("counts", self._counts, forms_of(own), own, part))
            heard["proportions"] = (sites,)
        if clipped:
            own = self.covariate_arguments
            part = sum(shares.get(block, 0.0) for block in ("contrast", "moment", "means"))
            name = "slope_covariates" if self.columns.slope else "covariates"
            found.append(self._release(name, self._first, forms_of(own) | heard, own, part))
            heard["centres"] = (sites, clipped)
        if self.covariates:
            heard["slopes"] = (self.covariates,)
        own, left = self.contrast_arguments, 1 - sum(release.share for release in found)
        name = "slope" if self.columns.slope else "contrast"
        return *found, self._release(name, self._second, forms_of(own) | heard, own, left)

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
    def _counts(self) -> BlocksBound:
        return bound_blocks([Block("counts", len(self.groups.persons), 0.5, 1.0, 1.0)])

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
                    self.rows * self.likeness.released,
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
                *self._of_means,
            ]
        )

    @property
    def _of_means(self) -> list[Block]:
        """Blocks of the means of outcomes: with the covariates, and their squares."""
        shares, averages = self.design.mean_shares, self.columns.averages
        correlation, p = self.parameters.norms.correlation, self.covariates
        usual = correlation + (1 - correlation) * np.square(averages).sum(axis=1)
        product = _MOST_PRODUCT * math.sqrt(p * float(usual.sum()))
        square = _MOST_SQUARE * float(np.linalg.norm(usual))
        found = {
            "products": (p * len(averages), product, 2 * product),
            "spreads": (len(averages), square, math.sqrt(2) * square),
        }
        return [Block(name, *found[name], share) for name, share in shares.items()]

    @property
    def _common_arguments(self) -> dict[str, Argument]:
        columns, found = self.columns, dict[str, Argument]()
        if not columns.slope:
            found |= self.count_arguments
        if self.parameters.counted:
            found["contrast-reach"] = self.choice.contrast_reach
        else:
            found["weights"] = self.choice.weights
            if not columns.slope:
                found["proportions"] = self.groups.proportions
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
    def count_arguments(self) -> dict[str, Argument]:
        """What says to which group a person belongs."""
        return {"group": self.columns.group.row, "threshold": self.columns.threshold}

    @property
    def covariate_arguments(self) -> dict[str, Argument]:
        """Arguments of the covariates' query that no release decides."""
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
            **self._likeness_arguments,
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
    def _likeness_arguments(self) -> dict[str, Argument]:
        if self.parameters.smoothness is None:
            return {"correlation": self.parameters.norms.correlation}
        return {"smoothness": self.parameters.smoothness, "cutoff": self.cutoff}

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
    if parameters.counted:
        return Groups(np.array(shape.subjects, dtype=np.float64), _expected(parameters, shape))
    names = shape.sites or tuple(parameters.groups)
    counts = np.array([parameters.groups[name] for name in names], dtype=np.float64)
    persons = counts.sum(axis=1)
    if not counts[:, columns.group.level].any():
        raise StudyError(
            f"field 'analysis.groups': no site has persons of the level that '"
            f"{parameters.contrasted}' stands for; contrast a level that some site has."
        )
    return Groups(persons, counts[:, columns.group.level] / persons)


def _expected(parameters: GlmParameters, shape: Shape) -> Array:
    """Parts that are expected where counts are released."""
    shares = parameters.shares
    if not isinstance(shares, dict):
        return np.full(len(shape.subjects), shares, dtype=np.float64)
    return np.array([shares[name] for name in shape.sites or tuple(shares)])
