"""Clipping bounds: the only source of a sensitivity in this project."""

import math
from dataclasses import dataclass
from typing import Literal

from consortium.errors import PrivacyError

Unit = Literal["subject", "timepoint"]


@dataclass(frozen=True)
class Bound:
    """Every unit's contribution is scaled down to Euclidean norm ``norm`` before it is averaged.

    Raises PrivacyError if ``norm`` or ``influence`` is not a positive, finite number.
    """

    norm: float
    """B, in the statistic's own unit."""
    cone: bool = False
    """True if any two contributions have a non-negative inner product (positive semidefinite
    matrices). Two of them are then at most √2·B apart, not 2·B."""
    influence: float | None = None
    """Influence, for a statistic that is not a mean of clipped contributions, such as the minimizer
    of a strongly convex cost: n times the largest change when one of n units is replaced. ``norm``
    is then the largest norm of the statistic itself."""

    def __post_init__(self) -> None:
        for value in (self.norm, self.spread):
            if not (math.isfinite(value) and value > 0):
                msg = f"The clipping bound must be a positive, finite number, got {value}."
                raise PrivacyError(msg)

    @property
    def spread(self) -> float:
        """Largest Euclidean distance between two weighted contributions."""
        if self.influence is not None:
            return self.influence
        return self.norm * (math.sqrt(2.0) if self.cone else 2.0)

    @property
    def count_weight(self) -> float:
        """c, added by each unit to a count that is released with the statistic, at no loss.

        Replacing a unit moves the statistic by ``spread`` at most and the count not at all. Adding
        or removing one moves them by ``norm`` and by c. With c² = spread² - norm² neither is more
        than ``spread``. It is 0 where ``norm`` is not less.
        """
        part = self.norm / self.spread  # no square of a number that may be tiny or huge
        return self.spread * math.sqrt(max((1.0 - part) * (1.0 + part), 0.0))

    def sensitivity(self, units: int) -> float:
        """Return the L2 sensitivity of a sum of contributions, divided by ``units``.

        One contribution may be replaced, added or removed.

        Raises PrivacyError if ``units`` is 0.
        """
        if units < 1:
            msg = f"A sensitivity requires at least one unit, got {units}."
            raise PrivacyError(msg)
        return self.spread / units
