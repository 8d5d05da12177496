"""A budget that is checked before it is spent, and an independent second opinion."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version

import dp_accounting
from dp_accounting.pld import PLDAccountant

from consortium.errors import BudgetError
from consortium.privacy.gdp import epsilon_of

_SLACK = 1e-9  # relative; covers the rounding of a sum of squares


@dataclass(frozen=True)
class Budget:
    """Losses so far and the most they may come to, as squares of μ.

    Parameters
    ----------
    limit : float
        μ that the whole study may cost.
    spent : float
        Sum of the squared μ of all releases so far.
    """

    limit: float
    spent: float = 0.0

    @property
    def mu(self) -> float:
        """μ of everything so far."""
        return math.sqrt(self.spent)

    def charge(self, mu: float, what: str) -> Budget:
        """Return the budget after one more release.

        Raises
        ------
        BudgetError
            If the release would break the promise; nothing is charged.
        """
        spent = self.spent + mu * mu
        if not spent <= self.limit**2 * (1 + _SLACK):
            raise BudgetError(
                f"{what} would bring the loss to μ = {math.sqrt(spent):.4g}, over the promised "
                f"{self.limit:.4g}; ask for fewer rounds or raise epsilon."
            )
        return Budget(self.limit, spent)


@dataclass(frozen=True)
class CrossCheck:
    """ε as another library computes it."""

    library: str
    version: str
    epsilon: float


def cross_check(losses: Iterable[float], delta: float) -> CrossCheck:
    """Compose the releases with dp-accounting's privacy loss distributions.

    Parameters
    ----------
    losses : iterable of float
        μ of every release; equal ones are composed together.
    delta : float
    """
    counts: dict[float, int] = {}
    for mu in losses:
        counts[mu] = counts.get(mu, 0) + 1
    epsilon = 0.0
    if any(math.isinf(mu) for mu in counts):
        epsilon = math.inf
    elif counts:
        accountant = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
        for mu, count in counts.items():
            if mu > 0:
                accountant.compose(dp_accounting.GaussianDpEvent(1.0 / mu), count)
        epsilon = float(accountant.get_epsilon(delta))
    return CrossCheck("dp-accounting", version("dp-accounting"), epsilon)


def person_loss(mu: float, volumes: int) -> float:
    """μ for a person who contributes ``volumes`` timepoints, each protected with μ: T·μ."""
    return mu * volumes


def total_epsilon(losses: Iterable[float], delta: float) -> float:
    """ε of the composition of Gaussian releases at δ."""
    return epsilon_of(math.sqrt(math.fsum(mu * mu for mu in losses)), delta)
