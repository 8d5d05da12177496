"""`glm`: the effect of a group on every outcome, adjusted for covariates and for site.

Two rounds. The first fits the covariates to the contrast, cheaply; the second releases the contrast
of every outcome and no coefficient else. Both are one vector of blocks with bounds and shares of
their own. Where nobody states how many persons each group has, a round before them counts. What
each sum is, its sensitivity and its proof stand in docs/analyses/glm.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from consortium.algorithms.base import (
    Argument,
    Array,
    Case,
    Expectation,
    Local,
    PlannedRelease,
    Query,
    Release,
    Run,
    Shape,
    SiteData,
    Table,
    Takes,
)
from consortium.algorithms.glm.centring import (
    Centring,
    counted_centring,
    stated_centring,
    told_of_counts,
)
from consortium.algorithms.glm.compare import compare_groups, compare_values
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.algorithms.glm.plan import GlmPlan
from consortium.algorithms.glm.power import check_worth, expect, forecast, foretell, problem
from consortium.algorithms.glm.result import More, effects_result, stopped_result
from consortium.algorithms.glm.site import (
    glm_contrast,
    glm_counts,
    glm_covariates,
    glm_slope,
    glm_slope_covariates,
)
from consortium.algorithms.glm.smooth import told_of_basis
from consortium.kernels.contrast_regression import (
    PRIOR_WIDTH,
    ContrastSums,
    Effects,
    Estimates,
    Expected,
    estimate_effects,
)
from consortium.kernels.contrast_rows import (
    Coefficients,
    MeanSums,
    mean_effects,
    solve_coefficients,
)
from consortium.kernels.covariate_adjustment import Adjustment, CovariateSums, adjust, left_of_noise
from consortium.kernels.moments import unpack_symmetric
from consortium.privacy.block_bounds import BlocksBound

_EXAMPLE: Mapping[str, Any] = {
    "outcomes": "x",
    "formula": "group1",
    "contrasts": {"patients": "group1"},
    "groups": {"north": [2, 1], "east": [1, 0], "south": [2, 2], "west": [1, 1]},
    "norms": {"deviation": 0.5},
    "anyway": True,
}
_COUNTED = {**_EXAMPLE, "groups": {}, "counts": "released", "shares": 0.5}
_SLOPE = {**_EXAMPLE, "contrasts": {"z": "z1"}, "groups": {}}
_NO_COVARIATES = np.zeros((0, 0)), np.zeros(0)
_UNADJUSTED = np.zeros(0), np.zeros((0, 0)), 0.0, 0.0
_WIDTH_OF_SLOPES = 0.3  # of the divisor: a column's variance within sites is less surely known
_VIEWS = (("z", 2), ("x", 4), ("group", 1))


class Glm:
    """Covariates first, if there are any, then the contrast of every outcome."""

    name = "glm"
    title = "mega-analysis"
    takes: Takes = "features"
    needs_means = False
    Parameters = GlmParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        "glm_counts": glm_counts,
        "glm_covariates": glm_covariates,
        "glm_contrast": glm_contrast,
        "glm_slope_covariates": glm_slope_covariates,
        "glm_slope": glm_slope,
    }
    cases: ClassVar[Sequence[Case]] = (
        Case(_EXAMPLE, views=(("x", 4), ("group", 1))),
        Case({**_EXAMPLE, "formula": "group1 + z1 + z2"}, views=_VIEWS),
        Case(
            {
                **_EXAMPLE,
                "formula": "group1 + z1 + z2",
                "contrasts": "all",
                "averages": {"half": ["x1", "x2"]},
            },
            views=_VIEWS,
        ),
        Case(_COUNTED, views=(("x", 4), ("group", 1))),
        Case({**_COUNTED, "formula": "group1 + z1 + z2"}, views=_VIEWS),
        Case({**_SLOPE, "formula": "z1 + group1 + z2"}, views=_VIEWS),
        Case({**_SLOPE, "formula": "z1"}, views=_VIEWS),
    )

    def releases(self, parameters: GlmParameters, shape: Shape) -> tuple[PlannedRelease, ...]:
        """One to three releases; a study that can't find anything is refused."""
        plan = GlmPlan(parameters, shape)
        check_worth(plan)
        return plan.releases

    def foretell(self, parameters: GlmParameters, shape: Shape) -> Table:
        """Expected errors of the study, of half and twice the noise, and of fewer outcomes."""
        return foretell(GlmPlan(parameters, shape))

    def expect(self, parameters: GlmParameters, shape: Shape) -> tuple[Expectation, ...]:
        """Standard error, least detectable effect, and power for the effect that is asked for."""
        return expect(GlmPlan(parameters, shape))

    def compare(
        self, parameters: GlmParameters, shape: Shape, site: int, data: SiteData
    ) -> tuple[str, ...]:
        """Hold the stated groups, limits and columns against a site's own data."""
        plan = GlmPlan(parameters, shape)
        notes = compare_values(plan.columns, data)
        if plan.columns.slope or parameters.counted:
            return notes
        return (*compare_groups(plan.columns, plan.groups.counts(site), data), *notes)

    def remarks(self, parameters: GlmParameters, shape: Shape) -> tuple[str, ...]:
        """Tell what becomes of the groups' numbers of persons, and what is smoothed away."""
        plan = GlmPlan(parameters, shape)
        return *told_of_basis(plan.likeness), *told_of_counts(plan)

    def run(self, parameters: GlmParameters, shape: Shape) -> Run:
        """Count if nobody states it, adjust, stop if that leaves too little, and estimate."""
        plan = GlmPlan(parameters, shape)
        stages = {release.stage: release for release in plan.releases}
        adjusted, noise = None, {"contrast": 0.0, "moment": 0.0}
        heard, centring = dict[str, Argument](), stated_centring(plan)
        if "counts" in stages:
            stage = stages["counts"]
            release = yield Query("counts", stage.statistic, plan.count_arguments)
            centring = counted_centring(plan, stage, release, _persons(plan, release))
            heard["proportions"] = centring.groups.proportions
        if "covariates" in stages:
            stage = stages["covariates"]
            release = yield Query(
                "covariates", stage.statistic, {**plan.covariate_arguments, **heard}
            )
            sums = _covariate_sums(plan, stage, release)
            adjusted, noise = _adjust(plan, centring, sums, release), sums.noise
            heard["centres"] = adjusted.centres
            if plan.covariates:
                heard["slopes"] = adjusted.slopes
        explained = adjusted.explained if adjusted else 0.0
        reason = problem(plan, forecast(plan, explained, centring.information[0]))
        if len(stages) > 1 and shape.noise > 0 and reason and not parameters.anyway:
            return stopped_result(plan, explained, reason, centring)
        stage = stages["contrast"]
        release = yield Query("contrast", stage.statistic, {**plan.contrast_arguments, **heard})
        there = centring.among(_persons(plan, release))
        adjustment = adjusted or Adjustment(*_UNADJUSTED, there.information[0], *_NO_COVARIATES)
        expected = _expected(plan, there, adjustment, noise)
        sums_of = _ContrastRound(plan, there, stage, release)
        found = estimate_effects(sums_of.outcomes, expected)
        more = More(
            sums_of.coefficients(adjustment, found, noise) if plan.rows > 1 else None,
            sums_of.means(expected, found, adjustment) if len(plan.columns.averages) else None,
        )
        return effects_result(plan, found, adjustment, there, more)


