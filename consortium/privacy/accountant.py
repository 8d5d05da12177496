"""A budget that is checked before it is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass

from consortium.errors import BudgetError

_SLACK = 1e-9  # relative; covers the rounding of a sum of squares


@dataclass(frozen=True)
class Budget:
    """Losses so far and the most they may come to, as squares of μ."""

    limit: float
    """μ that the whole study may cost."""
    spent: float = 0.0
    """Sum of the squared μ of all releases so far."""

    @property
    def mu(self) -> float:
        """μ of everything so far."""
        return math.sqrt(self.spent)

    def charge(self, mu: float, what: str) -> Budget:
        """Return the budget after one more release.

        Raises BudgetError if the release would break the promise; nothing is charged.
        """
        spent = self.spent + mu * mu
        if not spent <= self.limit**2 * (1 + _SLACK):
            raise BudgetError(
                f"{what} would bring the loss to μ = {math.sqrt(spent):.4g}, over the promised "
                f"{self.limit:.4g}; ask for fewer rounds or raise epsilon."
            )
        return Budget(self.limit, spent)


def person_loss(mu: float, volumes: int) -> float:
    """μ for a person who contributes ``volumes`` timepoints, each protected with μ: T·μ."""
    return mu * volumes
