"""Contradictions between a recording and the tables that describe it."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from consortium.base.formatting import count
from consortium.views.eeg import EegView
from site_agent.eeg.breaks import Marker
from site_agent.eeg.reading import Described
from site_agent.eeg.recording import match_channels, onsets_of
from site_agent.eeg.sidecar import MICROVOLTS

Remark = tuple[str, str]
"""Key of `REMARKS` and an example."""
_CLOSE = 0.01
"""Seconds by which two times of one event may differ, or two samples if these are longer."""
_SAMPLES = 1.5
"""Samples by which 'sample' may differ from the onset: some tables count from 1, and round."""
_ROUNDED = 1e-3
"""Seconds by which rounded onsets may differ from 'sample'."""
_SHOWN = 5


def channel_remarks(described: Described, view: EegView) -> Iterator[Remark]:
    """Yield the study's channels whose unit or type in the table is not the recording's."""
    opened = described.opened
    table = described.channels
    found = match_channels(view.channels, opened.names, opened.path).values()
    for name in found:
        own = (opened.units or {}).get(name)
        listed = table.unit(name)
        factors = [MICROVOLTS.get(unit or "") for unit in (own, listed)]
        if None not in factors and factors[0] != factors[1]:
            yield "unit", f"{opened.path.name} ({name}: {listed} in the table, {own} in the file)"
            break
    other = [f"{name}: {kind}" for name in found if (kind := table.other_type(name))]
    if other:
        more = [f"{len(other) - _SHOWN} more"] if len(other) > _SHOWN else []
        yield "channel type", f"{opened.path.name} ({', '.join([*other[:_SHOWN], *more])})"


def event_remarks(described: Described, view: EegView) -> Iterator[Remark]:
    """Yield differences between the events of the table and of the file's annotations."""
    own = [each for each in described.opened.markers if each.is_event]
    if described.events is None or not own:
        return
    name = described.opened.path.name
    listed = {event: onsets_of(described.events.markers, (event,)) for event in view.events}
    in_file = {event: onsets_of(own, (event,)) for event in view.events}
    if not any(in_file.values()):
        if any(listed.values()):
            yield "event names", f"{name} ({', '.join(sorted({x.name for x in own})[:3])})"
        return
    close = max(_CLOSE, 2 / described.opened.rate) + 1e-9
    for event in view.events:
        many = len(listed[event])
        others = len(in_file[event])
        if many != others:
            example = f"{many} in the table, {others} in the file"
            yield "event numbers", f"{name} ({event}: {example})"
        else:
            apart = _apart(event, listed[event], own, close)
            yield from ((key, f"{name} ({event}: {example})") for key, example in apart)


def _apart(
    event: str, listed: Sequence[float], own: Sequence[Marker], close: float
) -> Iterator[Remark]:
    """Yield differences in time or kind between equal numbers of one event."""
    in_file = onsets_of(own, (event,))
    gaps = [abs(a - b) for a, b in zip(listed, in_file, strict=True)]
    if max(gaps, default=0.0) <= close:
        return
    unmatched = [time for time in listed if not _near(time, in_file, close)]
    every = sorted(each.onset for each in own)
    renamed = [time for time in unmatched if _near(time, every, close)]
    if renamed:
        yield "event kinds", f"{len(renamed)} of {len(listed)} have another name in the file"
    if len(unmatched) > len(renamed) or not renamed:
        far = sum(gap > close for gap in gaps)
        yield "event times", f"{far} of {len(listed)}, by up to {max(gaps):.3g} s"


def _near(time: float, times: Sequence[float], close: float) -> bool:
    """Return whether one of some sorted times is close to a time."""
    place = bisect_left(times, time - close)
    return place < len(times) and times[place] <= time + close


def sample_remarks(described: Described) -> Iterator[Remark]:
    """Yield a contradiction between the onsets and the samples of more than a tenth of the lines.

    Samples count without the pauses of the recording.
    """
    table = described.events
    rate = described.opened.rate
    if table is None:
        return
    allowed = max(_SAMPLES, _ROUNDED * rate) + 1e-6
    wrong = []
    for onset, sample in table.samples:
        for marker in described.opened.clock.in_file([Marker(onset, 0.0, "")]):
            if abs(marker.onset * rate - sample) > allowed:
                wrong.append(f"sample {sample:g} at {onset:g} s and {rate:g} Hz")
    if 10 * len(wrong) > len(table.samples):
        lines = f"{len(wrong)} of {count(len(table.samples), 'line')}"
        yield "sample", f"{table.path.name} ({lines}, such as {wrong[0]})"