def _persons(plan: GlmPlan, release: Release) -> Array:
    """n_s of the sites in a release, 0 for the others."""
    counts = np.array(plan.shape.subjects, dtype=np.float64)
    there = np.isin(np.arange(len(counts)), release.sites)
    return np.where(there, counts, 0.0)


def _blocks(
    stage: PlannedRelease, release: Release, persons: float
) -> tuple[dict[str, Array], dict[str, float]]:
    """Sums over all persons, and the noise in them, by block."""
    bound = stage.bound
    assert isinstance(bound, BlocksBound)  # noqa: S101 - for the type checker
    sums = bound.split(release.values * persons)
    return sums, bound.deviations(release.deviation * persons)


def _covariate_sums(plan: GlmPlan, stage: PlannedRelease, release: Release) -> CovariateSums:
    persons = _persons(plan, release)
    sums, noise = _blocks(stage, release, float(persons.sum()))
    means = sums["means"].reshape(len(persons), plan.design.clipped_columns)
    if not plan.covariates:
        return CovariateSums(*_NO_COVARIATES[::-1], means, {"contrast": 0.0, "moment": 0.0} | noise)
    return CovariateSums(sums["contrast"], unpack_symmetric(sums["moment"]), means, noise)


def _adjust(plan: GlmPlan, centring: Centring, sums: CovariateSums, release: Release) -> Adjustment:
    there = centring.among(_persons(plan, release))
    known = None if plan.columns.slope else there.information[0]
    return adjust(sums, there.groups.persons, there.weights, known)


