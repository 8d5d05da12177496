"""Reader of one EEG recording, with the statements of its file, tables and sidecar."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from consortium.errors import DataError
from site_agent.eeg.breaks import Break, Marker, break_of
from site_agent.eeg.names import table_beside
from site_agent.eeg.native import OpenedRecording, open_recording
from site_agent.eeg.recording import Recording, match_channels, plain_event
from site_agent.eeg.sidecar import RecordingSidecar, read_sidecar
from site_agent.eeg.tables import ChannelsTable, EventsTable, read_channels, read_events


@dataclass(frozen=True, eq=False)
class Described:
    """One EEG recording with its tables and sidecar; its signals are not read yet."""

    opened: OpenedRecording
    events: EventsTable | None
    channels: ChannelsTable
    sidecar: RecordingSidecar

    @property
    def listed_bad(self) -> frozenset[str]:
        """Channels of the file that the channels table calls bad."""
        return self.channels.bad(self.opened.names)

    def own_markers(self, *, triggers: bool = True) -> tuple[Marker, ...]:
        """Return the file's annotations, and the triggers whose names no annotation has."""
        own = self.opened.markers
        names = {plain_event(each.name) for each in own if each.is_event}
        steps = self.opened.triggers() if triggers else ()
        return (*own, *(each for each in steps if plain_event(each.name) not in names))

    def markers(self) -> tuple[Marker, ...]:
        """Return the events of the table if there is one, the file's otherwise, and all bad spans.

        Onsets are times on the recording's clock. Raises DataError if one is behind the end.
        """
        if self.events is None:
            united = self.own_markers()
        else:
            spans = (each for each in self.opened.markers if not each.is_event)
            united = (*self.events.markers, *spans)
        self._check_onsets(united)
        return united

    def breaks(self, markers: Sequence[Marker]) -> tuple[Break, ...]:
        """Return the breaks that the clock and markers (without pauses) state, in order.

        A break before the first or after the last sample separates no samples and is omitted.
        """
        stated = (break_of(each, self.opened.rate) for each in markers)
        found = (*self.opened.clock.breaks(), *(each for each in stated if each is not None))
        inside = (x for x in found if x.start < self.opened.samples and x.stop > 0)
        return tuple({(each.start, each.stop): each for each in sorted(inside)}.values())

    def _check_onsets(self, markers: Sequence[Marker]) -> None:
        """Refuse events behind the end: the file is cut short, or the table is of another run."""
        last = max((each.onset for each in markers), default=0.0)
        seconds = self.opened.clock.seconds(self.opened.samples)
        if last > seconds:
            raise DataError(
                f"{self.opened.path} is {seconds:.1f} s long and has an event at {last:.1f} s. "
                "Copy the recording, or its events table, again."
            )


def describe_recording(path: Path, channels: Sequence[str], *, listen: bool = False) -> Described:
    """Read all that is known about a recording except its signals.

    Parameters
    ----------
    path : Path
        BrainVision, EDF, BDF, EEGLAB or FIF file, or a NIfTI image of channels by time.
    channels : sequence of str
        The study's.
    listen : bool
        Collect MNE's warnings; see `open_recording`.

    Raises
    ------
    DataError
        If the file, a table or the JSON file of the recording exists and can't be read.
    ConfigurationError
        If MNE is needed and not installed.
    """
    sidecar = read_sidecar(path)
    table = table_beside(path, "events")
    return Described(
        opened=open_recording(path, channels, listen=listen),
        events=None if table is None else read_events(table),
        channels=read_channels(table_beside(path, "channels")),
        sidecar=sidecar,
    )


def read_recording(path: Path, channels: Sequence[str]) -> Recording:
    """Read the study's channels of a run, its events, bad spans and breaks.

    Events come from the BIDS table of the run, or without a table from the file's own markers.
    Bad spans, breaks and bad channels come from both. Bad channels count as missing.

    Parameters
    ----------
    path : Path
        BrainVision, EDF, BDF, EEGLAB or FIF file, or a NIfTI image of channels by time.
    channels : sequence of str
        The study's.

    Raises
    ------
    DataError
        If the file or a file that describes it is damaged, or a value is not finite.
    ConfigurationError
        If MNE is needed and not installed.
    """
    described = describe_recording(path, channels)
    opened = described.opened
    bad = opened.bad | described.listed_bad
    found = match_channels(channels, opened.names, path)
    kept = {mine: theirs for mine, theirs in found.items() if theirs not in bad}
    signals = np.asarray(opened.signals(list(kept.values())), dtype=np.float64)
    if not np.isfinite(signals).all():
        raise DataError(f"{path} has a value that is not finite. Export the recording again.")
    if kept and not signals.any():
        raise DataError(f"{path} is zero throughout. Export the recording again.")
    markers = tuple(opened.clock.in_file(described.markers()))
    unlisted = () if described.events is None else opened.markers
    return Recording(
        path=path,
        rate=opened.rate,
        channels=tuple(kept),
        signals=signals,
        markers=markers,
        breaks=described.breaks(markers),
        unlisted=tuple(each for each in unlisted if each.is_event),
    )
