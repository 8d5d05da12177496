"""A number that a study is expected to reach, with how sure that is: for those who plan it."""

import math
from dataclasses import dataclass
from typing import Any

from consortium.base.formatting import number


@dataclass(frozen=True)
class Expectation:
    """One expected number of an analysis's forecast, with its uncertainty."""

    name: str
    """Its name, as "expected correlation"."""
    value: float
    low: float = math.nan
    high: float = math.nan
    """Limits of the expected range; NaN if the range is unknown."""
    rises: bool = True
    """Whether more is better."""
    ranged: str = ""
    """Meaning of the range, in a clause; empty without one."""

    @property
    def bounded(self) -> bool:
        """Whether it has a range."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def range(self) -> str:
        """Expected range, as text; empty without one."""
        return f"{number(self.low)} to {number(self.high)}" if self.bounded else ""

    def as_json(self) -> dict[str, Any]:
        """Return it as in the JSON of a plan and a design."""
        ends = (self.low, self.high) if self.bounded else (None, None)
        return {
            "name": self.name,
            "value": self.value,
            "range": list(ends) if self.bounded else None,
            "low": ends[0],
            "high": ends[1],
            "range_is": self.ranged if self.bounded else "",
            "more_is_better": self.rises,
        }
