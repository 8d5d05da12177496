"""Views made of a participant's EEG."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from consortium.base.formatting import count
from consortium.base.frozen_model import FieldError
from consortium.views.base import BaseView, Label

MOST_ENTRIES = 1_000_000
"""Maximum number of entries of a view."""
NARROWEST = 0.5
"""Minimum width in Hz. A narrower band may contain no frequency of windows of two seconds."""


def stop_edge(high: float) -> float:
    """Return the frequency in Hz at which the stop band of an EEG filter up to ``high`` begins."""
    return high + max(high / 4, 2.0)


class EegView(BaseView):
    """A participant's event-related potential or band power, per channel."""

    source: Literal["eeg"]
    """EEG recordings."""
    task: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]+$")] = "rest"
    """BIDS task label of the recordings."""
    measure: Literal["erp", "band-power"] = "erp"
    """'erp': mean over epochs; 'band-power': power density in each band, in dB."""
    channels: tuple[Label, ...] = Field(min_length=1, max_length=512)
    """Channels, in the order of the vector; 'EEG Fp1-REF', 'FP1' and 'Fp1' are one. A participant
    who lacks one is left out."""
    reference: Literal["as-recorded", "average"] = "average"
    """Reference that the channels are brought to: 'average' takes the mean of the study's channels
    away."""
    rate: float = Field(default=100.0, gt=1, le=2000)
    """Samples per second of the vector; at least 2.5 times the pass band's upper edge."""
    filter: tuple[float, float] = (0.5, 30.0)
    """Pass band in Hz; 0 for no lower edge."""
    events: tuple[Label, ...] = Field(default=(), max_length=100)
    """Trial types or markers to cut epochs around. Band-power may go without, and then takes
    windows of 2 s that overlap by half."""
    start: float = Field(default=-0.1, ge=-10, le=10)
    """First time of an epoch in s."""
    stop: float = Field(default=0.6, ge=-10, le=10)
    """Last time of an epoch in s."""
    baseline: bool = True
    """Take the mean before time 0 away from each epoch and channel."""
    reject: float = Field(default=150.0, gt=0)
    """Peak to peak in µV beyond which an epoch is left out."""
    minimum_epochs: int = Field(default=5, ge=1)
    """A participant with fewer sound epochs is left out."""
    bands: dict[Label, tuple[float, float]] = Field(default_factory=dict, max_length=32)
    """For band-power: bands in Hz by name, at least 0.5 Hz wide, within filter."""
    scale: float = Field(default=10.0, gt=0)
    """µV (or dB) that become 1."""
    center: bool = False
    """Take a participant's own mean over all entries away."""
    normalize: bool = True
    """Scale every participant's vector to Euclidean norm 1."""

    @model_validator(mode="after")
    def _complete(self) -> EegView:
        if len(set(self.channels)) < len(self.channels):
            raise FieldError("channels", "a channel is named twice")
        if self.reference == "average" and len(self.channels) < 2:
            raise FieldError(
                "reference",
                "the average of one channel is that channel, and nothing would be left. "
                "Set as-recorded or name more channels",
            )
        if self.measure == "erp" and not self.events:
            raise FieldError("events", "name the events that epochs are cut around")
        if self.measure == "band-power" and not self.bands:
            raise FieldError("bands", "name at least one band, as alpha: [8, 12]")
        if self.start >= self.stop:
            raise FieldError("start", "it must be before stop")
        if self.measure == "erp" and self.baseline and round(self.start * self.rate) >= 0:
            raise FieldError(
                "start", "a baseline needs time before 0. Lower it or set baseline: no"
            )
        for name, (low, high) in self.bands.items():
            if high - low < NARROWEST or low < self.filter[0] or high > self.filter[1]:
                raise FieldError(
                    "bands",
                    f"{name} must be {NARROWEST:g} Hz wide or more, and in the pass band of "
                    "'filter'. Widen one of them",
                )
        span = round((self.stop - self.start) * self.rate) if self.measure == "erp" else 0
        if len(self.channels) * (span + len(self.bands)) > MOST_ENTRIES:
            raise FieldError(
                "channels",
                f"the view has more than {MOST_ENTRIES} entries. Lower the rate, or name "
                "fewer channels",
            )
        pairs = [self.filter, *self.bands.values()]
        if any(not 0 <= low < high for low, high in pairs):
            raise FieldError("bands", "in filter and bands, give the lower frequency first")
        if 2 * stop_edge(max(high for _, high in pairs)) > self.rate:
            raise FieldError(
                "rate",
                "it must be at least 2.5 times every frequency, to avoid aliasing above "
                "the filter's pass band. Raise it",
            )
        return self

    @property
    def times(self) -> tuple[float, ...]:
        """Times of an epoch's samples in s."""
        first = round(self.start * self.rate)
        last = round(self.stop * self.rate)
        return tuple(number / self.rate for number in range(first, last + 1))

    def usual(self, size: int) -> tuple[float, float]:
        """Return those of vectors of norm 1, or of `scale`."""
        return (0.0, size**-0.5) if self.normalize else super().usual(size)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the view's entries: channel by channel."""
        inner = [f"{t:.4g}" for t in self.times] if self.measure == "erp" else list(self.bands)
        return tuple(f"{channel}@{each}" for channel in self.channels for each in inner)

    def known_sums(self, size: int) -> Iterator[tuple[range, float]]:
        """Yield all entries if centred, and all channels at one time after an average reference."""
        if self.center:
            yield range(size), 0.0
        if self.measure == "erp" and self.reference == "average":
            many = len(self.times)
            for time in range(many):
                yield range(time, size, many), 0.0

    def size(self, image_features: int, maps: int) -> int:
        """Return the number of channels times samples or bands."""
        del image_features, maps
        return len(self.labels)

    @property
    def heading(self) -> str:
        """Name and measure."""
        what = "mean over epochs" if self.measure == "erp" else "band power"
        return f"{self.name} (EEG: {what})"

    def methods_sentence(self, size: int) -> str:
        """State the measure, the channels and the scaling."""
        what = "the potential" if self.measure == "erp" else "band power"
        after = f" after {', '.join(self.events)}" if self.events else ""
        band = f"{self.filter[0]:g} to {self.filter[1]:g} Hz"
        scaled = ", scaled to norm 1" if self.normalize else ""
        return (
            f"{self.name} ({count(size, 'number')}), {what}{after} on {len(self.channels)} "
            f"channels ({band}){scaled}"
        )
