"""What an analysis found, with how sure it is: numbers that may stay untold, and sets of maps."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from consortium.base.array import Array

State = Literal["found", "not found", "withheld"]
WITHHELD = "withheld"
DRAWN = 2.0
"""Standard deviations of a map from which on a voxel is coloured, if noise alone is no reason."""
SURE = 3.0
"""Standard errors from which on a voxel is told from noise."""
NOT_DISTINCT = "Not distinguishable from the noise, and not drawn."


@dataclass(frozen=True)
class Finding:
    """A number with its interval, or that there is none that could be told.

    What is not told holds no number: ``value``, ``low`` and ``high`` are then NaN, whatever was
    given, and so they are, with the state 'withheld', if ``value`` is not finite. Page, TSV and
    JSON write the words "withheld" in its place.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    """Ends of its interval; NaN for both if it has none."""
    state: State = "found"
    """'found' stands out of noise and chance. 'not found' does not; its number is told with its
    interval, since it may be pooled with others. 'withheld': the noise leaves no number."""

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
    """Maps that go into one image file, with what is known of each.

    Raises ValueError if ``labels``, ``found`` or ``accuracy`` don't fit the K maps.
    """

    values: Array
    """Shape (D, K). A row for each analysed feature; of a study of feature vectors for each entry
    of ``view``. V rows if `fine`. A file of one map has three dimensions, of more maps four."""
    caption: str
    """What a value is, in one sentence."""
    labels: tuple[str, ...]
    """Name of each of the K maps, for people."""
    entities: Mapping[str, str] = field(default_factory=dict)
    """Entities of the file's name, as ``{"contrast": "age", "stat": "t"}``, in their order."""
    suffix: str = "statmap"
    """End of the file's name: statmap, components."""
    units: str = "arbitrary"
    """Of the values: t, z, SD (over the brain), arbitrary."""
    view: str = ""
    """The view whose entries the rows are; empty for the features of a study of images."""
    fine: bool = False
    """Whether the rows are the voxels of full-resolution maps."""
    found: tuple[bool, ...] = ()
    """Whether each map stands out of its noise; a map that does not is listed, but not drawn.
    Empty: all do."""
    accuracy: tuple[Finding, ...] = ()
    """Of each map, what `accuracy_caption` says, with its interval; may be empty."""
    accuracy_caption: str = "Expected correlation with the truth"
    unfound: str = NOT_DISTINCT
    """What the page says of a map that is not found."""
    word: str = "found"
    """What the page calls those that are."""
    drawn: bool = True
    """Whether the page draws the maps; it names the file of others only."""
    threshold: float | Array = 0.0
    """Least size of a value that is coloured, in the values' units; as an array for each value,
    such as a multiple of its standard error."""

    def __post_init__(self) -> None:
        many = self.values.shape[1] if self.values.ndim == 2 else -1
        if len(self.labels) != many:
            raise ValueError(
                f"{len(self.labels)} labels don't fit values of shape {self.values.shape}; give "
                "D x K values with a label for each of K maps"
            )
        for name, given in (("found", self.found), ("accuracy", self.accuracy)):
            if given and len(given) != many:
                raise ValueError(f"{name} has {len(given)} entries for {many} maps; correct it")

    def is_found(self, number: int) -> bool:
        """Whether map ``number``, counted from 0, stands out of its noise."""
        return self.found[number] if self.found else True

    def coloured(self) -> Array:
        """Return the values, with 0 for what is below the threshold: D x K."""
        return np.where(np.abs(self.values) >= self.threshold, self.values, 0.0)
