"""Findings of an analysis with their uncertainty: numbers, some withheld, and sets of maps."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from consortium.base.array import Array

State = Literal["found", "not found", "withheld"]
WITHHELD = "withheld"
DRAWN = 2.0
"""Threshold for colouring a voxel in standard deviations of a map, if noise gives no other."""
SURE = 3.0
"""Standard errors above which a voxel is distinguished from noise."""
NOT_DISTINCT = "Not distinguishable from the noise, and not drawn."


@dataclass(frozen=True)
class Finding:
    """A number of a result with its interval, or a withheld number.

    A withheld number has no value: ``value``, ``low`` and ``high`` are then NaN, whatever was
    given. A ``value`` that is not finite also gets the state 'withheld'. The page, TSV and JSON
    write "withheld" instead.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    """Ends of its interval; NaN for both if it has none."""
    state: State = "found"
    """'found' exceeds noise and sampling error. 'not found' does not; its number is reported with
    its interval, since it may be pooled with others. 'withheld': the noise leaves no number."""

    def __post_init__(self) -> None:
        if self.state == WITHHELD or not math.isfinite(self.value):
            for name in ("value", "low", "high"):
                object.__setattr__(self, name, math.nan)
            object.__setattr__(self, "state", WITHHELD)

    @property
    def reported(self) -> bool:
        """Whether there is a number."""
        return self.state != WITHHELD

    @property
    def bounded(self) -> bool:
        """Whether it has an interval."""
        return not (math.isnan(self.low) or math.isnan(self.high))


Cell = float | int | str | Finding


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Maps of one image file, with information about each.

    Raises ValueError if ``labels``, ``found`` or ``accuracy`` don't fit the K maps.
    """

    values: Array
    """Shape (D, K). A row for each analysed feature, or for each entry of ``view`` in a study of
    feature vectors. V rows if `fine`. A file of one map has three dimensions, of more maps four."""
    caption: str
    """Meaning of a value, in one sentence."""
    labels: tuple[str, ...]
    """Name of each of the K maps, for people."""
    entities: Mapping[str, str] = field(default_factory=dict)
    """Entities of the file's name, as ``{"contrast": "age", "stat": "t"}``, in their order."""
    suffix: str = "statmap"
    """End of the file's name: statmap, components."""
    units: str = "arbitrary"
    """Unit of the values: t, z, SD (over the brain), arbitrary."""
    view: str = ""
    """The view whose entries the rows are; empty for the features of a study of images."""
    fine: bool = False
    """Whether the rows are the voxels of full-resolution maps."""
    found: tuple[bool, ...] = ()
    """Whether each map stands out of its noise; a map that does not is listed, but not drawn.
    Empty: all do."""
    accuracy: tuple[Finding, ...] = ()
    """Accuracy of each map as `accuracy_caption` defines it, with its interval; may be empty."""
    accuracy_caption: str = "Expected correlation with the truth"
    unfound: str = NOT_DISTINCT
    """Text of the page for a map that is not found."""
    word: str = "found"
    """Name of found maps on the page."""
    drawn: bool = True
    """Whether the page draws the maps. It names the file of others only."""
    threshold: float | Array = 0.0
    """Least size of a value that is coloured, in the values' units; as an array for each value,
    such as a multiple of its standard error."""

    def __post_init__(self) -> None:
        many = self.values.shape[1] if self.values.ndim == 2 else -1
        if len(self.labels) != many:
            raise ValueError(
                f"{len(self.labels)} labels don't fit values of shape {self.values.shape}. Give "
                "D x K values with a label for each of K maps"
            )
        for name, given in (("found", self.found), ("accuracy", self.accuracy)):
            if given and len(given) != many:
                raise ValueError(f"{name} has {len(given)} entries for {many} maps. Correct it")

    def is_found(self, number: int) -> bool:
        """Return whether map ``number``, counted from 0, exceeds its noise."""
        return self.found[number] if self.found else True

    def coloured(self) -> Array:
        """Return the values, with 0 below the threshold: D x K."""
        return np.where(np.abs(self.values) >= self.threshold, self.values, 0.0)
