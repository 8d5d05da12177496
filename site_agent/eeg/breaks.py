"""Markers of a recording, its breaks, and its continuous segments.

A break is a place where two neighbouring samples of a file do not follow each other in time, or a
span of samples that were never recorded. No filter and no epoch crosses one.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

_BAD = re.compile(r"(comment/)?bad", re.I)
"""BrainVision files have a marker's type before its name."""
_SKIPPED = re.compile(r"(comment/)?bad[ _-]*acq[ _-]*skip", re.I)
_CUT = re.compile(r"(comment/|stimulus/)?((bad|edge)?[ _-]*boundary|new[ _-]*segment/?)", re.I)
"""EEGLAB's and MNE's names of a cut between two samples, and BrainVision's."""
_EXACT = 1e-3
"""Samples by which a time may differ from the sample, or the middle of two, that it names."""
_LATEST = 2.0**62
"""Samples; a longer skip ends with the recording, and infinity is not a number of samples."""


@dataclass(frozen=True)
class Marker:
    """An event, a bad span or a break."""

    onset: float
    duration: float
    """Seconds, from the recording's first sample."""
    name: str
    """Trial type or marker; one that begins with 'bad' marks a span that is not to be used."""

    @property
    def is_bad(self) -> bool:
        """Whether it marks a span that is not to be used."""
        return _BAD.match(self.name.strip()) is not None

    @property
    def is_break(self) -> bool:
        """Whether it marks a break."""
        name = self.name.strip()
        return bool(_CUT.fullmatch(name) or _SKIPPED.match(name))

    @property
    def is_event(self) -> bool:
        """Whether it is neither a bad span nor a break."""
        return not (self.is_bad or self.is_break)


class Break(NamedTuple):
    """Samples without data; none of them if two segments follow each other in the file."""

    start: int
    stop: int
    """First sample after the break."""
    source: str
    """Name of the marker or clock that states it."""


class Piece(NamedTuple):
    """Samples of an EEG recording that follow each other in time."""

    start: float
    """Seconds on the recording's clock, from its first sample."""
    first: int
    length: int
    """Samples."""


@dataclass(frozen=True)
class RecordingClock:
    """Clock of a recording that may have paused.

    Onsets are times on this clock. A file without pauses has no pieces.
    """

    rate: float
    """Samples per second."""
    pieces: tuple[Piece, ...] = ()

    def breaks(self) -> tuple[Break, ...]:
        """Return the pauses as breaks between samples."""
        return tuple(Break(each.first, each.first, "EDF+ clock") for each in self.pieces[1:])

    def seconds(self, samples: int) -> float:
        """Return the time after the last sample."""
        if not self.pieces:
            return samples / self.rate
        return self.pieces[-1].start + self.pieces[-1].length / self.rate

    def in_file(self, markers: Iterable[Marker]) -> Iterator[Marker]:
        """Yield markers with onsets that count from the first sample without the pauses.

        An event in a pause has no sample and is not yielded. Spans are shortened by their pauses.
        """
        for marker in markers:
            if not self.pieces:
                yield marker
            elif not marker.is_event or self._is_recorded(marker.onset):
                start = self._squeezed(marker.onset)
                stop = self._squeezed(marker.onset + marker.duration)
                yield replace(marker, onset=start, duration=stop - start)

    def _is_recorded(self, time: float) -> bool:
        """Return whether a sample is nearest to a time on the clock."""
        piece = self._piece(time + 0.5 / self.rate)
        return -0.5 <= (time - piece.start) * self.rate < piece.length - 0.5

    def _squeezed(self, time: float) -> float:
        """Return the seconds that were recorded before a time on the clock."""
        piece = self._piece(time)
        return piece.first / self.rate + min(time - piece.start, piece.length / self.rate)

    def _piece(self, time: float) -> Piece:
        """Return the last piece that has begun at a time on the clock."""
        after = bisect_right(self.pieces, time, key=lambda piece: piece.start)
        return self.pieces[max(after - 1, 0)]


def break_of(marker: Marker, rate: float) -> Break | None:
    """Return the break that a marker states, or None if it states none.

    The duration of a boundary is the time that was removed from the file, as EEGLAB writes it, and
    no sample is in it. The samples of a skipped acquisition are in the file as zeros. EEGLAB places
    a boundary between two samples. If a rounded time does not determine which of two samples is the
    first after the cut, the doubtful sample belongs to neither segment.
    """
    if not marker.is_break:
        return None
    place = marker.onset * rate
    name = marker.name.strip()
    if _SKIPPED.match(name):
        stop = min(place + marker.duration * rate, _LATEST)
        return Break(round(place), round(stop), name)
    down = math.floor(place + _EXACT)
    over = (place + _EXACT) % 1
    if over <= 2 * _EXACT:
        return Break(down, down, name)
    if abs(over - 0.5 - _EXACT) <= _EXACT:
        return Break(down + 1, down + 1, name)
    return Break(down, down + 1, name)


def segments_between(breaks: Iterable[Break], samples: int) -> Iterator[tuple[int, int]]:
    """Yield first and last sample (the latter exclusive) of every continuous segment."""
    first = 0
    for each in sorted(breaks):
        if first < min(each.start, samples):
            yield first, min(each.start, samples)
        first = max(first, each.start, each.stop)
    if first < samples:
        yield first, samples


def events_within(
    onsets: Sequence[float], segments: Sequence[tuple[int, int]], rate: float
) -> Iterator[tuple[tuple[int, int], list[float]]]:
    """Yield every segment with the onsets in it, in seconds from the segment's first sample."""
    for first, last in segments:
        inside = (onset for onset in onsets if first <= round(onset * rate) < last)
        yield (first, last), [onset - first / rate for onset in inside]
