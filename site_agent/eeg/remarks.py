"""Doubts about one EEG recording that the site's staff can resolve."""

from collections.abc import Iterator

from consortium.base.formatting import count
from consortium.views.eeg import EegView
from site_agent.eeg.breaks import segments_between
from site_agent.eeg.epochs import least_seconds
from site_agent.eeg.reading import Described
from site_agent.eeg.recording import match_channels, onsets_of
from site_agent.eeg.sidecar import MICROVOLTS

Remark = tuple[str, str]
"""Key of `REMARKS` and an example."""

REMARKS = {
    "unit": (
        True,
        (
            "the unit in channels.tsv differs from the recording's, as in {example}. The "
            "recording's unit is used. Correct the wrong one."
        ),
    ),
    "rate": (
        True,
        (
            "SamplingFrequency in the JSON file differs from the recording's rate, as in "
            "{example}. The recording's rate is used. Correct the wrong one."
        ),
    ),
    "event numbers": (
        True,
        (
            "the events table and the recording have different numbers of an event, as in "
            "{example}. The table is used. Correct the wrong one."
        ),
    ),
    "event names": (
        False,
        (
            "the events table has the study's events and the recording has other names, as in "
            "{example}. The table is used."
        ),
    ),
    "versions": (
        True,
        (
            "several files of one recording exist, and one is read, as in {example}. Remove "
            "the others if another one is meant."
        ),
    ),
    "link": (
        True,
        (
            "a linked folder leads out of the data set and is not read, as in {example}. Link to a "
            "folder inside the data set."
        ),
    ),
    "pause": (
        False,
        ("events are in a pause of the recording and are not used, as in {example}."),
    ),
    "short": (
        False,
        ("segments between breaks are too short for the filter and are not used, as in {example}."),
    ),
    "skipped": (
        False,
        (
            "lines of the events table have an onset that is n/a or negative and are not used, as "
            "in {example}."
        ),
    ),
    "unreadable": (False, "the recording can't be used. {example}"),
}
"""Whether a remark is a warning, and its sentence, by its key."""


def remarks_on(described: Described, view: EegView) -> Iterator[Remark]:
    """Yield everything in one recording that may be wrong."""
    opened, name = described.opened, described.opened.path.name
    yield from _unit_remarks(described, view)
    stated = described.sidecar.rate
    if stated is not None and abs(stated - opened.rate) > 1e-3 * opened.rate:
        yield (
            "rate",
            f"{name} ({stated:g} Hz in the JSON file, {opened.rate:g} Hz in the recording)",
        )
    yield from _event_remarks(described, view)
    markers = described.markers()
    kept = tuple(opened.clock.in_file(markers))
    lost = len(onsets_of(markers, view.events)) - len(onsets_of(kept, view.events))
    if lost:
        yield "pause", f"{name} ({count(lost, 'event')})"
    least = least_seconds(view)
    segments = segments_between(described.breaks(kept), opened.samples)
    short = sum((stop - first) / opened.rate < least for first, stop in segments)
    if short:
        yield "short", f"{name} ({count(short, 'segment')} of less than {least:.1f} s)"
    if described.events is not None and described.events.skipped:
        yield "skipped", f"{described.events.path.name} ({count(described.events.skipped, 'line')})"


def _unit_remarks(described: Described, view: EegView) -> Iterator[Remark]:
    opened = described.opened
    for name in match_channels(view.channels, opened.names, opened.path).values():
        own, listed = (opened.units or {}).get(name), described.channels.unit(name)
        factors = [MICROVOLTS.get(unit or "") for unit in (own, listed)]
        if None not in factors and factors[0] != factors[1]:
            yield "unit", f"{opened.path.name} ({name}: {listed} in the table, {own} in the file)"
            return


def _event_remarks(described: Described, view: EegView) -> Iterator[Remark]:
    """Yield differences between the events of the table and of the file's annotations."""
    own = [each for each in described.opened.markers if each.is_event]
    if described.events is None or not own:
        return
    name = described.opened.path.name
    listed = [len(onsets_of(described.events.markers, (event,))) for event in view.events]
    there = [len(onsets_of(own, (event,))) for event in view.events]
    if any(there):
        for event, many, others in zip(view.events, listed, there, strict=True):
            if many != others:
                yield (
                    "event numbers",
                    f"{name} ({event}: {many} in the table, {others} in the file)",
                )
    elif any(listed):
        yield "event names", f"{name} ({', '.join(sorted({x.name for x in own})[:3])})"
