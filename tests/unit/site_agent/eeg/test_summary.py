"""Summary of recordings for the site's staff."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from consortium.algorithms.base import Serious
from consortium.study.data_section import DataSection
from site_agent.data.understood import Understanding
from site_agent.eeg.summary import summarize_recordings
from tests.support.paused_recordings import BREAKS, paused, write_fif
from tests.support.tiny_recordings import TASK, erp_view, record, table, tiny_tape


def summary(folder: Path, **changes) -> Understanding:
    return summarize_recordings(folder, erp_view(**changes), DataSection())


def facts(found: Understanding) -> dict[str, str]:
    return dict(found.facts)


def test_files_rates_units_and_events_are_counted(tmp_path: Path) -> None:
    for label, ending, rate in (("01", ".vhdr", 250), ("02", ".edf", 500), ("03", ".fif", 250)):
        record(tmp_path, label, tiny_tape(rate=rate), ending)
    found = summary(tmp_path)
    assert facts(found) == {
        "EEG files": ".vhdr without desc: 1 each (1 participant); .edf without desc: 1 each "
        "(1 participant); .fif without desc: 1 each (1 participant)",
        "EEG sampling rate": "250 Hz (2 participants); 500 Hz (1 participant)",
        "EEG unit": "µV in .vhdr files (1 participant); µV in .edf files (1 participant); V in "
        ".fif files (1 participant)",
        "EEG events": "target in events.tsv: 12 each (3 participants)",
    }
    assert found.notes == ()


@pytest.mark.parametrize("kind", BREAKS)
def test_breaks_of_every_format_are_counted(tmp_path: Path, kind: str) -> None:
    BREAKS[kind](tmp_path, paused(trials=(6, 6, 6), pause=4))
    assert "2 each (1 participant)" in facts(summary(tmp_path))["EEG breaks"]


def _units(path: Path) -> None:
    file = table(path, "channels")
    file.write_text(file.read_text().replace("uV", "mV"))


def _rate(path: Path) -> None:
    path.with_suffix(".json").write_text('{"SamplingFrequency": 500}')


def _fewer(path: Path) -> None:
    file = table(path, "events")
    file.write_text("\n".join(file.read_text().splitlines()[:-4]) + "\n")


def _renamed(path: Path) -> None:
    tape = tiny_tape()
    write_fif(path, tape, [(onset, 0.0, f"S {len(name)}") for onset, name in tape.events])


def _skipped(path: Path) -> None:
    with table(path, "events").open("a") as file:
        file.write("n/a\t0\ttarget\n-1\t0\ttarget\n")


def _version(path: Path) -> None:
    record(path.parents[2], "01", tiny_tape(), ".edf")


def _link(path: Path) -> None:
    (path.parents[1] / "ses-b").symlink_to("/")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def _whole_set(path: Path) -> None:
    (path.parents[2] / f"task-{TASK}_events.tsv").write_text("onset\ttrial_type\n1\ttarget\n")


DOUBTS: dict[str, tuple[Callable[[Path], None], bool, str]] = {
    "unit": (_units, True, "Cz: mV in the table, µV in the file"),
    "rate": (_rate, True, "500 Hz in the JSON file, 250 Hz in the recording"),
    "event numbers": (_fewer, True, "target: 10 in the table, 12 in the file"),
    "event names": (_renamed, False, "the recording has other names"),
    "lines skipped": (_skipped, False, "_events.tsv (2 lines)"),
    "versions": (_version, True, "_eeg.edf instead of"),
    "link": (_link, True, "leads out of the data set"),
    "damaged": (_cut, False, "the recording can't be used"),
    "table of all": (_whole_set, True, "applies to all participants"),
}


@pytest.mark.parametrize("case", DOUBTS)
def test_doubts_are_sentences(tmp_path: Path, case: str) -> None:
    change, serious, words = DOUBTS[case]
    record(tmp_path, "02", tiny_tape(2), ".fif")
    change(record(tmp_path, "01", tiny_tape(), ".vhdr" if case == "unit" else ".fif"))
    (note,) = summary(tmp_path).notes
    assert words in note
    assert isinstance(note, Serious) == serious
    assert note.endswith(".")


def test_events_in_a_pause_and_short_segments_are_counted(tmp_path: Path) -> None:
    made = paused(trials=(2, 8))
    BREAKS["EDF+D, events in the table"](tmp_path, made)
    with table(next(tmp_path.rglob("*.edf")), "events").open("a") as file:
        file.write(f"{made.clock[1] - 1}\t0\ttarget\n")
    pause, short = summary(tmp_path, filter=[0.25, 30]).notes
    assert "(1 event)" in pause
    assert "(1 segment of less than 13.2 s)" in short


def test_different_processing_is_a_warning(tmp_path: Path) -> None:
    record(tmp_path, "01", tiny_tape(), ".fif")
    path = record(tmp_path, "02", tiny_tape(), ".fif")
    path.rename(path.with_name(path.name.replace("_eeg", "_desc-preproc_eeg")))
    (note,) = summary(tmp_path).notes
    assert "desc-preproc (1 participant), without desc (1 participant)" in note
    assert isinstance(note, Serious)


def test_bad_channels_and_spans_of_file_and_table_are_counted(tmp_path: Path) -> None:
    path = record(tmp_path, "01", tiny_tape(), ".fif")
    file = table(path, "channels")
    file.write_text(file.read_text().replace("Pz\tEEG\tuV\tgood", "PZ\tEEG\tuV\tBad"))
    write_fif(path, tiny_tape(), [(3.0, 1.0, "BAD eog")])
    found = facts(summary(tmp_path))
    assert found["bad EEG channels"] == "Pz in channels.tsv (1 participant)"
    assert found["bad spans of EEG"] == "spans: 1 each (1 participant)"


def test_warnings_of_mne_are_grouped(tmp_path: Path) -> None:
    for label, late in (("01", 500.0), ("02", 700.0)):
        tape = tiny_tape()
        path = record(tmp_path, label, replace(tape, events=(*tape.events, (late, "late"))))
        table(path, "events").unlink()
    found = facts(summary(tmp_path))["MNE's warnings"]
    assert "outside" in found
    assert "2 participants" in found
    assert "sub-" not in found
