"""BIDS tables of an EEG recording: its events and its channels."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from consortium.errors import DataError
from site_agent.data.tsv import read_lines
from site_agent.eeg.breaks import Marker
from site_agent.eeg.recording import plain_channel

_NAMES = ("trial_type", "value")
"""Columns of an events table that name an event; the first existing one is used."""
_EEG = ("eeg", "n/a", "")
"""Types of channels, in small letters, that do not contradict the study."""
Row = Mapping[str, str]


@dataclass(frozen=True)
class EventsTable:
    """Lines of the events table of an EEG recording."""

    path: Path
    markers: tuple[Marker, ...]
    skipped: int = 0
    """Lines whose onset is n/a or negative, which BIDS permits."""
    samples: tuple[tuple[float, float], ...] = ()
    """Onsets and samples of the lines that state both."""


@dataclass(frozen=True)
class ChannelsTable:
    """Lines of the channels table of an EEG recording."""

    statuses: Mapping[str, str]
    """Status by channel, in small letters."""
    units: Mapping[str, str]
    types: Mapping[str, str]
    """Types of the channels that are not of type EEG."""

    def bad(self, channels: Iterable[str]) -> frozenset[str]:
        """Return those of a file's channels that the table calls bad."""
        return frozenset(
            name for name in channels if _of(name, self.statuses, worst="bad") == "bad"
        )

    def unit(self, channel: str) -> str | None:
        """Return the unit of a file's channel, or None if the table states none."""
        return _of(channel, self.units)

    def other_type(self, channel: str) -> str | None:
        """Return the type of a file's channel, or None if it is EEG or not stated."""
        return _of(channel, self.types)


def read_events(path: Path) -> EventsTable:
    """Read ``_events.tsv``: onset, duration and trial_type (or value without it).

    A line is skipped if its onset is n/a or negative. A bad span that begins before the recording
    is kept from its first sample on.

    Raises
    ------
    DataError
        If the table can't be read, or a column or a number is missing.
    """
    header, rows = _rows(path)
    name = next((column for column in _NAMES if column in header), None)
    if name is None or "onset" not in header:
        raise DataError(f"{path} must have the columns onset and trial_type. Add them.")
    markers: list[Marker] = []
    samples: list[tuple[float, float]] = []
    skipped = 0
    for number, row in rows:
        marker = _marker(row, name, f"{path}, line {number}")
        if marker is None:
            skipped += 1
        else:
            markers.append(marker)
            samples += _sample(row)
    return EventsTable(path, tuple(markers), skipped, tuple(samples))


def read_channels(path: Path | None) -> ChannelsTable:
    """Read names, statuses, units and types of ``_channels.tsv``; all are empty without a table.

    Raises DataError if the table can't be read or has no names.
    """
    if path is None:
        return ChannelsTable({}, {}, {})
    header, rows = _rows(path)
    if "name" not in header:
        raise DataError(f"{path} must have the column name. Add it.")
    lines = [row for _, row in rows]
    statuses = {row["name"]: row.get("status", "").casefold() for row in lines}
    # One bad line of two marks the channel as bad.
    statuses |= {row["name"]: "bad" for row in lines if row.get("status", "").casefold() == "bad"}
    units = {row["name"]: row.get("units", "") for row in lines}
    types = {row["name"]: row.get("type", "") for row in lines}
    other = {name: kind for name, kind in types.items() if kind.casefold() not in _EEG}
    return ChannelsTable(statuses, units, other)


def _rows(path: Path) -> tuple[list[str], Iterator[tuple[int, Row]]]:
    """Return the header in small letters, and numbered rows without white space around cells."""
    first, *rest = read_lines(path)
    header = [cell.strip().casefold() for cell in first]
    rows = (
        (number, dict(zip(header, [cell.strip() for cell in row], strict=False)))
        for number, row in enumerate(rest, start=2)
    )
    return header, rows


def _marker(row: Row, column: str, where: str) -> Marker | None:
    """Return the marker of a line, or None if the line is to be skipped."""
    onset = _seconds(row, "onset", where)
    duration = _seconds(row, "duration", where)
    marker = Marker(onset or 0.0, max(duration or 0.0, 0.0), row.get(column, ""))
    for other in _NAMES:
        # Any column may state a bad span or a break.
        named = Marker(marker.onset, marker.duration, row.get(other, ""))
        marker = marker if named.is_event else named
    if onset is None:
        return None
    if onset < 0:
        stop = onset + marker.duration
        return Marker(0.0, stop, marker.name) if marker.is_bad and stop > 0 else None
    return marker


def _sample(row: Row) -> Iterator[tuple[float, float]]:
    """Yield onset and sample of a line, if it states both as numbers of the recording."""
    try:
        onset = float(row.get("onset", ""))
        sample = float(row.get("sample", ""))
    except ValueError:
        return
    if onset >= 0 and math.isfinite(onset) and math.isfinite(sample):
        yield onset, sample


def _seconds(row: Row, column: str, where: str) -> float | None:
    """Return a number of seconds, or None for n/a."""
    text = row.get(column, "n/a" if column == "duration" else "")
    if text.casefold() == "n/a" or (not text and column == "duration"):
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isfinite(value):
        return value
    if column == "duration":
        return None
    raise DataError(
        f"{where}: onset must be a number of seconds or n/a, got '{text}'. Correct the table."
    )


def _of(channel: str, cells: Mapping[str, str], worst: str | None = None) -> str | None:
    """Return the cell of a channel, found by its own name first and then by its plain form."""
    if channel in cells:
        return cells[channel]
    alike = [cell for name, cell in cells.items() if plain_channel(name) == plain_channel(channel)]
    return worst if worst in alike else next(iter(alike), None)
