"""Definition of a unit of privacy: participants with several sessions, or families."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field, StringConstraints, model_validator

from consortium.base.array import Array
from consortium.base.frozen_model import FrozenModel

MOST_ROWS_OF_UNIT = 20
_STEEPEST = 1e5
_HALVINGS = 100
_RARE = 1e-12

ColumnName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class Units(FrozenModel):
    """Families, or participants with several sessions, each protected and counted as one."""

    family: ColumnName | None = None
    """Column of each site's participants.tsv with the family: family_id, unless the sites' policies
    name another. Participants with the same value are one unit. A participant without a value is a
    unit."""
    sessions: bool = False
    """Whether each session of a participant is a row of its own: by a column session_id next to
    participant_id, by sessions.tsv, and by ses- in the names of files."""
    most_rows: int = Field(default=5, ge=2, le=MOST_ROWS_OF_UNIT)
    """Rows of a unit that are used, the first by participant and session; public."""
    correlation: float = Field(default=0.5, ge=0, le=0.95)
    """Correlation of an outcome in two rows of a unit that is worked with. A wrong one costs
    precision only."""
    usual_rows: float = Field(default=1.0, ge=1, le=MOST_ROWS_OF_UNIT)
    """Rows that a unit usually has, for the forecast: the harmonic mean (of half with one and half
    with three 1.5). By default as if it had one."""
    differ: float = Field(default=0.0, ge=0, le=1)
    """Fraction of the units whose rows differ in the contrast, as patients with healthy relatives.
    For a slope, the fraction of its column's variance within units. Above 0, bounds leave room for
    these differences. By default 0, as for sessions of patients."""

    @model_validator(mode="after")
    def _of_something(self) -> Units:
        if self.family is None and not self.sessions:
            raise ValueError("give 'family', the column of families, or 'sessions: true'")
        return self

    @property
    def deviation(self) -> float:
        """Standard deviation of a unit's mean over that of a row, where it is public."""
        rows = min(self.usual_rows, self.most_rows)
        return float(((1 + (rows - 1) * self.correlation) / rows) ** 0.5)

    @property
    def largest(self) -> float:
        """Largest weight of what rows differ by, times the rows: of one that is not bounded."""
        return float(self._weight(self.most_rows))

    def _weight(self, rows: Any) -> Any:
        return (1 + (rows - 1) * self.correlation) / (1 - self.correlation)

    @property
    def sizes(self) -> Array:
        """Parts of the units with 1, 2 … rows: of most entropy with ``usual_rows``."""
        each = 1.0 / np.arange(1, self.most_rows + 1)
        wanted = max(1.0 / self.usual_rows, each[-1])
        low = -_STEEPEST
        high = _STEEPEST
        parts = np.ones(len(each))
        for _ in range(_HALVINGS):
            tilt = (low + high) / 2
            parts = np.exp(tilt * each - max(tilt, tilt * each[-1]))
            parts /= parts.sum()
            low, high = (tilt, high) if parts @ each < wanted else (low, tilt)
        return parts

    def expected_squares(
        self, squares: Array, most: float | Array, *, slope: bool = False
    ) -> tuple[Array, Array]:
        """Return <t, t> of a usual unit of each site, and the variance of <t, u> over a mean's.

        For groups ``differ`` is the fraction of units that have both, and their mixture is as if
        each row were drawn by itself. For a slope it is the fraction of t² within units.

        Parameters
        ----------
        squares : array, length S
            Mean square of a row's t about its site's mean: q_s (1 - q_s) for groups.
        most : float, or array of length S
            Maximum of <t, t>. Its minimum is that of units with one row.
        """
        rows = np.arange(1, self.most_rows + 1)[:, None]
        sizes = self.sizes[:, None]
        apart = squares * (rows - 1) / rows
        own = squares
        part = np.full(len(rows), self.differ)
        part = part[:, None]
        if not slope:
            q = 0.5 - np.sqrt(np.maximum(0.25 - squares, 0.0))
            chance = np.maximum(1 - q**rows - (1 - q) ** rows, _RARE)  # that a unit has both
            part = np.minimum(self.differ * chance / (sizes * chance).sum(axis=0), 1.0)
            part = part * (rows > 1)
            apart = apart / chance
            own = (q - q**rows) / chance * (1 - 2 * q) + q**2
        whole = apart * self._weight(rows)
        means = np.maximum(own - apart, 0.0)
        within = np.clip(most - means, np.minimum(apart, whole), whole)
        between = np.maximum(squares - part * apart, 0.0)
        variances = (self.correlation + (1 - self.correlation) / rows) / self.deviation**2
        kept = np.square(within) / np.maximum(whole, _RARE)
        found = between + part * within
        varied = variances * (between + part * kept)
        return (sizes * found).sum(axis=0), (sizes * varied).sum(axis=0)

    @property
    def explained(self) -> str:
        """What becomes of a unit's rows, in a sentence."""
        return (
            f"Each of the {self.named} is one unit of privacy: all its rows, at most "
            f"{self.most_rows}, are bounded, charged and counted as one participant's are. The "
            "number of units is released with noise, and that of rows is not. The guarantee is "
            "for replacing, adding or removing a whole unit. The site's table states the unit of "
            "each participant."
        )

    @property
    def named(self) -> str:
        """Name of units, in the plural."""
        if self.family is None:
            return "participants with all their sessions"
        return "families with all sessions of theirs" if self.sessions else "families"
