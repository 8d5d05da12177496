"""`glm`: the effect of a group on every outcome, adjusted for covariates and for site.

Two rounds. The first fits the covariates to the contrast, cheaply; the second releases the contrast
of every outcome and no coefficient else. Both are one vector of blocks with bounds and shares of
their own. What each sum is, its sensitivity and its proof stand in docs/analyses/glm.md.
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
from consortium.algorithms.glm.choice import Groups
from consortium.algorithms.glm.forecast import check_worth, expect, forecast, foretell, problem
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.algorithms.glm.plan import GlmPlan
from consortium.algorithms.glm.result import effects_result, stopped_result
from consortium.algorithms.glm.site import compare_groups, glm_contrast, glm_covariates
from consortium.kernels.contrast_regression import (
    Adjustment,
    ContrastSums,
    CovariateSums,
    Expected,
    adjust,
    correlation_power,
    estimate_effects,
)
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


class Glm:
    """Covariates first, if there are any, then the contrast of every outcome."""

    name = "glm"
    title = "mega-analysis"
    takes: Takes = "features"
    needs_means = False
    Parameters = GlmParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        "glm_covariates": glm_covariates,
        "glm_contrast": glm_contrast,
    }
    cases: ClassVar[Sequence[Case]] = (
        Case(_EXAMPLE, views=(("x", 4), ("group", 1))),
        Case({**_EXAMPLE, "formula": "group1 + z1 + z2"}, views=(("z", 2), ("x", 4), ("group", 1))),
    )

    def releases(self, parameters: GlmParameters, shape: Shape) -> tuple[PlannedRelease, ...]:
        """One or two releases; a study that can't find anything is refused."""
        plan = GlmPlan(parameters, shape)
        check_worth(plan)
        return plan.releases

    def foretell(self, parameters: GlmParameters, shape: Shape) -> Table:
        """Expected errors of the study, of half and twice the ε, and of fewer outcomes."""
        return foretell(GlmPlan(parameters, shape))

    def expect(self, parameters: GlmParameters, shape: Shape) -> tuple[Expectation, ...]:
        """Standard error, least detectable effect, and power for the effect that is asked for."""
        return expect(GlmPlan(parameters, shape))

    def compare(
        self, parameters: GlmParameters, shape: Shape, site: int, data: SiteData
    ) -> tuple[str, ...]:
        """Hold the stated numbers of persons in each group against a site's own data."""
        plan = GlmPlan(parameters, shape)
        return compare_groups(plan.columns, plan.groups.counts(site), data)

    def run(self, parameters: GlmParameters, shape: Shape) -> Run:
        """Adjust, stop if that leaves too little, and estimate."""
        plan = GlmPlan(parameters, shape)
        stages = {release.stage: release for release in plan.releases}
        adjustment, noise = Adjustment(np.zeros(0), np.zeros((0, 0)), 0.0, 0.0), 0.0
        arguments: dict[str, Argument] = dict(plan.contrast_arguments)
        if plan.covariates:
            release = yield Query("covariates", "glm_covariates", plan.covariate_arguments)
            sums = _covariate_sums(plan, stages["covariates"], release)
            adjustment = _adjust(plan, sums, release)
            reason = problem(plan, forecast(plan, adjustment.explained))
            if shape.noise > 0 and reason and not parameters.anyway:
                return stopped_result(adjustment.explained, reason)
            arguments |= {"slopes": adjustment.slopes, "centres": adjustment.centres}
            slope = float(adjustment.slopes @ adjustment.slopes)
            noise = sums.noise["contrast"] ** 2 + sums.noise["moment"] ** 2 * slope / 2
        release = yield Query("contrast", "glm_contrast", arguments)
        there = _present(plan, release)
        information, squares = there.information(plan.choice.weights)
        whole = information * (1 - adjustment.explained)
        expected = Expected(
            plan.choice.clip * whole,
            squares,
            plan.choice.clip,
            float(_persons(plan, release).sum()),
            parameters.explained,
            plan.design.root,
            noise,
            float(adjustment.slopes @ adjustment.slopes) * adjustment.offsets,
        )
        found = estimate_effects(_contrast_sums(plan, stages["contrast"], release), expected)
        return effects_result(plan, found, adjustment.explained, whole)


def _persons(plan: GlmPlan, release: Release) -> Array:
    """n_s of the sites in a release, 0 for the others."""
    counts = np.array(plan.shape.subjects, dtype=np.float64)
    there = np.isin(np.arange(len(counts)), release.sites)
    return np.where(there, counts, 0.0)


def _present(plan: GlmPlan, release: Release) -> Groups:
    return Groups(_persons(plan, release), plan.groups.proportions)


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
    moment = unpack_symmetric(sums["moment"])
    means = sums["means"].reshape(len(persons), plan.covariates)
    return CovariateSums(sums["contrast"], moment, means, noise)


def _adjust(plan: GlmPlan, sums: CovariateSums, release: Release) -> Adjustment:
    there, weights = _present(plan, release), plan.choice.weights
    return adjust(sums, there.persons, weights, there.information(weights)[0])


def _contrast_sums(plan: GlmPlan, stage: PlannedRelease, release: Release) -> ContrastSums:
    persons = _persons(plan, release)
    total = float(persons.sum())
    sums, noise = _blocks(stage, release, total)
    scale = 2 * plan.choice.reach**2 * total / max(2 * float((persons // 2).sum()), 1.0)
    turned = correlation_power(sums["effects"], plan.parameters.norms.correlation, 0.25)
    return ContrastSums(
        turned,
        float(sums["divisor"][0]),
        scale * sums["squares"],
        float(sums["spread"][0]) / total,
        {
            "effects": noise["effects"],
            "divisor": noise["divisor"],
            "squares": scale * noise["squares"],
            "spread": noise["spread"] / total,
        },
    )
