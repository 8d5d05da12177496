"""What everybody knows of a study of `glm` before it starts, and what follows from that alone."""

import math
from dataclasses import dataclass

from consortium.algorithms.glm.choice import PRODUCTS_SHARE, SPREADS_SHARE
from consortium.algorithms.glm.entries import COVARIATE_LIMIT
from consortium.algorithms.glm.groups import Groups
from consortium.algorithms.glm.kernels.outcome_correlation import OutcomeCorrelation

_LEAST_GAP = 0.02
_USUAL_GAP = 0.3


@dataclass(frozen=True, eq=False)
class PublicNumbers:
    """What a clipping bound is chosen by."""

    outcomes: int
    """V."""
    covariates: int
    """p."""
    groups: Groups
    noise: float
    """Standard deviation over sensitivity of a release with the whole budget."""
    likeness: OutcomeCorrelation
    """R of the outcomes."""
    gap: float
    explained: float
    """As in `GlmParameters`."""
    importance: float = 0.0
    """κ, of the other coefficients beside the contrast; 0 if they are not released."""
    counted: bool = False
    """Whether the groups' numbers of persons are released, so that those in ``groups`` are only
    what is expected."""
    averages: int = 0
    """G, means of outcomes that are asked for."""
    hidden: int | None = None
    """Clipped columns whose means by site are released: all that are not declared."""
    grouped: bool = False
    """Whether a unit may have several rows."""
    lift: float = 1.0
    """By how much what these differ by raises the bounds of the covariates' products."""

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
    def unknown(self) -> int:
        """Clipped columns whose means by site are released."""
        return self.clipped_columns if self.hidden is None else self.hidden

    @property
    def unit(self) -> float:
        """ŝ, expected deviation of a slope's column within sites, beside covariates; else 1."""
        if not self.groups.slope:
            return 1.0
        return math.sqrt(self.groups.within * (1 - self.expected_explained))

    @property
    def covariate_reach(self) -> float:
        """B_x, norm that a person's columns together are clipped to."""
        limit = COVARIATE_LIMIT if self.noise == 0 else math.sqrt(2)
        return limit * math.sqrt(self.clipped_columns)

    @property
    def slope_product_reach(self) -> float:
        """The norm that a column with limits times the covariates is clipped to."""
        if self.noise == 0:
            return self.covariate_reach**2
        return 1.2 * math.sqrt(2 * self.covariates)

    @property
    def root(self) -> float:
        """g, trace of R^½ over V."""
        return self.likeness.root

    @property
    def slope(self) -> float:
        """γ₀, of the contrast on a covariate."""
        return max(self.gap * self.usual_spread, _LEAST_GAP)

    @property
    def usual_spread(self) -> float:
        """Variance q (1 - q) of the group of a usual person's site."""
        return float(self.groups.persons @ self.groups.spread / self.groups.persons.sum())

    @property
    def expected_explained(self) -> float:
        """R² that groups as far apart as `gap` lead to, beyond what is usual."""
        surplus = max(self.gap**2 - _USUAL_GAP**2, 0.0)
        return min(surplus * self.usual_spread, 0.9)
