"""Parameters of `describe` in a study file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PrivateAttr, StringConstraints, ValidationInfo, model_validator

from consortium.algorithms.base import AnalysisParameters
from consortium.base.frozen_model import FieldError, FrozenModel
from consortium.views import AnyView
from consortium.views.base import Label
from consortium.views.column import Column

Name = Annotated[str, StringConstraints(min_length=1, max_length=129)]
Bins = Annotated[int, Field(ge=2, le=1_000)]
Part = Annotated[float, Field(gt=0, lt=1)]


class SurvivalCurve(FrozenModel):
    """Times to an event, of participants who are followed until the event or for a shorter time."""

    time: Name
    """Column of the time to the event, or to the end of a participant's follow-up. Its 'high' is
    the end of the curve: participants with this time or more are followed to the end."""
    event: Name
    """Column of two levels: the second means that the event happened at that time."""
    bins: Bins = 12
    """Number of equal parts of the time, at whose ends the curve is estimated."""


class DescribeParameters(AnalysisParameters):
    """Parameters of `describe`."""

    groups: str = Field(default="", max_length=129)
    """Column of levels by which participants are divided. By default only all participants are
    described. Its view may have no gaps."""
    shares: dict[str, Part] = Field(default_factory=dict)
    """Expected fraction of the participants with each level of the groups' column, which the
    forecast uses (default: equal fractions)."""
    columns: tuple[Name, ...] = ()
    """Names of the columns to describe (default: all except those of ``groups`` and
    ``survival``)."""
    means: bool = True
    """Whether means and standard deviations are estimated, for about half of the budget. Without
    them, counts and quantiles have less noise."""
    bins: Literal["auto"] | Bins | dict[Name, Bins] = "auto"
    """Number of equal parts of each column's limits in which participants are counted: for all
    columns, or by column. If 'auto', the plan chooses 8 to 40 by the noise."""
    quantiles: tuple[Part, ...] = Field(default=(0.25, 0.5, 0.75), max_length=99)
    """Quantiles to report."""
    survival: dict[Label, SurvivalCurve] = Field(default_factory=dict, max_length=20)
    """Kaplan-Meier curves by name, each with the columns of its times and events."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of every single interval."""
    precision: float = Field(default=0.15, gt=0, le=10)
    """Largest noise of a group's mean with which the study is worth running, in standard deviations
    of the column. Without means, that of a count over the number of the group's participants."""
    anyway: bool = False
    """Run the study even if the noise exceeds ``precision`` in every group."""
    instead_of: Literal["", "histogram"] = ""
    """Replaced analysis that the study file names; leave it out."""
    _views: tuple[AnyView, ...] = PrivateAttr(default=())

    @model_validator(mode="after")
    def _complete(self, info: ValidationInfo) -> DescribeParameters:
        self._views = tuple((info.context or {}).get("features") or ())
        if self.shares and not self.groups:
            raise FieldError("shares", "requires 'groups', whose levels it names. Add 'groups'.")
        if sum(self.shares.values()) > 1 + 1e-9:
            raise FieldError("shares", "must have a sum of at most 1. Lower them.")
        if self._views:
            self._check_columns()
        return self

    def _check_columns(self) -> None:
        """Raise FieldError if a column is unknown or of another kind."""
        known = dict(pair for view in self._views for pair in view.single_columns)
        if self.groups:
            self._check_groups(known)
        for name, curve in self.survival.items():
            _check_curve(name, curve, known)
        if all(view.single_columns for view in self._views):
            strange = [name for name in self.columns if name not in known]
            if strange:
                raise FieldError("columns", f"{strange[0]} is not a column. Correct its name.")

    def _check_groups(self, known: dict[str, Column]) -> None:
        column = known.get(self.groups)
        if column is None or not column.levels:
            raise FieldError(
                "groups", f"must name a column with levels, got '{self.groups}'. Name another."
            )
        strange = sorted(set(self.shares) - set(column.levels))
        if strange:
            raise FieldError(
                "shares",
                f"must name levels of '{self.groups}', got '{strange[0]}'. Choose from "
                f"{', '.join(column.levels)}.",
            )
        view = self._view_of_groups
        if view is not None and view.stated_gaps:
            raise FieldError(
                "groups",
                f"must be in a view without gaps, and view '{view.name}' has them. Put the column "
                "into a view of its own, which may be of the same table.",
            )

    @property
    def _view_of_groups(self) -> AnyView | None:
        """View with the column of the groups."""
        owners = (v for v in self._views if self.groups in {n for n, _ in v.single_columns})
        return next(owners, None)

    @property
    def may_lack(self) -> tuple[str, ...]:
        """Views in which a participant may lack values: all except that of the groups."""
        owner = self._view_of_groups if self.groups else None
        return tuple(view.name for view in self._views if view is not owner)

    @property
    def views(self) -> tuple[AnyView, ...]:
        """Views of the study; empty where parameters were made without a study."""
        return self._views


def _check_curve(name: str, curve: SurvivalCurve, known: dict[str, Column]) -> None:
    time = known.get(curve.time)
    event = known.get(curve.event)
    if time is None or time.low is None:
        raise FieldError(
            f"survival.{name}.time",
            f"must name a column with limits, got '{curve.time}'. Name another.",
        )
    if event is None or len(event.levels) != 2:
        raise FieldError(
            f"survival.{name}.event",
            f"must name a column of two levels, got '{curve.event}'. Name another.",
        )
