"""Doubts about one EEG recording that the site's staff can resolve."""

from collections.abc import Iterator

from consortium.base.formatting import count
from consortium.views.eeg import EegView
from site_agent.eeg.breaks import segments_between
from site_agent.eeg.contradictions import (
    Remark,
    channel_remarks,
    event_remarks,
    sample_remarks,
)
from site_agent.eeg.epochs import least_seconds
from site_agent.eeg.reading import Described
from site_agent.eeg.recording import onsets_of

REMARKS = {
    "unit": (
        True,
        (
            "the unit in channels.tsv differs from the recording's, as in {example}. The "
            "recording's unit is used. Correct the wrong one."
        ),
    ),
    "channel type": (
        True,
        (
            "channels.tsv gives channels of the study another type than EEG, as in {example}. They "
            "are used as EEG. Correct the table, or mark them as bad if they are not EEG."
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
    "event times": (
        True,
        (
            "the events table and the recording have an event at different times, as in {example}. "
            "The table is used. Correct the wrong one."
        ),
    ),
    "event kinds": (
        True,
        (
            "the events table and the recording have different names for events at the same times, "
            "as in {example}. The table is used. Correct the wrong one."
        ),
    ),
    "sample": (
        True,
        (
            "the columns onset and sample of the events table contradict each other, as in "
            "{example}. The onsets are used. Correct the wrong column."
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
    opened = described.opened
    name = described.opened.path.name
    yield from channel_remarks(described, view)
    stated = described.sidecar.rate
    if stated is not None and abs(stated - opened.rate) > 1e-3 * opened.rate:
        yield (
            "rate",
            f"{name} ({stated:g} Hz in the JSON file, {opened.rate:g} Hz in the recording)",
        )
    yield from event_remarks(described, view)
    yield from sample_remarks(described)
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
