"""Contradictions between the events of a table and of a file, as keys and counts."""

from pathlib import Path

import pytest

from site_agent.eeg.contradictions import channel_remarks, event_remarks, sample_remarks
from site_agent.eeg.reading import describe_recording
from tests.support.tiny_recordings import erp_view, record, table, tiny_tape

VIEW = erp_view(events=["a", "b"])
OWN = ((1.0, "a"), (2.0, "b"), (3.0, "a"), (4.0, "b"))
TABLES = {
    "equal": ("1 a,2 b,3 a,4 b", []),
    "in another order": ("4 b,3 a,2 b,1 a", []),
    "close": ("1.01 a,2 b,2.99 a,4 b", []),
    "late": ("1 a,2.2 b,3 a,4 b", ["event times"]),
    "names of two changed": ("1 b,2 a,3 a,4 b", ["event kinds", "event kinds"]),
    "late and another name": ("1 b,2 a,3.3 a,4 b", ["event kinds", "event times", "event kinds"]),
    "one of them twice": ("1 a,1 a,2 b,4 b", ["event times"]),
    "fewer": ("1 a,2 b,3 a", ["event numbers"]),
    "more, of a third name": ("1 a,2 b,3 a,4 b,2.5 c", []),
    "other names": ("1 x,2 y", ["event numbers"] * 2),
}


@pytest.mark.parametrize("case", TABLES)
def test_events_are_compared_by_time_and_name(tmp_path: Path, case: str) -> None:
    lines, keys = TABLES[case]
    tape = tiny_tape(trials=2)
    path = record(tmp_path, "01", type(tape)(tape.channels, tape.rate, tape.signals, OWN))
    rows = [each.split() for each in lines.split(",")]
    text = "".join(f"{onset}\t0\t{name}\n" for onset, name in rows)
    table(path, "events").write_text(f"onset\tduration\ttrial_type\n{text}")
    described = describe_recording(path, VIEW.channels)
    found = [key for key, _ in event_remarks(described, VIEW)]
    assert found == keys
    assert list(sample_remarks(described)) == []
    assert list(channel_remarks(described, VIEW)) == []


def test_at_most_five_channels_of_another_type_are_listed(tmp_path: Path) -> None:
    names = tuple(f"C{n}" for n in range(1, 9))
    path = record(tmp_path, "01", tiny_tape(trials=2, channels=names))
    file = table(path, "channels")
    file.write_text(file.read_text().replace("\tEEG", "\tMISC"))
    view = erp_view(channels=names)
    ((key, example),) = channel_remarks(describe_recording(path, view.channels), view)
    assert key == "channel type"
    assert example.endswith("(C1: MISC, C2: MISC, C3: MISC, C4: MISC, C5: MISC, 3 more)")
