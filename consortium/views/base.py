"""Feature vectors: what a study of persons, instead of volumes, knows of each of them.

A view is one vector per person, made from a table, from functional images or from EEG. A study of
several views stacks them. Names and numbers of entries follow from the study file and the files
beside it alone, so they are public.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

Label = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
ViewName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]{0,31}$")]
BesideName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_RANGE = re.compile(r"^(?P<stem>[A-Za-z0-9_.-]*)\[(?P<first>\d{1,5})-(?P<last>\d{1,5})\]$")
MOST_COLUMNS = 20_000
MOST_ENTRIES = 1_000_000
"""Of an EEG view."""
NARROWEST = 0.5
"""Hz; a narrower band may hold no frequency of a spectrum from windows of two seconds."""


def stop_edge(high: float) -> float:
    """Frequency in Hz above which a filter with a pass band up to ``high`` lets nothing through."""
    return high + max(high / 4, 2.0)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Column(_Part):
    """A column of a table, with public limits: what lies beyond them is moved to them."""

    low: float | None = Field(default=None, description="Value that becomes -1.")
    high: float | None = Field(default=None, description="Value that becomes +1.")
    levels: tuple[str, ...] = Field(
        default=(),
        max_length=100,
        description="Values of a column of categories: two become -1 and +1, more one entry each, "
        "1 for the person's own and 0 for the others.",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Column:
        numeric = self.low is not None and self.high is not None
        if numeric == bool(self.levels) or (self.low is None) != (self.high is None):
            raise ValueError("give either 'low' and 'high', or 'levels'")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(f"low {self.low:g} is not below high {self.high:g}; correct them")
        if self.levels and (len(self.levels) < 2 or len(set(self.levels)) < len(self.levels)):
            raise ValueError("give at least two levels, each once")
        return self

    def labels(self, name: str) -> tuple[str, ...]:
        """Names of the column's entries."""
        if len(self.levels) > 2:
            return tuple(f"{name}={level}" for level in self.levels)
        return (name,)


class TableView(_Part):
    """Columns of a table with one line per person."""

    name: ViewName = Field(description="Name of the view.")
    source: Literal["table"] = Field(description="A table of the data set.")
    file: BesideName = Field(
        default="participants.tsv",
        description="Tab-separated table in the data set's folder, with a column participant_id.",
    )
    columns: dict[str, Column] = Field(
        min_length=1,
        description="Columns in their order, each with its public limits; 'x[0-63]' stands for x0 "
        "to x63.",
    )

    @field_validator("columns")
    @classmethod
    def _not_too_many(cls, columns: dict[str, Column]) -> dict[str, Column]:
        count = 0
        for name, column in columns.items():
            found = _RANGE.match(name)
            if found and int(found["first"]) > int(found["last"]):
                raise ValueError(f"{name}: the range runs backwards; swap its ends")
            many = int(found["last"]) - int(found["first"]) + 1 if found else 1
            count += many * len(column.labels(name))
            if not found and not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
                raise ValueError(f"{name[:40]!r} is no column's name; use letters, digits, _ . -")
        if count > MOST_COLUMNS:
            raise ValueError(f"{count} entries are more than {MOST_COLUMNS}; name fewer columns")
        return columns

    @property
    def single_columns(self) -> tuple[tuple[str, Column], ...]:
        """Every column by its own name."""
        found: list[tuple[str, Column]] = []
        for name, column in self.columns.items():
            span = _RANGE.match(name)
            if span is None:
                found.append((name, column))
                continue
            numbers = range(int(span["first"]), int(span["last"]) + 1)
            found += [(f"{span['stem']}{number}", column) for number in numbers]
        return tuple(found)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the view's entries."""
        return tuple(x for name, column in self.single_columns for x in column.labels(name))


class FmriView(_Part):
    """One number per voxel, region or component, from a person's functional images."""

    name: ViewName = Field(description="Name of the view.")
    source: Literal["fmri"] = Field(description="Functional images, prepared as `data` says.")
    measure: Literal["amplitude", "alff", "components", "image"] = Field(
        default="amplitude",
        description="'amplitude': standard deviation over time; 'alff': that of a band of "
        "frequencies; 'components': standard deviation of each public component's course; 'image': "
        "a 3-D image per person, such as a contrast.",
    )
    band: tuple[float, float] = Field(
        default=(0.01, 0.08), description="For alff: lowest and highest frequency in Hz."
    )
    components: BesideName | None = Field(
        default=None,
        description="For components: 4-D NIfTI of public component maps beside the study file.",
    )
    image: Label | None = Field(
        default=None,
        description="For image: end of the files' names before .nii.gz, as desc-faces_statmap.",
    )
    center: bool = Field(
        default=True, description="Take a person's own mean over all entries away."
    )
    normalize: bool = Field(
        default=True, description="Scale every person's vector to Euclidean norm 1."
    )

    @model_validator(mode="after")
    def _complete(self) -> FmriView:
        if (self.measure == "components") != (self.components is not None):
            raise ValueError("'components' names a file of maps, for measure: components only")
        if (self.measure == "image") != (self.image is not None):
            raise ValueError("'image' names the end of file names, for measure: image only")
        if not 0 <= self.band[0] < self.band[1]:
            raise ValueError("band: give the lower frequency first")
        return self


