"""One EEG recording as numbers, whichever file it came from."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from site_agent.eeg.names import plain_event

Signals = NDArray[np.float64]


@dataclass(frozen=True)
class Marker:
    """Something that happened."""

    onset: float
    duration: float
    """Seconds, from the recording's first sample."""
    name: str
    """Trial type or marker; one that begins with 'bad' marks a span that is not to be used."""

    @property
    def is_bad(self) -> bool:
        """Whether it marks a span that is not to be used."""
        return self.name.casefold().startswith("bad")


@dataclass(frozen=True, eq=False)
class Recording:
    """One run."""

    path: Path
    """Its file."""
    rate: float
    """Samples per second."""
    channels: tuple[str, ...]
    """The study's channels that it has, by the study's names."""
    signals: Signals
    """Shape (C, N). In µV."""
    markers: tuple[Marker, ...]

    @property
    def seconds(self) -> float:
        """Its length."""
        return float(self.signals.shape[1] / self.rate)

    def onsets(self, events: Sequence[str]) -> list[float]:
        """Times in s of the events of some names, in any way of writing them."""
        wanted = {*events, *map(plain_event, events)}
        chosen = [m for m in self.markers if m.name in wanted or plain_event(m.name) in wanted]
        return sorted(marker.onset for marker in chosen)

    def spoilt(self, start: float, stop: float) -> bool:
        """Whether a span in s touches one that is marked as bad, or a channel is constant in it."""
        bad = (marker for marker in self.markers if marker.is_bad)
        if any(m.onset < stop and start < m.onset + m.duration for m in bad):
            return True
        span = self.signals[:, max(round(start * self.rate), 0) : round(stop * self.rate)]
        return not span.size or bool((np.ptp(span, axis=1) == 0).any())
