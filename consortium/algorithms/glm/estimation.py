"""The last round's sums, and what is expected of them, for the kernels that divide them."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from consortium.algorithms.base import Array, PlannedRelease, Release
from consortium.algorithms.glm.centring import Centring
from consortium.algorithms.glm.choice import (
    cut_of,
    touched_of,
)
from consortium.algorithms.glm.kernels.contrast_rows import (
    Coefficients,
    MeanSums,
    mean_effects,
    solve_coefficients,
)
from consortium.algorithms.glm.kernels.covariate_adjustment import Adjustment, left_of_noise
from consortium.algorithms.glm.kernels.lost_tails import (
    LostTails,
    TailSums,
    lean_of_groups,
    lean_of_others,
    lean_of_slope,
    lost_tails,
    no_tails,
)
from consortium.algorithms.glm.learned import Learned, block_of, sums_in
from consortium.algorithms.glm.plan import GlmPlan
from consortium.algorithms.glm.ring import clips_in, pair_weight
from consortium.kernels.contrast_regression import (
    PRIOR_WIDTH,
    ContrastSums,
    Effects,
    Estimates,
    Expected,
)

_FAR = 8.0  # square of deviations
_ALONE = 0.25  # part of what sites' weights are off by that is no part of a common imbalance


def expected_of(plan: GlmPlan, there: Centring, learned: Learned) -> Expected:
    """What is expected of the last round, before its sums are read."""
    adjustment, noise, choice = learned.adjustment, learned.noise, plan.choice
    slopes = adjustment.slopes
    left = left_of_noise(adjustment.kept, plan.covariates)
    moments = left * noise["contrast"] ** 2 + noise["moment"] ** 2 * float(slopes @ slopes) / 2
    if plan.covariates and not plan.columns.slope:
        # What a count is off by, a site's own covariates are taken for: they are no part of G.
        moments += float(
            there.weights**2 * there.doubts @ np.square(adjustment.centres).mean(axis=1)
        )
    offsets = adjustment.squared(adjustment.levels)
    persons, unit = float(there.groups.persons.sum()), learned.spread
    divisor = adjustment.information * (1 - adjustment.explained)
    information, squares = there.information
    if plan.design.grouped:
        squares *= adjustment.information / information
    squares *= 1 - adjustment.explained
    if plan.columns.slope:
        divisor, squares = choice.left[0] * unit * persons, choice.left[1] * persons
    parts = there.weights * there.groups.persons * there.groups.spread
    return Expected(
        divisor=choice.clip * divisor,
        squares=squares,
        clip=choice.clip,
        persons=persons,
        explained=plan.parameters.explained,
        root=plan.likeness.roots / learned.norms.present**2,
        adjustment_noise=moments / unit**2,
        offset_noise=offsets / unit**2 + there.offsets,
        missed=float(learned.missed()),
        unevenness=_unevenness(parts / max(parts.sum(), 1e-12), there.groups.persons / persons),
        unsure=learned.norms.shares.unsure,
        touched=_touched(plan, learned),
        cut=cut_of(choice.height, plan.likeness.freedom),
        bias=cut_bias(plan, learned),
        width=float(np.hypot(PRIOR_WIDTH, learned.norms.doubt / 2)),  # c follows the learned scale
    )


def cut_bias(plan: GlmPlan, learned: Learned) -> float:
    """Return how far effects of a group may be off since covariates were cut."""
    if plan.columns.slope or not plan.covariates or plan.shape.noise == 0:
        return 0.0
    return learned.adjustment.cut_bias(plan.parameters.explained)


def _unevenness(information: Array, persons: Array) -> float:
    """Σ over sites of what levels add, each site being off in proportion to its information.

    The learned centre took from each outcome the levels' mean over persons. As sites may be off
    otherwise, a part counts as if it had taken nothing.
    """
    each = (1 - _ALONE) * np.square(information - persons) + _ALONE * np.square(information)
    return float(each.sum())


def _touched(plan: GlmPlan, learned: Learned) -> float:
    """Part of the persons who are clipped: more where centres were far and may be so still."""
    far = float(np.mean(np.square(learned.norms.shift))) / learned.norms.factor**2
    usual = touched_of(plan.choice.height, plan.likeness.freedom)
    return 1 - (1 - usual) * float(np.exp(-far / _FAR))


class ContrastRound:
    """Sums of the last round, after R^¼ and in the units of sums over persons."""

    def __init__(
        self,
        plan: GlmPlan,
        there: Centring,
        learned: Learned,
        stage: PlannedRelease,
        release: Release,
    ) -> None:
        self.plan, self.there, persons = plan, there, there.groups.persons
        total, present = float(persons.sum()), learned.norms.present
        sums, noise = sums_in(stage, release, total)
        scale = plan.choice.reach**2 * total / pair_weight(persons)
        rows = sums["effects"].reshape(plan.rows, -1).T
        # Who lacks an outcome adds nothing to its sums: they are of the others, and told so.
        self.rows = plan.likeness.decode(rows).T / present
        self.tails = self._lost(sums, noise, learned)
        self.rows += self.tails.shift
        averages = plan.columns.averages
        among = np.append(present, averages @ present)
        squares = scale * sums["squares"] / among**2
        own = {
            "effects": noise["effects"],
            "divisor": noise["divisor"],
            "squares": scale * noise["squares"],
            "spread": noise["spread"] / total,
            "balance": noise["balance"],
        }
        divisor, spread = float(sums["divisor"][0]), float(sums["spread"][0]) / total
        single = squares[: plan.outcomes]
        tails = self.tails.variance()[0]
        if plan.rows > 1:  # the table of coefficients has one number for all outcomes
            tails = np.full_like(tails, tails.mean())
        self.outcomes = ContrastSums(
            *(self.rows[0], divisor, single, spread, sums["balance"], own),
            tails,
            self._widest(stage),
        )
        self._squares = squares[plan.outcomes :]
        self._take_means(sums, noise | {"squares": own["squares"]}, total)

    def _widest(self, stage: PlannedRelease) -> float:
        """Return what pairs' squared differences are clipped to, scaled to all participants."""
        if self.plan.shape.noise == 0:
            return math.inf
        largest, _ = clips_in(block_of(stage, "squares"))
        return self.plan.choice.reach**2 * float(self.there.groups.persons.sum()) * largest

    def _take_means(
        self, sums: Mapping[str, Array], noise: Mapping[str, float], total: float
    ) -> None:
        """What the means of groups of outcomes need more; zeros where the study asks for none."""
        shape = self.plan.covariates, len(self.plan.columns.averages)
        self._products = sums.get("products", np.zeros(shape)).reshape(shape)
        self._spreads = sums.get("spreads", np.zeros(shape[1])) / total
        self._noise = {
            "squares": noise["squares"],
            "products": noise.get("products", 0.0),
            "spreads": noise.get("spreads", 0.0) / total,
        }

    def _lost(self, sums: dict[str, Array], noise: dict[str, float], learned: Learned) -> LostTails:
        """What clipping took of long tails, where the study asks."""
        plan, groups, adjustment = self.plan, self.there.groups, learned.adjustment
        if "lost" not in sums:
            return no_tails(plan.outcomes, plan.rows)
        present, persons = learned.norms.present, float(groups.persons.sum())
        lost = plan.likeness.decode(sums["lost"][:, None])[:, 0] / present
        tail = float(sums["tail"][0] / present.mean())
        if plan.columns.slope:
            lean = lean_of_slope(persons, plan.choice.left[0], plan.choice.contrast_reach)
        else:
            part = float(groups.persons @ groups.proportions) / persons
            information = adjustment.information * (1 - adjustment.explained)
            lean = lean_of_groups(persons, information, part)
        leans = [lean]
        if plan.rows > 1:
            leans += lean_of_others(persons, self._squares_of_others(adjustment))
        return lost_tails(TailSums(lost, tail, sums["lean"], noise), plan.likeness, persons, leans)

    def means(self, expected: Expected, found: Effects, learned: Learned) -> Estimates:
        """Effects on the means of groups of outcomes."""
        averages, present = self.plan.columns.averages, learned.norms.present
        own = self.outcomes.noise["effects"] / float(present.mean())
        outcomes = replace(self.outcomes, noise=self.outcomes.noise | {"effects": own})
        sums = MeanSums(
            self._squares,
            self._products,
            self._spreads,
            self._noise,
            np.asarray(learned.missed(np.square(averages).sum(axis=1))),
            self.tails.variance(averages)[0],
        )
        correlation = self.plan.parameters.norms.correlation
        adjustment = learned.adjustment
        return mean_effects(outcomes, sums, averages, expected, found, adjustment, correlation)

    def coefficients(self, expected: Expected, found: Effects, learned: Learned) -> Coefficients:
        """All coefficients of the formula."""
        factors = self.plan.importance, self._ratio, self.there.information[1]
        return solve_coefficients(
            self.rows, learned.adjustment, found, factors, learned.noise, expected, self.tails
        )

    @property
    def _ratio(self) -> float:
        """Σ a² n / Σ a n."""
        weights, present = self.there.weights, self.there.groups.persons
        return float(weights**2 @ present) / float(weights @ present)

    def _squares_of_others(self, adjustment: Adjustment) -> Array:
        """Σ w² of the other coefficients: κ² W_c² a² of the covariates' moment."""
        moment = np.diag(np.linalg.pinv(adjustment.inverse, hermitian=True))
        return np.asarray(self.plan.importance**2 * self._ratio * np.maximum(moment, 0.0))
