"""A number that a study is expected to reach, with how sure that is: for those who plan it."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Expectation:
    """One number of a forecast.

    Parameters
    ----------
    name : str
        What it is, as a noun: "expected correlation".
    low, high : float
        Where it is expected to lie; NaN where that can't be told.
    rises : bool
        Whether more is better.
    ranged : str
        What the range is, in a clause; empty without one.
    """

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    rises: bool = True
    ranged: str = ""

    @property
    def bounded(self) -> bool:
        """Whether it has a range."""
        return math.isfinite(self.low) and math.isfinite(self.high)
