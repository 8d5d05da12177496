"""The clipping bound of `glm` and its shares of the budget, from public numbers only.

Where h, the bound over what outcomes usually are, is small, more is clipped and the noise is less:
noise rules where persons are few, and chance where they are many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from consortium.algorithms.base import Array
from consortium.algorithms.glm.choice import (
    CLIPPED,
    DIVISOR_SHARE,
    PRODUCTS_SHARE,
    SLOPE_MOST,
    SLOPE_PAIR_REACH,
    SLOPE_REACH,
    SPREAD_SHARE,
    SPREADS_SHARE,
    SQUARES_SHARE,
    WITHIN,
    Choice,
)
from consortium.algorithms.glm.entries import COVARIATE_LIMIT, OUTCOME_LIMIT
from consortium.algorithms.glm.groups import Groups
from consortium.kernels.contrast_regression import SITE_VARIANCE, root_diagonal
from consortium.kernels.group_counts import doubts_of

_SLOPE_DIVISOR = 4.0
_MOST_FOR_MEANS = 0.3  # of the budget, of a slope
_ROOMY = 1e3  # reach that nobody is beyond
_PRICE_OF_CLIPPING = 0.3
_LEAST_GAP = 0.02
_USUAL_GAP = 0.3


@dataclass(frozen=True, eq=False)
class Design:
    """Public numbers that a clipping bound is chosen by.

    Parameters
    ----------
    outcomes : int
        V.
    covariates : int
        p.
    groups : Groups
    noise : float
        Standard deviation over sensitivity of a release with the whole budget.
    correlation : float
        Of two outcomes.
    gap, explained : float
        As in `GlmParameters`.
    importance : float
        κ, of the other coefficients beside the contrast; 0 if they are not released.
    counted : bool
        Whether the groups' numbers of persons are released, so that those in ``groups`` are only
        what is expected.
    averages : int
        G, means of outcomes that are asked for.
    """

    outcomes: int
    covariates: int
    groups: Groups
    noise: float
    correlation: float
    gap: float
    explained: float
    importance: float = 0.0
    counted: bool = False
    averages: int = 0

    @property
    def mean_shares(self) -> dict[str, float]:
        """Parts of the budget that tell what noise of the rounds before does to means of outcomes.

        Where no noisy round comes before, nothing is let through and nothing needs to be told.
        """
        if not self.averages or not (self.clipped_columns or self.counted):
            return {}
        products = {"products": PRODUCTS_SHARE} if self.covariates else {}
        return products | {"spreads": SPREADS_SHARE}

    @property
    def clipped_columns(self) -> int:
        """Columns that a person is clipped by: the covariates, and a slope's own column."""
        return self.covariates + self.groups.slope

    @property
    def covariate_reach(self) -> float:
        """B_x, norm that a person's columns together are clipped to."""
        limit = COVARIATE_LIMIT if self.noise == 0 else math.sqrt(2)
        return limit * math.sqrt(self.clipped_columns)

    @property
    def product_reach(self) -> float:
        """Norm that a person's covariates times the contrast are clipped to."""
        if not self.groups.slope:
            return self.choice.contrast_reach * self.covariate_reach
        return self._product_reach

    @property
    def _product_reach(self) -> float:
        if self.noise == 0:
            return self.covariate_reach**2
        return 1.2 * math.sqrt(2 * self.covariates)

    @property
    def root(self) -> float:
        """g, trace of R^½ over V."""
        return root_diagonal(self.outcomes, self.correlation)

    @cached_property
    def choice(self) -> Choice:
        """The clipping bound with the least error, clipping itself being an error too.

        Without noise nothing is clipped: bounds cost nothing then.
        """
        if self.noise == 0:
            return self._without_clipping
        tried = [self._with_height(height) for height in CLIPPED]
        return min(tried, key=lambda c: c.error**2 + (_PRICE_OF_CLIPPING * (1 - c.clip)) ** 2)

    def _with_height(self, height: float) -> Choice:
        clip, noise, groups = CLIPPED[height], self.noise, self.groups
        norm = height * math.sqrt(self.outcomes * self.root)
        limit = SLOPE_REACH if groups.slope else self._contrast_reach(norm, clip)
        weights = groups.weights(limit)
        costs = self._costs(norm, limit, weights)
        shares = self._shares(costs)
        reach = self._reach(limit, shares)
        information, squares = groups.information(weights)
        privacy = (2 * reach * norm * noise) ** 2 * self.root / shares["effects"]
        leak = self._leak(costs, shares, weights)
        parts = WITHIN * clip**2 * squares, privacy, leak
        divisor = 0.97 * clip * information * (1 - self._expected_explained)
        # Where parts are released, nobody knows the largest beforehand.
        fair = 1.0 if self.counted else float(groups.largest[groups.spread > 0].max())
        return Choice(
            height,
            clip,
            limit,
            reach,
            SLOPE_PAIR_REACH if groups.slope else reach,
            SLOPE_MOST,
            _SLOPE_DIVISOR if groups.slope else reach * fair,
            norm,
            weights,
            shares,
            math.sqrt(sum(parts)) / divisor,
            (parts[0] / divisor**2, parts[1] / divisor**2, parts[2] / divisor**2),
        )

    def _leak(self, costs: dict[str, float], shares: dict[str, float], weights: Array) -> float:
        """What the noise of the rounds before adds to the error's square."""
        ruled = ("effects", "counts")
        leak = self.noise**2 * sum(c / shares[n] for n, c in costs.items() if n not in ruled)
        if not self.counted:
            return leak
        doubts = doubts_of(self.groups.persons, self.noise / math.sqrt(shares["counts"]))
        return leak + SITE_VARIANCE * float(weights**2 @ doubts)

    def _shares(self, costs: dict[str, float]) -> dict[str, float]:
        """Split the budget in proportion to the roots of what the blocks cost."""
        roots = {name: math.sqrt(cost) for name, cost in costs.items()}
        left = 1 - DIVISOR_SHARE - SQUARES_SHARE - SPREAD_SHARE - sum(self.mean_shares.values())
        shares = {name: left * root / sum(roots.values()) for name, root in roots.items()}
        surplus = shares.get("means", 0.0) - _MOST_FOR_MEANS
        if self.groups.slope and surplus > 0:
            others = sum(shares.values()) - shares["means"]
            shares = {name: share * (1 + surplus / others) for name, share in shares.items()}
            shares["means"] = _MOST_FOR_MEANS
        return shares

    def _reach(self, limit: float, shares: dict[str, float]) -> float:
        """W, with room for the coefficients that come along and for what noise does to slopes."""
        reach = limit * math.sqrt(1 + self.covariates * self.importance**2)
        if self.groups.slope or not self.covariates:
            return reach
        doubt = 2 * limit * self.covariate_reach * self.noise / math.sqrt(shares["contrast"])
        doubt /= float(self.groups.persons.sum())
        return reach + math.sqrt(self._slope**2 + self.covariates * doubt**2)

    @property
    def _without_clipping(self) -> Choice:
        largest = OUTCOME_LIMIT * math.sqrt(self.outcomes) / (1 - self.correlation) ** 0.25
        usual = self._with_height(max(CLIPPED))
        parts = (usual.parts[0] / usual.clip**2, 0.0, 0.0)
        return replace(
            usual,
            clip=1.0,
            contrast_reach=1.0,
            reach=_ROOMY,
            pair_reach=_ROOMY,
            most=_ROOMY,
            divisor=_ROOMY,
            norm=largest,
            weights=np.ones(len(self.groups.persons)),  # one-group sites tell of covariates
            error=math.sqrt(parts[0]),
            parts=parts,
        )

    def _contrast_reach(self, norm: float, clip: float) -> float:
        """W_c with the least error of the contrast alone."""
        groups, noise = self.groups, self.noise
        fair = groups.largest[groups.spread > 0]
        limits = np.unique(np.concatenate([fair, np.linspace(0.5, 1.0, 11)]))
        each = groups.persons * groups.spread
        weights = np.broadcast_to(groups.weights(limits[:, None]), (len(limits), len(each)))
        shared = (2 * norm * limits * noise) ** 2 * self.root / (WITHIN * clip**2)
        errors = (np.square(weights) @ each + shared) / np.square(weights @ each)
        return float(limits[int(np.argmin(errors))])

    def _costs(self, norm: float, limit: float, weights: Array) -> dict[str, float]:
        """K_j: what the noise of each block alone, with the whole budget, adds to the error."""
        reach, gap, explained = self.covariate_reach, self._slope, self.explained
        whole = limit * math.sqrt(1 + self.covariates * self.importance**2)
        costs = {"effects": (2 * whole * norm) ** 2 * self.root}
        sites = float(np.sum(weights**2))
        if self.covariates:
            product = self._product_reach if self.groups.slope else limit * reach
            costs["contrast"] = (2 * product) ** 2 * explained
            costs["moment"] = reach**4 * gap**2 * explained
            costs["means"] = (2 * reach) ** 2 * gap**2 * SITE_VARIANCE * sites / 2
        if self.counted:
            costs["counts"] = SITE_VARIANCE * sites
        if self.groups.slope:
            costs["means"] = (2 * reach) ** 2 * (1 + gap**2) * SITE_VARIANCE * sites
        return costs

    @property
    def _slope(self) -> float:
        """γ₀, of the contrast on a covariate."""
        return max(self.gap * self._usual_spread, _LEAST_GAP)

    @property
    def _usual_spread(self) -> float:
        return float(self.groups.persons @ self.groups.spread / self.groups.persons.sum())

    @property
    def _expected_explained(self) -> float:
        """R² that groups as far apart as `gap` lead to, beyond what is usual."""
        surplus = max(self.gap**2 - _USUAL_GAP**2, 0.0)
        return min(surplus * self._usual_spread, 0.9)