class EegView(_Part):
    """A person's event-related potential or band power, per channel."""

    name: ViewName = Field(description="Name of the view.")
    source: Literal["eeg"] = Field(description="EEG recordings.")
    task: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]+$")] = Field(
        default="rest", description="BIDS task label of the recordings."
    )
    measure: Literal["erp", "band-power"] = Field(
        default="erp",
        description="'erp': mean over epochs; 'band-power': power density in each band, in dB.",
    )
    channels: tuple[Label, ...] = Field(
        min_length=1,
        max_length=512,
        description="Channels, in the order of the vector; 'EEG Fp1-REF', 'FP1' and "
        "'Fp1' are one. A person who lacks one is left out.",
    )
    reference: Literal["as-recorded", "average"] = Field(
        default="average",
        description="Reference that the channels are brought to: 'average' takes the mean of the "
        "study's channels away.",
    )
    rate: float = Field(
        default=100.0,
        gt=1,
        le=2000,
        description="Samples per second of the vector; at least 2.5 times the pass band's "
        "upper edge.",
    )
    filter: tuple[float, float] = Field(
        default=(0.5, 30.0),
        description="Pass band in Hz; 0 for no lower edge.",
    )
    events: tuple[Label, ...] = Field(
        default=(),
        max_length=100,
        description="Trial types or markers to cut epochs around; band-power may go without, "
        "and then takes windows of 2 s that overlap by half.",
    )
    start: float = Field(default=-0.1, ge=-10, le=10, description="First time of an epoch in s.")
    stop: float = Field(default=0.6, ge=-10, le=10, description="Last time of an epoch in s.")
    baseline: bool = Field(
        default=True, description="Take the mean before time 0 away from each epoch and channel."
    )
    reject: float = Field(
        default=150.0, gt=0, description="Peak to peak in µV beyond which an epoch is left out."
    )
    minimum_epochs: int = Field(
        default=5, ge=1, description="A person with fewer sound epochs is left out."
    )
    bands: dict[Label, tuple[float, float]] = Field(
        default_factory=dict,
        max_length=32,
        description="For band-power: bands in Hz by name, at least 0.5 Hz wide, within filter.",
    )
    scale: float = Field(default=10.0, gt=0, description="µV (or dB) that become 1.")
    center: bool = Field(
        default=False, description="Take a person's own mean over all entries away."
    )
    normalize: bool = Field(
        default=True, description="Scale every person's vector to Euclidean norm 1."
    )

    @model_validator(mode="after")
    def _complete(self) -> EegView:
        if len(set(self.channels)) < len(self.channels):
            raise ValueError("channels: a channel is named twice")
        if self.reference == "average" and len(self.channels) < 2:
            raise ValueError(
                "reference: the average of one channel is that channel, and nothing would be left; "
                "set as-recorded or name more channels"
            )
        if self.measure == "erp" and not self.events:
            raise ValueError("events: name the events that epochs are cut around")
        if self.measure == "band-power" and not self.bands:
            raise ValueError("bands: name at least one band, as alpha: [8, 12]")
        if self.start >= self.stop:
            raise ValueError("start: it must be before stop")
        if self.measure == "erp" and self.baseline and round(self.start * self.rate) >= 0:
            raise ValueError("start: a baseline needs time before 0; lower it or set baseline: no")
        for name, (low, high) in self.bands.items():
            if high - low < NARROWEST or low < self.filter[0] or high > self.filter[1]:
                raise ValueError(
                    f"bands: {name} must be {NARROWEST:g} Hz wide or more, and in the pass band of "
                    "'filter'; widen one of them"
                )
        span = round((self.stop - self.start) * self.rate) if self.measure == "erp" else 0
        if len(self.channels) * (span + len(self.bands)) > MOST_ENTRIES:
            raise ValueError(
                f"channels: the view has more than {MOST_ENTRIES} entries; lower the rate, or name "
                "fewer channels"
            )
        pairs = [self.filter, *self.bands.values()]
        if any(not 0 <= low < high for low, high in pairs):
            raise ValueError("filter, bands: give the lower frequency first")
        if 2 * stop_edge(max(high for _, high in pairs)) > self.rate:
            raise ValueError(
                "rate: it must be at least 2.5 times every frequency, so that what the filter "
                "leaves above the pass band does not fold back; raise it"
            )
        return self

    @property
    def times(self) -> tuple[float, ...]:
        """Times of an epoch's samples in s."""
        first, last = round(self.start * self.rate), round(self.stop * self.rate)
        return tuple(number / self.rate for number in range(first, last + 1))

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the view's entries: channel by channel."""
        inner = [f"{t:.4g}" for t in self.times] if self.measure == "erp" else list(self.bands)
        return tuple(f"{channel}@{each}" for channel in self.channels for each in inner)


View = Annotated[TableView | FmriView | EegView, Field(discriminator="source")]


def files_of(views: tuple[TableView | FmriView | EegView, ...]) -> tuple[str, ...]:
    """Files beside the study file that its views name."""
    return tuple(v.components for v in views if isinstance(v, FmriView) and v.components)
