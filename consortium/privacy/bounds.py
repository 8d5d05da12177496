"""Clipping bounds: the only source of a sensitivity in this project."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from consortium.errors import PrivacyError

Unit = Literal["subject", "timepoint"]


@dataclass(frozen=True)
class Bound:
    """Every unit's contribution is scaled down to Euclidean norm ``norm`` before it is averaged.

    Parameters
    ----------
    norm : float
        B, in the statistic's own unit.
    cone : bool
        True if any two contributions have a non-negative inner product (positive
        semidefinite matrices). Two of them are then at most √2·B apart, not 2·B.

    Raises
    ------
    PrivacyError
        If ``norm`` is not a positive, finite number.
    """

    norm: float
    cone: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.norm) and self.norm > 0):
            msg = f"The clipping bound is {self.norm}; give a positive, finite number."
            raise PrivacyError(msg)

    @property
    def spread(self) -> float:
        """Largest Euclidean distance between two clipped contributions."""
        return self.norm * (math.sqrt(2.0) if self.cone else 2.0)

    def sensitivity(self, units: int) -> float:
        """L2 sensitivity of the mean over ``units`` contributions when one is replaced.

        Raises
        ------
        PrivacyError
            If there are no units.
        """
        if units < 1:
            msg = f"A mean over {units} units has no sensitivity; a site needs at least one unit."
            raise PrivacyError(msg)
        return self.spread / units
