"""One EEG recording as numbers, whichever file it came from, and the names of its channels."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consortium.errors import DataError
from site_agent.eeg.breaks import Break, Marker, segments_between

Signals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Recording:
    """One EEG recording as numbers, with the names of its channels."""

    path: Path
    """Its file."""
    rate: float
    """Samples per second."""
    channels: tuple[str, ...]
    """Present channels of the study, by the study's names."""
    signals: Signals
    """Shape (C, N). In µV."""
    markers: tuple[Marker, ...]
    """Events and bad spans; onsets count from the first sample, without pauses."""
    breaks: tuple[Break, ...] = ()
    unlisted: tuple[Marker, ...] = ()
    """Events of the file that are not used, since there is an events table."""

    @property
    def seconds(self) -> float:
        """Its length."""
        return float(self.signals.shape[1] / self.rate)

    @cached_property
    def segments(self) -> tuple[tuple[int, int], ...]:
        """First and last sample (the latter exclusive) of every continuous segment."""
        return tuple(segments_between(self.breaks, self.signals.shape[1]))

    def onsets(self, events: Sequence[str]) -> list[float]:
        """Return the times in s of the events of some names, in any spelling."""
        return onsets_of(self.markers, events)

    def spoilt(self, start: float, stop: float) -> bool:
        """Return whether a span in s overlaps a bad one, or a channel is constant in it."""
        bad = (marker for marker in self.markers if marker.is_bad)
        if any(m.onset < stop and start < m.onset + m.duration for m in bad):
            return True
        span = self.signals[:, max(round(start * self.rate), 0) : round(stop * self.rate)]
        return not span.size or bool((np.ptp(span, axis=1) == 0).any())


def onsets_of(markers: Iterable[Marker], events: Sequence[str]) -> list[float]:
    """Return the sorted onsets of the markers of some names, in any spelling."""
    wanted = {*events, *map(plain_event, events)}
    chosen = [m for m in markers if m.name in wanted or plain_event(m.name) in wanted]
    return sorted(marker.onset for marker in chosen)


_FORMER = {"t3": "t7", "t4": "t8", "t5": "p7", "t6": "p8"}
"""Names of the first 10-20 system that the extended one changed."""
_DRESS = re.compile(r"^eeg[ _-]*(?=\S)|[-_](ref|le|avg|m1m2|a1a2)$|\.+$")


def plain_channel(name: str) -> str:
    """Bring a channel's name to one form: 'EEG Fp1-REF', 'FP1' and 'Fp1.' are the same."""
    bare = _DRESS.sub("", name.strip().casefold()).strip()
    return _FORMER.get(bare, bare)


def match_channels(
    wanted: Iterable[str], available: Iterable[str], where: object
) -> Mapping[str, str]:
    """Find the study's channels among a recording's.

    Raises DataError if two of the recording's channels could be meant.

    Parameters
    ----------
    wanted : iterable of str
        The study's names.
    available : iterable of str
        The recording's.
    where : object
        Name of the recording in an error.

    Returns
    -------
    mapping of str to str
        The recording's name by the study's; missing channels are omitted.
    """
    names = list(available)
    found: dict[str, str] = {}
    for channel in wanted:
        exact = [name for name in names if name == channel]
        alike = exact or [name for name in names if plain_channel(name) == plain_channel(channel)]
        if len(alike) > 1:
            raise DataError(
                f"{where} has {len(alike)} channels that may be {channel}. Name one of them so."
            )
        if alike:
            found[channel] = alike[0]
    return found


def plain_event(name: str) -> str:
    """Bring an event's name to one form: 'Stimulus/S  1' and 'S1' are the same."""
    return "".join(name.rsplit("/", 1)[-1].split())
