"""Released sums of the last round, rescaled and corrected, with prior values and possible bias.

`expected_of` collects the values that are known before the round. `ContrastRound` rescales the
released sums to all participants and corrects them for long tails. `estimate_effects` takes both.

Symbols follow docs/explanation/glm-proof.md: a_s, n_s and q_s are weight, participants and share of
the second group of site s. The contrast's slopes on the covariates are γ, and x̂_s are a site's
covariate means. N_a is Σ a n q (1 - q), and N_u is Σ a² n q (1 - q).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import PlannedRelease, Release
from consortium.algorithms.glm.centring import Centring
from consortium.algorithms.glm.clipping import (
    clipped_share,
    cut_of,
)
from consortium.algorithms.glm.kernels.contrast_regression import (
    PRIOR_WIDTH,
    ContrastSums,
    Effects,
    Estimates,
    Expected,
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
    lost_tails,
    no_tails,
    tail_loss_of_groups,
    tail_loss_of_slope,
    tail_losses_of_others,
)
from consortium.algorithms.glm.learned import Learned, block_of
from consortium.algorithms.glm.ring import clips_in, pair_weight
from consortium.base.array import Array

if TYPE_CHECKING:
    from consortium.algorithms.glm.centre import Glm

# Squared distance between initial and learned centre, in standard deviations, at which about
# 63 % of the participants who would otherwise not be clipped are counted as clipped.
_FAR = 8.0
_ALONE = 0.25  # share of the weights' imbalance that does not cancel against learned centres


def expected_of(plan: Glm, centring: Centring, learned: Learned) -> Expected:
    """Return the values about the last round that are known before its sums are read.

    Variance of the adjustment: (k' σ_G² + σ_A² ‖γ‖² (p + 1)/(2p)) / ŝ², if each of p covariates
    explains β²/p. The share k' of the noise of G remains after the slopes were shrunk
    (`left_of_noise`). The other term is the mean over covariates of the variance of (ΔA γ)_i: A is
    symmetric, and its entries off the diagonal have half the variance. With counted groups, an
    error of a count moves G by the site's covariate means, which adds Σ a_s² v_s times the mean of
    x̂_s² over covariates.

    Variance of sites' levels in T: Σ γ_k² V_k / ŝ² + Σ a_s² v_s. V_k are `Adjustment.levels`, from
    noise in the sites' means of covariate k and from the part that shrinking removed.

    Source: docs/explanation/glm-proof.md.
    """
    adjustment = learned.adjustment
    noise = learned.noise
    clipping = plan.clipping
    slopes = adjustment.slopes
    left = left_of_noise(adjustment.kept, plan.covariates)
    counts = 0.0
    if plan.covariates and not plan.columns.slope:
        # A wrong count is confounded with the site's covariate means, which G does not contain.
        counts = float(
            centring.weights**2
            * centring.count_variances
            @ np.square(adjustment.centres).mean(axis=1)
        )
    moments = left * noise["contrast"] ** 2 + counts
    if plan.covariates:
        share = (plan.covariates + 1) / (2 * plan.covariates)
        moments += share * noise["moment"] ** 2 * float(slopes @ slopes)
    offsets = adjustment.squared(adjustment.levels)
    persons = float(centring.groups.persons.sum())
    unit = learned.spread
    divisor = adjustment.information * (1 - adjustment.explained)
    information, squares = centring.information
    if plan.design.grouped:
        squares *= adjustment.information / information
    squares *= 1 - adjustment.explained
    if plan.columns.slope:
        divisor = clipping.left[0] * unit * persons
        squares = clipping.left[1] * persons
    parts = centring.weights * centring.groups.persons * centring.groups.spread
    return Expected(
        divisor=clipping.clip * divisor,
        squares=squares,
        clip=clipping.clip,
        persons=persons,
        explained=plan.parameters.explained,
        root=plan.outcome_correlation.roots / learned.norms.present**2,
        adjustment_noise=moments / unit**2,
        offset_noise=offsets / unit**2 + centring.offsets,
        missed=float(learned.missed()),
        count_noise=counts,
        unevenness=_unevenness(parts / max(parts.sum(), 1e-12), centring.groups.persons / persons),
        presence_variance=learned.norms.shares.relative_variance,
        clipped_share=_clipped_share(plan, learned),
        cut=cut_of(clipping.height, plan.outcome_correlation.freedom),
        bias=cut_bias(plan, learned),
        width=float(
            np.hypot(PRIOR_WIDTH, learned.norms.log_square_error / 2)
        ),  # c depends on the learned scale
    )


def known_effects(plan: Glm, learned: Learned) -> Array:
    """Return the open cohort's slopes, which sites subtracted, in learned deviations: (1 + p) x V.

    They are 0 without an open cohort.
    """
    if plan.open is None:
        return np.zeros((1 + plan.covariates, plan.outcomes))
    return np.asarray(plan.open.slopes.T / learned.scales)


def cut_bias(plan: Glm, learned: Learned) -> float:
    """Return the possible bias of a group's effects from the clipping of covariates."""
    if plan.columns.slope or not plan.covariates or plan.shape.noise == 0:
        return 0.0
    return learned.adjustment.cut_bias(plan.parameters.explained)


def _unevenness(information: Array, persons: Array) -> float:
    """Return Σ_s of the squared share of a site's level that enters T per unit of b.

    Formula: ¾ Σ (I_s/ΣI - n_s/n)² + ¼ Σ (I_s/ΣI)², with I_s = a_s n_s q_s (1 - q_s). If clipping
    unbalances each site in proportion to its information, site levels enter T with I_s/ΣI. The
    learned centres, means over participants, already contain the levels with n_s/n, which cancels.
    A quarter is treated as if nothing cancelled, since sites may differ from proportion. The
    quarter is a choice.
    """
    each = (1 - _ALONE) * np.square(information - persons) + _ALONE * np.square(information)
    return float(each.sum())


def _clipped_share(plan: Glm, learned: Learned) -> float:
    """Return the share of the participants who are clipped, with the learned centres.

    Formula: 1 - (1 - p) exp(-d²/8), with p the planned share and d² the mean squared distance of
    the learned from the initial centres in standard deviations. If this distance is large, the
    learned centre may still be off, and more participants are clipped. The 8 is a choice.
    """
    far = float(np.mean(np.square(learned.norms.shift))) / learned.norms.factor**2
    usual = clipped_share(plan.clipping.height, plan.outcome_correlation.freedom)
    return 1 - (1 - usual) * float(np.exp(-far / _FAR))


class ContrastRound:
    """Released sums of the last round, after R^¼ and in units of sums over participants."""

    def __init__(
        self,
        plan: Glm,
        centring: Centring,
        learned: Learned,
        stage: PlannedRelease,
        release: Release,
    ) -> None:
        self.plan = plan
        self.centring = centring
        persons = centring.groups.persons
        total = float(persons.sum())
        present = learned.norms.present
        sums, noise = stage.block_sums(release, total)
        scale = plan.clipping.reach**2 * total / pair_weight(persons)
        rows = sums["effects"].reshape(plan.rows, -1).T
        # A participant who lacks an outcome adds 0, so the sum is divided by the share present.
        self.rows = plan.outcome_correlation.decode(rows).T / present
        self.lost_tails = self._lost(sums, noise, learned)
        self.rows += self.lost_tails.shift
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
        divisor = float(sums["divisor"][0])
        spread = float(sums["spread"][0]) / total
        single = squares[: plan.outcomes]
        tail_variance = self.lost_tails.variance()[0]
        if plan.rows > 1:  # the table of coefficients has one number for all outcomes
            tail_variance = np.full_like(tail_variance, tail_variance.mean())
        self.outcomes = ContrastSums(
            effects=self.rows[0],
            divisor=divisor,
            squares=single,
            spread=spread,
            balance=sums["balance"],
            noise=own,
            tail_variance=tail_variance,
            widest=self._widest(stage),
        )
        self._squares = squares[plan.outcomes :]
        self._take_means(sums, noise | {"squares": own["squares"]}, total)

    def _widest(self, stage: PlannedRelease) -> float:
        """Return the clipping norm of pairs' squared differences, scaled to all participants."""
        if self.plan.shape.noise == 0:
            return math.inf
        largest, _ = clips_in(block_of(stage, "squares"))
        return self.plan.clipping.reach**2 * float(self.centring.groups.persons.sum()) * largest

    def _take_means(
        self, sums: Mapping[str, Array], noise: Mapping[str, float], total: float
    ) -> None:
        """Store the sums for means of groups of outcomes; zeros if the study names no groups."""
        shape = self.plan.covariates, len(self.plan.columns.averages)
        self._products = sums.get("products", np.zeros(shape)).reshape(shape)
        self._spreads = sums.get("spreads", np.zeros(shape[1])) / total
        self._noise = {
            "squares": noise["squares"],
            "products": noise.get("products", 0.0),
            "spreads": noise.get("spreads", 0.0) / total,
        }

    def _lost(self, sums: dict[str, Array], noise: dict[str, float], learned: Learned) -> LostTails:
        """Return the estimated loss of long tails by clipping; 0 if it is not released."""
        plan = self.plan
        groups = self.centring.groups
        adjustment = learned.adjustment
        if "lost" not in sums:
            return no_tails(plan.outcomes, plan.rows)
        present = learned.norms.present
        persons = float(groups.persons.sum())
        lost = plan.outcome_correlation.decode(sums["lost"][:, None])[:, 0] / present
        tail = float(sums["tail"][0] / present.mean())
        if plan.columns.slope:
            relation = tail_loss_of_slope(
                persons, plan.clipping.left[0], plan.clipping.contrast_reach
            )
        else:
            part = float(groups.persons @ groups.proportions) / persons
            information = adjustment.information * (1 - adjustment.explained)
            relation = tail_loss_of_groups(persons, information, part)
        relations = [relation]
        if plan.rows > 1:
            relations += tail_losses_of_others(persons, self._squares_of_others(adjustment))
        return lost_tails(
            TailSums(lost, tail, sums["lean"], noise), plan.outcome_correlation, persons, relations
        )

    def means(self, expected: Expected, found: Effects, learned: Learned) -> Estimates:
        """Return the effects on the means of groups of outcomes."""
        averages = self.plan.columns.averages
        present = learned.norms.present
        own = self.outcomes.noise["effects"] / float(present.mean())
        outcomes = replace(self.outcomes, noise=self.outcomes.noise | {"effects": own})
        sums = MeanSums(
            squares=self._squares,
            products=self._products,
            spreads=self._spreads,
            noise=self._noise,
            missed=np.asarray(learned.missed(np.square(averages).sum(axis=1))),
            tail_variance=self.lost_tails.variance(averages)[0],
        )
        correlation = self.plan.parameters.norms.correlation
        adjustment = learned.adjustment
        offset = averages @ known_effects(self.plan, learned)[0]
        return mean_effects(
            sums=outcomes,
            means=sums,
            averages=averages,
            expected=expected,
            found=found,
            adjustment=adjustment,
            correlation=correlation,
            turned=self.plan.outcome_correlation.decode(averages.T),
            offset=offset,
        )

    def coefficients(self, expected: Expected, found: Effects, learned: Learned) -> Coefficients:
        """Return all coefficients of the formula."""
        solved = solve_coefficients(
            rows=self.rows,
            adjustment=learned.adjustment,
            found=found,
            importance=self.plan.importance,
            weight_ratio=self._weight_ratio,
            noise=learned.noise,
            expected=expected,
            lost_tails=self.lost_tails,
        )
        return replace(solved, values=solved.values + known_effects(self.plan, learned))

    @property
    def _weight_ratio(self) -> float:
        """Σ a² n / Σ a n."""
        weights = self.centring.weights
        present = self.centring.groups.persons
        return float(weights**2 @ present) / float(weights @ present)

    def _squares_of_others(self, adjustment: Adjustment) -> Array:
        """Return the expected Σ w² of the other coefficients.

        Formula: κ² W_c² (Σ a² n / Σ a n) Σ a (x - x̂_s)², with the moment from the inverse that was
        stabilized against noise.
        """
        moment = np.diag(np.linalg.pinv(adjustment.inverse, hermitian=True))
        return np.asarray(self.plan.importance**2 * self._weight_ratio * np.maximum(moment, 0.0))
