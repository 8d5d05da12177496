"""Choice of the clipping bound of `glm` and the shares of its budget, only from public numbers.

A small height h, which is the bound relative to the usual norm of the outcomes, clips more and
needs less noise. Noise dominates the error with few participants, sampling with many.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from consortium.algorithms.glm.clipping import (
    BALANCE_SHARE,
    CLIPPED_SHARES,
    COLUMN_SHARE,
    DIVISOR_SHARE,
    MEAN_CLIP_FACTORS,
    PRODUCTS_SHARE,
    RESIDUAL_VARIANCE,
    SLOPE_DIVISOR_SHARE,
    SLOPE_REACHES,
    SLOPE_TAIL_SHARES,
    SPREAD_SHARE,
    SPREADS_SHARE,
    SQUARES_SHARE,
    TAIL_SHARES,
    UNITS_SHARE,
    Clipping,
    cut_of,
    slope_left,
    tail_bias,
)
from consortium.algorithms.glm.entries import COVARIATE_LIMIT, OUTCOME_LIMIT, UNCUT
from consortium.algorithms.glm.groups import PLANNED_WITHIN, Groups
from consortium.algorithms.glm.kernels.contrast_regression import SITE_VARIANCE
from consortium.algorithms.glm.kernels.covariate_adjustment import (
    LEAST_KEPT,
    LEVEL_CORRELATION,
    left_of_noise,
)
from consortium.algorithms.glm.kernels.group_counts import COUNT_NOISE, count_variances
from consortium.algorithms.glm.kernels.outcome_correlation import OutcomeCorrelation
from consortium.base.array import Array

_MOST_FOR_MEANS = 0.3  # largest share of a slope's budget
_SHARED_EFFECT = 0.3  # public standard deviations: its loss by clipping counts as an error
_MOST_SMOOTH = 1.5  # largest h of a smooth basis
_MOST_SHARED_LOSS = 0.13  # largest share of such an effect that clipping may remove
_LEAST_GAP = 0.02
_USUAL_GAP = 0.3


def _loss(clipping: Clipping, outcomes: int) -> float:
    """Return the squared error of a bound, with the biases from clipping as further errors.

    Clipping reduces an effect that all outcomes have in common, and removes long tails. Clipping
    the weights of a slope gives participants far from the mean less weight, which changes a slope
    that is not linear.
    """
    bent = (1 - clipping.left[0]) / 2
    tail = tail_bias(clipping.height, outcomes) if outcomes else 0.0
    return clipping.error**2 + _SHARED_EFFECT**2 * (clipping.lost**2 + bent**2) + tail**2


@dataclass(frozen=True, eq=False)
class Design:
    """Clipping bound and shares of the budget, chosen by public numbers."""

    outcomes: int
    """V."""
    covariates: int
    """p."""
    groups: Groups
    noise: float
    """Standard deviation of the noise over the sensitivity, of a release with the whole budget."""
    outcome_correlation: OutcomeCorrelation
    """R, stated correlation of the outcomes."""
    gap: float
    explained: float
    """As in `GlmParameters`."""
    importance: float = 0.0
    """κ, weight of the other coefficients relative to the contrast; 0 if they are not released."""
    averages: int = 0
    """G, number of groups of outcomes whose means are released."""
    released_means: int | None = None
    """Number of clipped columns whose means by site are released, which are those not declared."""
    grouped: bool = False
    """Whether a unit may have several rows."""
    lift: float = 1.0
    """Factor on the bounds of the covariates' products, for differences between a unit's rows."""

    @property
    def mean_shares(self) -> dict[str, float]:
        """Shares of the budget for the first round's noise in means of outcomes."""
        if not self.averages:
            return {}
        products = {"products": PRODUCTS_SHARE} if self.covariates else {}
        return products | {"spreads": SPREADS_SHARE}

    @property
    def clipped_columns(self) -> int:
        """Number of columns in the clipped vector: the covariates, and a slope's own column."""
        return self.covariates + self.groups.slope

    @property
    def unknown(self) -> int:
        """Number of clipped columns whose means by site are released."""
        return self.clipped_columns if self.released_means is None else self.released_means

    @property
    def unit(self) -> float:
        """ŝ, expected standard deviation of a slope's column within sites, given covariates.

        It is 1 for groups.
        """
        if not self.groups.slope:
            return 1.0
        return math.sqrt(self.groups.within * (1 - self.expected_explained))

    @property
    def covariate_reach(self) -> float:
        """B_x, clipping norm of a participant's columns together."""
        limit = UNCUT if self.noise == 0 else math.sqrt(2)
        return limit * math.sqrt(self.clipped_columns)

    @property
    def slope_product_reach(self) -> float:
        """Clipping norm of a slope's column times the covariates."""
        if self.noise == 0:
            return self.covariate_reach**2
        return 1.2 * math.sqrt(2 * self.covariates)

    @property
    def root(self) -> float:
        """g, trace of R^½ divided by V."""
        return self.outcome_correlation.root

    @property
    def slope(self) -> float:
        """γ₀, expected slope of the contrast on a covariate."""
        return self._slope_at(self.gap)

    def _slope_at(self, gap: float) -> float:
        return max(gap * self.usual_spread, _LEAST_GAP)

    @property
    def usual_spread(self) -> float:
        """Variance q (1 - q) of the group at a site, averaged over participants."""
        return float(self.groups.persons @ self.groups.spread / self.groups.persons.sum())

    @property
    def expected_explained(self) -> float:
        """R² of the contrast on the covariates if groups differ by `gap`, beyond the usual R²."""
        return self.explained_at(self.gap)

    def explained_at(self, gap: float) -> float:
        """Return R² of the contrast for groups that differ by ``gap``, beyond the usual R²."""
        surplus = max(gap**2 - _USUAL_GAP**2, 0.0)
        return min(surplus * self.usual_spread, 0.9)

    def parts_at(self, gap: float) -> tuple[float, float, float]:
        """Return sampling, privacy and first-round variance of the chosen bound for another gap.

        The shares of the budget are those of the plan. Noise in the covariates' moments and means
        counts in proportion to γ². The contrast loses the part that the covariates explain.

        Parameters
        ----------
        gap : float
            Difference of the groups in one covariate, in its standard deviations.
        """
        clipping = self.clipping
        sampling, privacy, leak = clipping.parts
        if self.noise == 0 or self.groups.slope or not self.covariates:
            return clipping.parts
        costs = self._costs(clipping.norm, clipping.contrast_reach, clipping.weights)
        before = self._leak(costs, clipping.shares, clipping.weights)
        grown = (self._slope_at(gap) / self.slope) ** 2
        costs |= {name: grown * costs[name] for name in ("moment", "means") if name in costs}
        leak *= self._leak(costs, clipping.shares, clipping.weights) / before
        left = (1 - self.explained_at(gap)) / (1 - self.expected_explained)
        return sampling / left, privacy / left**2, leak / left**2

    @property
    def product_reach(self) -> float:
        """Clipping norm of a participant's covariates times the contrast."""
        if not self.groups.slope:
            return self.clipping.contrast_reach * self.covariate_reach
        return self.slope_product_reach

    @cached_property
    def clipping(self) -> Clipping:
        """Clipping bound with the smallest error, including the bias from clipping.

        Without noise nothing is clipped, because bounds then cost nothing.
        """
        if self.noise == 0:
            return self._without_clipping
        shared = self.outcome_correlation.shared
        heights = [h for h in MEAN_CLIP_FACTORS if h <= _MOST_SMOOTH or not self._smooth]
        allowed = [h for h in heights if CLIPPED_SHARES[h] * shared <= _MOST_SHARED_LOSS] or [
            max(heights)
        ]
        reaches = SLOPE_REACHES if self.groups.slope else (None,)
        tried = [self.at_height(height, reach) for height in allowed for reach in reaches]
        return min(tried, key=lambda each: _loss(each, 0 if self._smooth else self.outcomes))

    @property
    def _smooth(self) -> bool:
        """Whether fewer numbers than outcomes are released. Few of these have long tails."""
        return self.outcome_correlation.released < self.outcomes

    @property
    def outcome_limit(self) -> float:
        """Limit of outcomes in the last round, in standard deviations."""
        return UNCUT if self.noise == 0 else OUTCOME_LIMIT

    @property
    def covariate_limit(self) -> float:
        """Limit of each covariate, in standard deviations."""
        return UNCUT if self.noise == 0 else COVARIATE_LIMIT

    @property
    def room(self) -> float:
        """Factor on bounds without noise, large enough that nothing is clipped."""
        return UNCUT if self.noise == 0 else 1.0

    def at_height(self, height: float, slope_reach: float | None = None) -> Clipping:
        """Return the bound at ``height`` times the usual norm, with all values that follow from it.

        Parameters
        ----------
        slope_reach : float, optional
            W_c of a slope (default: the smallest candidate).
        """
        clip = MEAN_CLIP_FACTORS[height]
        noise = self.noise
        groups = self.groups
        norm = height * math.sqrt(self.outcomes * self.root)
        slope_reach = slope_reach or min(SLOPE_REACHES)
        limit = slope_reach if groups.slope else self._contrast_reach(norm, clip)
        left = slope_left(slope_reach) if groups.slope else (1.0, 1.0)
        weights = groups.weights(limit)
        costs = self._costs(norm, limit, weights)
        shares = self._shares(costs)
        reach = self._reach(limit, costs, shares)
        information, squares = groups.information(weights)
        if groups.slope:  # w is in units of ŝ
            squares = float(groups.persons.sum())
            information = self.unit * groups.persons.sum()
        else:
            squares *= 1 - self.expected_explained
        privacy = (2 * reach * norm * noise) ** 2 * self.root / shares["effects"]
        leak = clip**2 * self._leak(costs, shares, weights)
        chance = (
            RESIDUAL_VARIANCE
            * self.outcome_correlation.resolved
            * (1.0 if self._smooth else cut_of(height, self.outcome_correlation.freedom))
        )
        parts = chance * clip**2 * left[1] * squares, privacy, leak
        divisor = 0.97 * clip * left[0] * information
        if not groups.slope:
            divisor *= 1 - self.expected_explained
        return Clipping(
            height=height,
            clip=clip,
            left=left,
            lost=CLIPPED_SHARES[height] * self.outcome_correlation.shared,
            contrast_reach=limit,
            reach=reach,
            divisor=COVARIATE_LIMIT * limit if groups.slope else reach,
            norm=norm,
            weights=weights,
            shares=shares,
            error=math.sqrt(sum(parts)) / divisor,
            parts=(parts[0] / divisor**2, parts[1] / divisor**2, parts[2] / divisor**2),
        )

    @property
    def fixed_shares(self) -> dict[str, float]:
        """Shares of the blocks that do not depend on their costs."""
        slope = self.groups.slope
        found = {
            "divisor": SLOPE_DIVISOR_SHARE if slope else DIVISOR_SHARE,
            "squares": SQUARES_SHARE,
            "spread": SPREAD_SHARE,
            "balance": BALANCE_SHARE,
        }
        found |= {"column": self.column_share} if self.column_share else {}
        return found | self.tail_shares | self.mean_shares

    @property
    def column_share(self) -> float:
        """Share for the contrast's own square.

        It is public for groups without units of several rows.
        """
        if self.groups.slope:
            return COLUMN_SHARE
        return UNITS_SHARE if self.grouped else 0.0

    @property
    def tail_shares(self) -> dict[str, float]:
        """Shares for the blocks on long tails; none for a smooth basis, which has few."""
        if self._smooth:
            return {}
        return SLOPE_TAIL_SHARES if self.groups.slope else TAIL_SHARES

    def _leak(self, costs: dict[str, float], shares: dict[str, float], weights: Array) -> float:
        """Return the variance of T from noise of the earlier rounds, without clipping.

        Formula: σ² Σ_j f_j K_j / share_j over the blocks, with K_j from `_costs`. The factor f is 0
        for the effects and the counts, and the remaining share after shrinking for G and the means.
        For groups, 0.25 Σ a_s² v_s is added for the counts. Without noise it is 0.
        """
        if self.noise == 0:
            return 0.0
        factors = {"effects": 0.0, "counts": 0.0, "contrast": self._left(costs, shares)}
        if "means" in costs:
            factors["means"] = self._lost_by_shrinking(shares["means"], weights)
        leak = sum(factors.get(name, 1.0) * cost / shares[name] for name, cost in costs.items())
        leak *= self.noise**2
        if self.groups.slope:
            return leak
        noise = COUNT_NOISE * self.noise / math.sqrt(shares["counts"])
        variances = count_variances(self.groups.persons, noise)
        return leak + SITE_VARIANCE * float(weights**2 @ variances)

    def _lost_by_shrinking(self, share: float, weights: Array) -> float:
        """Return the site-level variance from shrunk column means, relative to their noise.

        The shrinkage leaves 1 - k = e/(τ² + e) of the means, with e their noise variance at a site.
        The sum over sites of (a n)² τ² (1 - k) is the independent part. A correlation of 0.7 of
        this part with the sites' levels adds (0.7 Σ a n (1 - k))² τ². The reference is the variance
        of means that are not shrunk. The correlation is a choice.
        """
        persons = self.groups.persons
        between = 1 - PLANNED_WITHIN
        each = np.square(2 * self.covariate_reach * self.noise / persons) / share
        left = each / (between + each)
        weighted = weights * persons
        lost = np.square(weighted) @ left + np.square(LEVEL_CORRELATION * (weighted @ left))
        return float(between * lost / (np.square(weighted) @ each))

    def _shares(self, costs: dict[str, float]) -> dict[str, float]:
        """Return shares in proportion to the square roots of the blocks' costs.

        This allocation minimizes Σ K_j / share_j for a fixed sum of shares.
        """
        roots = {name: math.sqrt(cost) for name, cost in costs.items()}
        left = 1 - sum(self.fixed_shares.values())
        shares = {name: left * root / sum(roots.values()) for name, root in roots.items()}
        surplus = shares.get("means", 0.0) - _MOST_FOR_MEANS
        if self.groups.slope and surplus > 0:
            others = sum(shares.values()) - shares["means"]
            shares = {name: share * (1 + surplus / others) for name, share in shares.items()}
            shares["means"] = _MOST_FOR_MEANS
        return shares

    def _reach(self, limit: float, costs: dict[str, float], shares: dict[str, float]) -> float:
        """Return W, with room for other released coefficients and for noise in the slopes."""
        reach = limit * math.sqrt(1 + self.covariates * self.importance**2)
        if self.groups.slope or not self.covariates:
            return reach
        usual = math.sqrt(self.slope**2 + self._doubt(costs, shares))
        return reach + self._kept(costs, shares) * usual

    def _doubt(self, costs: dict[str, float], shares: dict[str, float]) -> float:
        """Return the expected squared norm of the noise in the slopes γ, before they are shrunk."""
        each = costs["contrast"] * self.unit**2 / (self.explained * shares["contrast"])
        return self.covariates * each * (self.noise / float(self.groups.persons.sum())) ** 2

    def _kept(self, costs: dict[str, float], shares: dict[str, float]) -> float:
        """Return the expected shrinkage factor of the slopes γ."""
        if not self.covariates:
            return 1.0
        square = self.slope**2
        return max(square / (square + self._doubt(costs, shares)), LEAST_KEPT)

    def _left(self, costs: dict[str, float], shares: dict[str, float]) -> float:
        """Return the expected share of the noise variance in the slopes γ after they are shrunk."""
        return left_of_noise(self._kept(costs, shares), self.covariates)

    @property
    def _without_clipping(self) -> Clipping:
        largest = UNCUT * math.sqrt(self.outcomes) * self.outcome_correlation.stretch
        usual = self.at_height(max(MEAN_CLIP_FACTORS))
        cut = 1.0 if self._smooth else cut_of(usual.height, self.outcome_correlation.freedom)
        parts = (usual.parts[0] / usual.clip**2 / cut, 0.0, 0.0)
        return replace(
            usual,
            clip=1.0,
            left=(1.0, 1.0),
            lost=0.0,
            contrast_reach=UNCUT if self.groups.slope else 1.0,
            reach=UNCUT,
            divisor=UNCUT**2 if self.groups.slope else UNCUT,
            norm=largest,
            weights=np.ones(len(self.groups.persons)),  # one-group sites inform on covariates
            error=math.sqrt(parts[0]),
            parts=parts,
        )

    def _contrast_reach(self, norm: float, clip: float) -> float:
        """Return the W_c with the smallest error of the contrast.

        Only sampling and the noise of T count.
        """
        groups = self.groups
        noise = self.noise
        fair = groups.largest[groups.spread > 0]
        limits = np.unique(np.concatenate([fair, np.linspace(0.5, 1.0, 11)]))
        each = groups.persons * groups.spread
        weights = np.broadcast_to(groups.weights(limits[:, None]), (len(limits), len(each)))
        shared = (2 * norm * limits * noise) ** 2 * self.root / (RESIDUAL_VARIANCE * clip**2)
        errors = (np.square(weights) @ each + shared) / np.square(weights @ each)
        return float(limits[int(np.argmin(errors))])

    def _costs(self, norm: float, limit: float, weights: Array) -> dict[str, float]:
        """Return K_j of every block: the variance that its noise adds with the whole budget."""
        reach = self.covariate_reach
        gap = self.slope
        explained = self.explained
        whole = limit * math.sqrt(1 + self.covariates * self.importance**2)
        costs = {"effects": (2 * whole * norm) ** 2 * self.root}
        sites = float(np.sum(weights**2))
        if self.covariates:
            product = self.slope_product_reach if self.groups.slope else limit * reach
            lifted = self.lift**2 * explained / self.unit**2
            costs["contrast"] = (2 * product) ** 2 * lifted
            costs["moment"] = reach**4 * gap**2 * lifted
        if not self.groups.slope:
            costs["counts"] = COUNT_NOISE**2 * SITE_VARIANCE * sites
        if self.unknown and self.groups.slope:
            each = (1 + gap**2) * SITE_VARIANCE * sites / self.unit**2
            costs["means"] = (2 * reach) ** 2 * each
        elif self.unknown:
            costs["means"] = (2 * reach) ** 2 * gap**2 * SITE_VARIANCE * sites / 2
        return costs