def _expected(
    plan: GlmPlan, there: Centring, adjustment: Adjustment, noise: dict[str, float]
) -> Expected:
    slope = float(adjustment.slopes @ adjustment.slopes)
    slopes = plan.columns.slope
    left = left_of_noise(adjustment.kept, plan.covariates)
    moments = left * noise["contrast"] ** 2 + noise["moment"] ** 2 * slope / 2
    if plan.covariates and not slopes:
        # What a count is off by, a site's own covariates are taken for: they are no part of G.
        moments += float(
            there.weights**2 * there.doubts @ np.square(adjustment.centres).mean(axis=1)
        )
    return Expected(
        plan.choice.clip * adjustment.information * (1 - adjustment.explained),
        there.information[1],
        plan.choice.clip,
        float(there.groups.persons.sum()),
        plan.parameters.explained,
        plan.likeness.roots,
        moments,
        (slope + slopes) * adjustment.offsets + there.offsets,
        _WIDTH_OF_SLOPES if slopes else PRIOR_WIDTH,
    )


class _ContrastRound:
    """Sums of the second round, after R^¼ and in the units of sums over persons."""

    def __init__(
        self, plan: GlmPlan, there: Centring, stage: PlannedRelease, release: Release
    ) -> None:
        self.plan, self.there, persons = plan, there, there.groups.persons
        total = float(persons.sum())
        sums, noise = _blocks(stage, release, total)
        pairs = max(2 * float((persons // 2).sum()), 1.0)
        scale = 2 * plan.choice.pair_reach**2 * total / pairs
        rows = sums["effects"].reshape(plan.rows, -1).T
        self.rows = plan.likeness.decode(rows).T
        squares = scale * sums["squares"]
        own = {
            "effects": noise["effects"],
            "divisor": noise["divisor"],
            "squares": scale * noise["squares"],
            "spread": noise["spread"] / total,
        }
        divisor, spread = float(sums["divisor"][0]), float(sums["spread"][0]) / total
        self.outcomes = ContrastSums(self.rows[0], divisor, squares[: plan.outcomes], spread, own)
        groups = len(plan.columns.averages)
        products = plan.covariates, groups
        self._means = MeanSums(
            squares[plan.outcomes :],
            sums.get("products", np.zeros(products[0] * products[1])).reshape(products),
            sums.get("spreads", np.zeros(groups)) / total,
            {
                "squares": own["squares"],
                "products": noise.get("products", 0.0),
                "spreads": noise.get("spreads", 0.0) / total,
            },
        )

    def means(self, expected: Expected, found: Effects, adjustment: Adjustment) -> Estimates:
        """Effects on the means of groups of outcomes."""
        return mean_effects(
            self.outcomes,
            self._means,
            self.plan.columns.averages,
            expected,
            found,
            adjustment,
            self.plan.parameters.norms.correlation,
        )

    def coefficients(
        self, adjustment: Adjustment, found: Effects, noise: dict[str, float]
    ) -> Coefficients:
        """All coefficients of the formula."""
        weights, present = self.there.weights, self.there.groups.persons
        ratio = float(weights**2 @ present) / float(weights @ present)
        factors = self.plan.importance, ratio, self.there.information[1]
        explained = self.plan.parameters.explained
        return solve_coefficients(self.rows, adjustment, found, factors, noise, explained)
