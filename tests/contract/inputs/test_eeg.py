"""EEG files as hospitals write them: the vector is MNE's of the clean recording, or a sentence.

The kinds are those of issue 50. Each test writes files of one kind in many variants.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import mne
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scipy.io import loadmat, savemat

from consortium.algorithms.base import Serious
from consortium.errors import DataError
from consortium.study.data_section import DataSection
from site_agent.data.cache import vector_key
from site_agent.eeg.summary import summarize_recordings
from site_agent.eeg.vectors import band_power, read_recordings
from site_agent.engines.base import Threads
from tests.support.paused_recordings import (
    BREAKS,
    Paused,
    paused,
    place,
    raw_of,
    write_edf_plus,
    write_eeglab,
    write_events,
    write_fif,
)
from tests.support.recordings import WRITERS, Tape, write_nifti_tape
from tests.support.tiny_recordings import RATE, TASK, erp_view, record, table, tiny_tape

VIEW = erp_view(rate=125)
# Shrinking a failure would read recordings for minutes.
FEW = settings(
    max_examples=4, deadline=None, derandomize=True, phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
BANDS = erp_view(measure="band-power", events=[], bands={"alpha": [8, 12]}, rate=125)


def read(dataset: Path, view=VIEW, data=None):
    shutil.rmtree(dataset / "cache", ignore_errors=True)
    return read_recordings(dataset, view, data or DataSection(), dataset / "cache", Threads(1))


def only(dataset: Path, view=VIEW) -> np.ndarray:
    vectors, skipped = read(dataset, view)
    assert skipped == []
    return vectors["01"]


def refusal(dataset: Path, view=VIEW, data=None) -> str:
    vectors, (skipped,) = read(dataset, view, data)
    assert "01" not in vectors
    assert (skipped.label, "\n" in skipped.detail) == ("01", False)
    return skipped.detail


def prepared(tape: Tape, view) -> mne.io.BaseRaw:
    centred = tape.signals - tape.signals.mean(axis=1, keepdims=True)
    raw = raw_of(replace(tape, signals=centred)).pick(list(view.channels))
    raw.set_eeg_reference("average", verbose="ERROR")
    return raw.filter(*view.filter, verbose="ERROR")


def epochs_by_mne(tape: Tape, view) -> np.ndarray:
    """MNE's epochs of one continuous recording, with a baseline, shape (E, C, T)."""
    raw = prepared(tape, view)
    onsets = [round(t * tape.rate) for t, name in tape.events if name in view.events]
    if view.measure == "band-power":
        starts = range(0, raw.n_times - 2 * tape.rate + 1, tape.rate)
        return np.array([1e6 * raw.get_data()[:, k : k + 2 * tape.rate : 2] for k in starts])
    epochs = mne.Epochs(
        raw, np.array([[onset, 0, 1] for onset in onsets]), tmin=view.times[0], baseline=None,
        tmax=view.times[-1], decim=round(tape.rate / view.rate), preload=True, verbose="ERROR",
    )  # fmt: skip
    values = 1e6 * epochs.get_data(verbose="ERROR")
    return values - values[..., np.array(view.times) < 0].mean(axis=2, keepdims=True)


def by_mne(segments, view=VIEW) -> np.ndarray:
    return np.concatenate([epochs_by_mne(each, view) for each in segments]).mean(axis=0).ravel()


# -- K3: breaks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BREAKS)
@FEW
@given(
    seed=st.integers(0, 99), pause=st.integers(1, 40),
    trials=st.lists(st.integers(5, 9), min_size=2, max_size=3),
)  # fmt: skip
def test_no_filter_and_no_epoch_crosses_a_break(
    tmp_path: Path, kind: str, seed: int, pause: int, trials: list[int]
) -> None:
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    made = paused(seed, trials, pause)
    BREAKS[kind](tmp_path, made)
    # EDF keeps 16 bits of the range that the offsets take.
    coarse = 0.05 if "EDF" in kind else 1e-4
    np.testing.assert_allclose(only(tmp_path), by_mne(made.segments), atol=coarse)


@pytest.mark.parametrize("kind", ["EDF+D, events in the file", "EEGLAB, boundary at a sample"])
def test_windows_without_events_keep_to_a_segment(tmp_path: Path, kind: str) -> None:
    made = paused()
    BREAKS[kind](tmp_path, made)
    windows = np.concatenate([epochs_by_mne(each, BANDS) for each in made.segments])
    np.testing.assert_allclose(only(tmp_path, BANDS), band_power(windows, BANDS), atol=0.02)


def test_a_segment_too_short_for_the_filter_is_not_used(tmp_path: Path) -> None:
    made = paused()
    short = replace(made.segments[0], signals=made.segments[0].signals[:, : 5 * RATE])
    short = replace(short, events=((2.0, "target"),))
    BREAKS["EDF+D, events in the table"](tmp_path, Paused((short, made.segments[1])))
    np.testing.assert_allclose(only(tmp_path), by_mne(made.segments[1:]), atol=0.05)
    BREAKS["EDF+D, events in the table"](tmp_path, Paused((short, short)))
    assert "has no segment of" in refusal(tmp_path)


def test_an_event_in_a_pause_is_no_epoch(tmp_path: Path) -> None:
    made = paused()
    BREAKS["EDF+D, events in the table"](tmp_path, made)
    path = next(tmp_path.rglob("*.edf"))
    write_events(path, [*made.clock_events, (made.clock[1] - 3.0, 0.0, "target")])
    np.testing.assert_allclose(only(tmp_path), by_mne(made.segments), atol=0.05)


def test_a_bad_span_over_a_pause_covers_both_sides(tmp_path: Path) -> None:
    made = paused()
    BREAKS["EDF+D, events in the table"](tmp_path, made)
    path = next(tmp_path.rglob("*.edf"))
    start, stop = made.clock[1] - made.pause - 3.0, made.clock[1] + 2.5
    write_events(path, [*made.clock_events, (start, stop - start, "bad")])
    gone = length_of(made.segments[0]) - 3.0
    first, second = made.segments
    first = replace(first, events=tuple(e for e in first.events if e[0] + 0.6 < gone))
    second = replace(second, events=tuple(e for e in second.events if e[0] - 0.1 >= 2.5))
    np.testing.assert_allclose(only(tmp_path), by_mne((first, second)), atol=0.05)


def length_of(tape: Tape) -> float:
    return tape.signals.shape[1] / tape.rate


@pytest.mark.parametrize("fault", ["no time", "backwards"])
def test_records_without_order_are_refused(tmp_path: Path, fault: str) -> None:
    tape = tiny_tape()
    path = place(tmp_path, "01", tape, ".edf")
    starts = [float(n) for n in range(round(length_of(tape)))]
    starts[9] = 3.0 if fault == "backwards" else starts[9]
    write_edf_plus(path, tape, starts, [])
    if fault == "no time":
        path.write_bytes(path.read_bytes().replace(b"+9\x14", b"x9\x14"))
    assert "data record" in refusal(tmp_path)


def test_clocks_overrule_the_label_of_a_continuous_file(tmp_path: Path) -> None:
    made = paused()
    BREAKS["EDF+D, events in the file"](tmp_path, made)
    path = next(tmp_path.rglob("*.edf"))
    path.write_bytes(path.read_bytes().replace(b"EDF+D", b"EDF+C"))
    np.testing.assert_allclose(only(tmp_path), by_mne(made.segments), atol=0.05)


def test_a_first_segment_marker_is_no_break(tmp_path: Path) -> None:
    tape = tiny_tape()
    BREAKS["BrainVision, New Segment"](tmp_path, Paused((tape,)))
    np.testing.assert_allclose(only(tmp_path), by_mne([tape]), atol=1e-4)


@pytest.mark.parametrize("ending", [".set", ".vhdr"])
def test_breaks_at_both_ends_change_nothing(tmp_path: Path, ending: str) -> None:
    tape = tiny_tape()
    path = place(tmp_path, "01", tape, ".set") if ending == ".set" else record(tmp_path, "01", tape)
    cuts = [(-0.5 / RATE, 0.0, "boundary"), (length_of(tape) - 0.5 / RATE, 9.0, "boundary")]
    if ending == ".set":
        write_eeglab(path, tape, cuts)
    else:
        write_events(path, [*((t, 0.0, name) for t, name in tape.events), *cuts])
    np.testing.assert_allclose(only(tmp_path), by_mne([tape]), atol=1e-4)


# -- K4: two sources of one fact -------------------------------------------------------------------


def without(tape: Tape, spoilt: list[float]) -> Tape:
    return replace(tape, events=tuple(e for e in tape.events if e[0] not in spoilt))


@pytest.mark.parametrize("name", ["BAD_ACQ_SKIP", "bad_muscle", "Bad", "BAD EOG"])
@pytest.mark.parametrize("ending", [".fif", ".set", ".edf"])
def test_bad_spans_of_file_and_table_are_united(tmp_path: Path, ending: str, name: str) -> None:
    tape = tiny_tape()
    targets = [t for t, kind in tape.events if kind == "target"]
    path = place(tmp_path, "01", tape, ending)
    if name == "BAD_ACQ_SKIP":
        notes = [(13.0, 1.0, name)]
        cut = 13 * RATE
        halves = [
            replace(tape, signals=tape.signals[:, :cut], events=()),
            replace(tape, signals=tape.signals[:, cut + RATE :], events=()),
        ]
        for n, start in enumerate((0, 14)):
            events = tuple((t - start, k) for t, k in tape.events if start <= t < (13, 99)[n])
            halves[n] = replace(halves[n], events=events)
        gone = halves[1].events
        halves[1] = replace(halves[1], events=tuple(e for e in gone if e[0] + 14 != targets[-1]))
        expected = by_mne(halves)
    else:
        notes = [(targets[2] - 0.05, 1.0, name), (targets[5], 0.2, name)]
        expected = by_mne([without(tape, [targets[k] for k in (2, 5, 11)])])
    if ending == ".edf":
        starts = [float(n) for n in range(round(length_of(tape)))]
        write_edf_plus(path, tape, starts, notes, "EDF+C")
    else:
        (write_fif if ending == ".fif" else write_eeglab)(path, tape, notes)
    with table(path, "events").open("a") as file:
        file.write(f"{targets[11]:.3f}\t0.1\tBad\n")
    np.testing.assert_allclose(only(tmp_path), expected, atol=0.02)


def test_bad_comments_and_intervals_of_brainvision_are_bad_spans(tmp_path: Path) -> None:
    tape = tiny_tape()
    targets = [t for t, kind in tape.events if kind == "target"]
    marks = record(tmp_path, "01", tape).with_suffix(".vmrk")
    first, second = (round(targets[k] * RATE) + 1 for k in (4, 6))
    more = f"Mk90=Comment,BAD blink,{first},99,0\nMk91=Bad Interval,Bad Min-Max,{second},99,0\n"
    marks.write_text(marks.read_text() + more)
    expected = by_mne([without(tape, [targets[4], targets[6]])])
    np.testing.assert_allclose(only(tmp_path), expected, atol=1e-4)


def test_annotations_of_a_cropped_file_with_a_date_are_on_its_samples(tmp_path: Path) -> None:
    tape = tiny_tape()
    path = place(tmp_path, "01", tape, ".fif")
    table(path, "events").unlink()
    raw = raw_of(tape)
    raw.set_meas_date(0.0)
    onsets, names = zip(*tape.events, (7.0, "BAD"), strict=True)
    raw.set_annotations(mne.Annotations(onsets, 0.2, names, orig_time=raw.info["meas_date"]))
    raw.crop(1.0).save(path, verbose="ERROR")
    kept = tuple((t - 1, name) for t, name in tape.events if not 6.4 < t < 7.3)
    assert len(kept) < len(tape.events)
    clean = replace(tape, signals=tape.signals[:, RATE:], events=kept)
    np.testing.assert_allclose(only(tmp_path), by_mne([clean]), atol=1e-4)


@pytest.mark.parametrize("spans", [0, 1])
def test_a_bad_span_does_not_hide_the_trigger_channel(tmp_path: Path, spans: int) -> None:
    tape = tiny_tape()
    path = place(tmp_path, "01", tape, ".fif")
    table(path, "events").unlink()
    codes = [(t, 1 + (name == "standard")) for t, name in tape.events]
    write_fif(path, tape, [(0.1, 0.5, "BAD")] * spans, codes)
    np.testing.assert_allclose(
        only(tmp_path, erp_view(rate=125, events=["1"], minimum_epochs=12)),
        by_mne([tape]),
        atol=1e-4,
    )


LABELS = {
    "EEG Cz-REF": ["Cz", "CZ", "EEG Cz-REF", "eeg cz", "Cz."],
    "Cz": ["CZ", "EEG Cz-LE", "cz "],
    "EEG T3-LE": ["T7", "t3"],
}


@pytest.mark.parametrize("status", ["bad", "Bad", "BAD "])
@pytest.mark.parametrize(("label", "listed"), [(k, x) for k, xs in LABELS.items() for x in xs])
def test_a_bad_channel_is_found_however_it_is_written(
    tmp_path: Path, label: str, listed: str, status: str
) -> None:
    channels = ("Fp1", label, "Pz", "Oz")
    path = record(tmp_path, "01", tiny_tape(channels=channels), ".edf")
    rows = "".join(f"{name}\tEEG\tuV\tgood\n" for name in channels if name != label)
    table(path, "channels").write_text(
        f"name \ttype\tunits\tStatus\n{rows}{listed}\tEEG\tuV\t{status}\n"
    )
    wanted = "T7" if "T3" in label else "Cz"
    assert f"no good channel {wanted}" in refusal(tmp_path, erp_view(channels=[wanted, "Pz", "Oz"]))


def test_a_channel_of_the_very_name_decides(tmp_path: Path) -> None:
    channels = ("Cz", "Cz-LE", "Pz", "Oz")
    path = record(tmp_path, "01", tiny_tape(channels=channels), ".edf")
    file = table(path, "channels")
    file.write_text(file.read_text().replace("Cz-LE\tEEG\tuV\tgood", "Cz-LE\tEEG\tuV\tbad"))
    assert only(tmp_path).any()


def test_bad_channels_of_file_and_table_are_united(tmp_path: Path) -> None:
    tape = tiny_tape()
    path = place(tmp_path, "01", tape, ".fif")
    raw = raw_of(tape)
    raw.info["bads"] = ["Pz"]
    raw.save(path, verbose="ERROR")
    file = table(path, "channels")
    file.write_text(file.read_text().replace("Cz\tEEG\tuV\tgood", "CZ\tEEG\tuV\tBad"))
    assert "no good channel Cz, Pz" in refusal(tmp_path)


def test_events_that_only_the_recording_has_are_named(tmp_path: Path) -> None:
    path = record(tmp_path, "01", tiny_tape(), ".fif")
    table(path, "events").write_text("onset\tduration\ttrial_type\n1\t0\tother\n")
    assert "no event target in its events table, and 12 in the recording" in refusal(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "\x80"])
@pytest.mark.parametrize("ending", sorted(WRITERS))
def test_a_damaged_sidecar_is_not_an_absent_one(tmp_path: Path, ending: str, text: str) -> None:
    path = record(tmp_path, "01", tiny_tape(), ending)
    sidecar = path.with_name(path.name.replace(ending, ".json"))
    sidecar.write_bytes(text.encode("latin-1"))
    assert sidecar.name in refusal(tmp_path)
    if not ending.startswith(".nii"):
        sidecar.unlink()
        assert only(tmp_path).any()


@pytest.mark.parametrize("suffix", ["events", "channels"])
@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"", b"a\tb\n1\t2\n"])
def test_a_damaged_table_is_not_an_absent_one(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = record(tmp_path, "01", tiny_tape())
    record(tmp_path, "02", tiny_tape(2))
    table(path, suffix).write_bytes(content)
    assert f"_{suffix}.tsv" in refusal(tmp_path)


@pytest.mark.parametrize("suffix", ["events", "channels"])
def test_a_table_of_the_participants_folder_holds_for_all_runs(tmp_path: Path, suffix: str) -> None:
    path = record(tmp_path, "01", tiny_tape(), run="1")
    expected = only(tmp_path)
    table(path, suffix).rename(tmp_path / "sub-01" / f"sub-01_task-{TASK}_{suffix}.tsv")
    np.testing.assert_array_equal(only(tmp_path), expected)
    (tmp_path / "sub-01" / f"sub-01_task-{TASK}_{suffix}.tsv").write_bytes(b"\xff")
    assert f"_{suffix}.tsv" in refusal(tmp_path)


def notes_on(dataset: Path, view=VIEW) -> list[str]:
    notes = summarize_recordings(dataset, view, DataSection()).notes
    assert all(isinstance(note, Serious) for note in notes)
    return list(notes)


def _rewrite(path: Path, change: Callable[[list[list[str]]], object]) -> None:
    """Change the lines of an events table, given as cells."""
    header, *lines = table(path, "events").read_text().splitlines()
    cells = [line.split("\t") for line in lines]
    change(cells)
    table(path, "events").write_text("\n".join([header, *map("\t".join, cells)]) + "\n")


def _later(seconds: float, every: int = 1) -> Callable[[list[list[str]]], object]:
    def change(cells: list[list[str]]) -> None:
        for line in cells[::every]:
            line[0] = f"{float(line[0]) + seconds:.6f}"

    return change


def _swapped(*lines: int) -> Callable[[list[list[str]]], object]:
    def change(cells: list[list[str]]) -> None:
        for number in lines or range(len(cells)):
            cells[number][2] = {"target": "standard", "standard": "target"}[cells[number][2]]

    return change


EVENTS_APART: dict[str, tuple[Callable[[list[list[str]]], object], str]] = {
    "all later": (_later(0.3), "at different times, as in {} (target: 12 of 12, by up to 0.3 s)"),
    "a little": (_later(0.011), "(target: 12 of 12, by up to 0.011 s)"),
    "some": (_later(0.3, 4), "(target: 6 of 12, by up to 0.3 s)"),
    "swapped": (_swapped(), "names for events at the same times, as in {} (target: 12 of 12 have"),
    "swapped pair": (_swapped(0, 1), "(target: 1 of 12 have another name in the file)"),
    "distant pair": (_swapped(0, 23), "(target: 1 of 12 have another name in the file)"),
}


@pytest.mark.parametrize("case", EVENTS_APART)
@pytest.mark.parametrize("ending", [".vhdr", ".fif"])
def test_events_that_differ_in_time_or_kind_are_a_warning(
    tmp_path: Path, ending: str, case: str
) -> None:
    change, words = EVENTS_APART[case]
    record(tmp_path, "02", tiny_tape(), ending)
    path = record(tmp_path, "01", tiny_tape(), ending)
    assert notes_on(tmp_path) == []
    _rewrite(path, change)
    (note,) = notes_on(tmp_path)
    assert note.startswith("EEG of 1 participant: ")
    assert words.format(path.name) in note


def test_events_that_differ_by_rounding_are_no_warning(tmp_path: Path) -> None:
    _rewrite(record(tmp_path, "01", tiny_tape()), _later(0.0099))
    _rewrite(record(tmp_path, "02", tiny_tape(rate=100)), _later(0.0199))
    both = erp_view(events=["target", "standard"])
    _rewrite(record(tmp_path, "03", tiny_tape()), lambda cells: cells.reverse())
    assert notes_on(tmp_path, both) == []


def _with_samples(path: Path, sample: Callable[[int, float], object], digits: int = 6) -> None:
    header, *lines = table(path, "events").read_text().splitlines()
    rows = [f"{header}\tsample"]
    for number, line in enumerate(lines):
        onset, rest = line.split("\t", 1)
        rows.append(f"{float(onset):.{digits}f}\t{rest}\t{sample(number, float(onset))}")
    table(path, "events").write_text("\n".join(rows) + "\n")


SAMPLES: dict[str, tuple[Callable[[int, float], object], str]] = {
    "another rate": (lambda _, t: round(500 * t), "24 of 24 lines, such as sample 1000 at 2 s and"),
    "late": (lambda _, t: round(250 * t) + 2, "24 of 24 lines"),
    "some": (lambda n, t: round(250 * t) + 9 * (n < 3), "3 of 24 lines, such as sample 509"),
    "few": (lambda n, t: round(250 * t) + 9 * (n < 2), ""),
    "from 1": (lambda _, t: round(250 * t) + 1, ""),
    "not stated": (lambda _, t: "n/a", ""),
    "not finite": (lambda n, t: ("inf", "nan", "1e999")[n % 3], ""),
}


@pytest.mark.parametrize("case", SAMPLES)
def test_samples_that_contradict_the_onsets_are_a_warning(tmp_path: Path, case: str) -> None:
    sample, words = SAMPLES[case]
    tape = tiny_tape()
    _with_samples(record(tmp_path, "01", tape), sample)
    notes = notes_on(tmp_path)
    assert len(notes) == bool(words)
    assert all(f"_events.tsv ({words}" in note for note in notes)
    np.testing.assert_allclose(only(tmp_path), by_mne([tape]), atol=1e-4)


def test_samples_of_a_paused_recording_count_without_the_pauses(tmp_path: Path) -> None:
    made = paused()
    BREAKS["EDF+D, events in the table"](tmp_path, made)
    places = [round(t * RATE) for t, _ in made.joined.events]
    path = next(tmp_path.rglob("*.edf"))
    assert len(table(path, "events").read_text().splitlines()) == len(places) + 1
    _with_samples(path, lambda n, _: places[n])
    assert notes_on(tmp_path) == []


@pytest.mark.parametrize("kind", ["MISC", "EOG", "ECG", "EMG", "TRIG", "REF", "eog"])
def test_a_channel_of_another_type_is_a_warning(tmp_path: Path, kind: str) -> None:
    tape = tiny_tape()
    for label, lines in (("01", ("Cz", "Oz", "Fp1")), ("02", ("Oz",)), ("03", ("Fp1",))):
        file = table(record(tmp_path, label, tape), "channels")
        for name in lines:
            file.write_text(file.read_text().replace(f"{name}\tEEG", f"{name.upper()}\t{kind}"))
    (note,) = notes_on(tmp_path)
    assert note.startswith("EEG of 2 participants: channels.tsv gives channels of the study")
    assert f"(Cz: {kind}, Oz: {kind})" in note
    vectors, _ = read(tmp_path)
    np.testing.assert_allclose(vectors["01"], by_mne([tape]), atol=1e-4)


@pytest.mark.parametrize("kind", ["EEG", "eeg", "n/a", "", " EEG "])
def test_a_channel_of_type_eeg_or_of_none_is_no_warning(tmp_path: Path, kind: str) -> None:
    file = table(record(tmp_path, "01", tiny_tape()), "channels")
    file.write_text(file.read_text().replace("\tEEG", f"\t{kind}"))
    assert notes_on(tmp_path) == []


EVENT_LINES = {
    "some without": (2, "12 each (1 participant), none (2 participants: sub-01, sub-02)"),
    "one without": (1, "12 each (2 participants), none (1 participant: sub-01)"),
    "all without": (3, "none (3 participants: sub-01, sub-02, sub-03)"),
    "none without": (0, "12 each (3 participants)"),
}


@pytest.mark.parametrize("case", EVENT_LINES)
def test_the_summary_names_those_without_an_event(tmp_path: Path, case: str) -> None:
    without, words = EVENT_LINES[case]
    for number in (1, 2, 3):
        path = record(tmp_path, f"0{number}", tiny_tape(), ".edf")
        if number <= without:
            table(path, "events").write_text("onset\tduration\ttrial_type\n1\t0\tother\n")
    facts = dict(summarize_recordings(tmp_path, VIEW, DataSection()).facts)
    assert facts["EEG events"] == f"target in events.tsv: {words}"
    assert facts["EEG sampling rate"] == "250 Hz (3 participants)"


def test_the_summary_lists_at_most_five_without_an_event(tmp_path: Path) -> None:
    for number in range(7):
        path = record(tmp_path, f"0{number}", tiny_tape(trials=2), ".edf")
        table(path, "events").write_text("onset\tduration\ttrial_type\n1\t0\tother\n")
    facts = dict(summarize_recordings(tmp_path, VIEW, DataSection()).facts)
    assert "sub-04, 2 more)" in facts["EEG events"]


# -- a participant's impossible values -------------------------------------------------------------

NUMBERS = ["1e308", "-1e308", "1e999", "nan", "-0.0", "9" * 401, "9" * 5000, "True", "[[1]]"]
VALUES = [*NUMBERS, "true", "null", '"250"', "{}", "[" * 50 + "]" * 50, "1e-300", '"\\ud800"']


def _events_of(onset: str, duration: str, name: str) -> Callable[[Path], object]:
    row = f"{onset}\t{duration}\t{name}\t{onset}\n"
    return lambda path: table(path, "events").write_text(
        f"onset\tduration\ttrial_type\tsample\n2\t0\ttarget\t500\n{row}"
    )


def _channels_of(value: str) -> Callable[[Path], object]:
    row = "\t".join([value] * 4)
    return lambda path: table(path, "channels").write_text(f"name\ttype\tunits\tstatus\n{row}\n")


def _json_of(key: str, value: str) -> Callable[[Path], object]:
    fields = {"SamplingFrequency": "250", "ChannelNames": '["Fp1", "Cz", "Pz", "Oz"]'}
    text = ", ".join(f'"{k}": {v}' for k, v in (fields | {key: value}).items())
    return lambda path: path.with_suffix(".json").write_text(f"{{{text}}}")


NAMES_OF_EVENTS = ["target", "boundary", "bad", "BAD_ACQ_SKIP"]
IMPOSSIBLE = [
    *(_events_of("1", x, name) for x in NUMBERS for name in NAMES_OF_EVENTS),
    *(_events_of(x, "1e308", name) for x in ["-1", *NUMBERS] for name in NAMES_OF_EVENTS),
    *(_channels_of(x) for x in NUMBERS),
    *(_json_of(key, x) for x in VALUES for key in ("SamplingFrequency", "ChannelNames", "Units")),
]


@pytest.mark.parametrize("ending", [".nii", ".vhdr"])
def test_impossible_values_of_one_participant_stop_no_other(tmp_path: Path, ending: str) -> None:
    """Each participant has one impossible value, and participant 'sound' has none."""
    first = record(tmp_path, "sound", tiny_tape(trials=3), ".vhdr")
    if ending == ".nii":
        first = first.with_suffix(ending)
        write_nifti_tape(first, tiny_tape(trials=3))
        first.with_suffix(".vhdr").unlink()
        _json_of("Units", '"µV"')(first)
    for number, change in enumerate(IMPOSSIBLE):
        home = tmp_path / f"sub-{number}" / "eeg"
        home.mkdir(parents=True)
        for each in first.parent.iterdir():
            copied = home / each.name.replace("sub-sound", f"sub-{number}")
            copied.write_bytes(each.read_bytes().replace(b"sub-sound", f"sub-{number}".encode()))
        change(home / first.name.replace("sub-sound", f"sub-{number}"))
    vectors, skipped = read(tmp_path, view := erp_view(rate=125, minimum_epochs=1))
    assert "sound" in vectors
    assert len(vectors) + len(skipped) == len(IMPOSSIBLE) + 1
    assert all(f"sub-{each.label}_" in each.detail for each in skipped)
    assert all("possible values" not in each.detail for each in skipped)
    assert summarize_recordings(tmp_path, view, DataSection()).facts


UNFORESEEN = [OSError, KeyError, IndexError, OverflowError, ZeroDivisionError, RecursionError]


@pytest.mark.parametrize("error", UNFORESEEN)
@pytest.mark.parametrize(
    "place", ["vectors.cut_epochs", "vectors.vector_key", "vectors.band_power"]
)
def test_an_unforeseen_error_is_one_participants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, error: type[Exception]
) -> None:
    path = record(tmp_path, "01", tiny_tape(trials=3))

    def fail(*_: object) -> None:
        raise error("x")

    monkeypatch.setattr(f"site_agent.eeg.{place}", fail)
    assert path.name in refusal(tmp_path, BANDS)
    monkeypatch.setattr("site_agent.eeg.summary.remarks_on", fail)
    (note,) = summarize_recordings(tmp_path, BANDS, DataSection()).notes
    assert path.name in note


def test_a_skip_of_any_length_ends_with_the_recording(tmp_path: Path) -> None:
    tape = tiny_tape()
    path = record(tmp_path, "01", tape)
    with table(path, "events").open("a") as file:
        file.write("20\t1e308\tBAD_ACQ_SKIP\n")
    events = tuple(e for e in tape.events if e[0] + 0.6 < 20)
    cut = replace(tape, signals=tape.signals[:, : 20 * RATE], events=events)
    np.testing.assert_allclose(only(tmp_path), by_mne([cut]), atol=1e-4)


# -- K7: finite but implausible --------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("ending", sorted(WRITERS))
def test_an_amplitude_that_is_not_of_eeg_is_refused(
    tmp_path: Path, ending: str, factor: float
) -> None:
    tape = tiny_tape()
    if ending == ".edf" and factor > 1:
        pytest.skip("the header has no room for such a range")
    record(tmp_path, "01", replace(tape, signals=factor * tape.signals), ending)
    for view in (VIEW, BANDS):
        detail = refusal(tmp_path, view)
        assert "µV" in detail
        assert "unit is probably wrong" in detail


@pytest.mark.parametrize("factor", [0.2, 0.5, 2, 8])
def test_quiet_and_loud_eeg_is_kept(tmp_path: Path, factor: float) -> None:
    tape = tiny_tape()
    record(tmp_path, "01", replace(tape, signals=factor * tape.signals))
    assert only(tmp_path, erp_view(reject=5000)).any()


# -- K6, K8: near misses, choices and valid tables -------------------------------------------------


@pytest.mark.parametrize("onset", ["n/a", "-3", "-0.2", "N/A"])
def test_a_line_without_a_usable_onset_is_skipped(tmp_path: Path, onset: str) -> None:
    tape = tiny_tape()
    path = record(tmp_path, "01", tape)
    with table(path, "events").open("a") as file:
        file.write(f"{onset}\t0\ttarget\n")
    np.testing.assert_allclose(only(tmp_path), by_mne([tape]), atol=1e-4)


def test_the_rest_of_a_bad_span_that_began_before_is_kept(tmp_path: Path) -> None:
    tape = tiny_tape()
    path = record(tmp_path, "01", tape)
    with table(path, "events").open("a") as file:
        file.write("-1\t3.2\tbad\n")
    np.testing.assert_allclose(only(tmp_path), by_mne([without(tape, [2.0])]), atol=1e-4)


def test_an_onset_behind_the_end_is_an_error(tmp_path: Path) -> None:
    path = record(tmp_path, "01", tiny_tape())
    with table(path, "events").open("a") as file:
        file.write("900\t0\ttarget\n")
    assert "has an event at 900.0 s" in refusal(tmp_path)


@pytest.mark.parametrize("ending", [".EDF", ".FIF"])
def test_capital_endings_that_mne_reads_are_read(tmp_path: Path, ending: str) -> None:
    path = record(tmp_path, "01", tiny_tape(), ending.lower())
    expected = only(tmp_path)
    path.rename(path.with_suffix(ending))
    np.testing.assert_array_equal(only(tmp_path), expected)


def _rename(old: str, new: str) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        for each in list(path.parent.iterdir()):
            each.rename(each.with_name(each.name.replace(old, new)))

    return change


NEAR: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "task": (".edf", _rename(f"task-{TASK}", "task-Oddball"), "task-Oddball. Rename it"),
    "another task": (".edf", _rename(f"task-{TASK}", "task-stroop"), "recordings of task-stroop"),
    "capital header": (".vhdr", _rename(".vhdr", ".VHDR"), "must end with .vhdr"),
    "capital image": (".nii.gz", _rename(".nii.gz", ".NII.GZ"), "must end with .nii.gz"),
    "no header": (".vhdr", lambda p: p.unlink(), "no header file (.vhdr)"),
    "another format": (".edf", _rename("_eeg.edf", "_eeg.cnt"), "a format that is not read"),
    "no suffix": (".edf", _rename("_eeg.edf", ".edf"), "must end with _eeg"),
    "capital suffix": (".edf", _rename("_eeg.edf", "_EEG.edf"), "must end with _eeg"),
    "no task": (".edf", _rename(f"_task-{TASK}", ""), "not named by its task"),
    "later part": (".fif", _rename("_eeg.fif", "_split-02_eeg.fif"), "first part is missing"),
}


@pytest.mark.parametrize("case", NEAR)
def test_a_near_miss_is_named(tmp_path: Path, case: str) -> None:
    ending, change, words = NEAR[case]
    record(tmp_path, "02", tiny_tape())
    change(record(tmp_path, "01", tiny_tape(), ending))
    detail = refusal(tmp_path)
    assert f"no EEG of task-{TASK}" in detail
    assert words in detail
    shutil.rmtree(tmp_path / "sub-02")
    with pytest.raises(DataError) as all_of_them:
        read(tmp_path)
    assert words in str(all_of_them.value)


@pytest.mark.parametrize("other", ["run-1", "run-001"])
def test_a_run_in_two_spellings_is_the_participants_problem(tmp_path: Path, other: str) -> None:
    record(tmp_path, "01", tiny_tape(), run="01")
    record(tmp_path, "01", tiny_tape(2), run=other.removeprefix("run-"))
    record(tmp_path, "02", tiny_tape(2))
    assert "run-01" in refusal(tmp_path)


def test_a_linked_session_is_followed_inside_the_data_set(tmp_path: Path) -> None:
    few, many = tiny_tape(1), tiny_tape(2)
    for label, tape in (("a", few), ("b", many)):
        path = record(tmp_path / "made", "01", tape)
        home = tmp_path / "sub-01" / f"ses-{label}" / "eeg"
        shutil.move(path.parent, home)
        for each in list(home.iterdir()):
            text = each.read_bytes().replace(b"sub-01_", f"sub-01_ses-{label}_".encode())
            (home / each.name.replace("sub-01_", f"sub-01_ses-{label}_")).write_bytes(text)
            each.unlink()
    expected = only(tmp_path)
    np.testing.assert_allclose(expected, by_mne([few, many]), atol=1e-4)
    real = tmp_path / "sourcedata" / "x"
    real.parent.mkdir()
    (tmp_path / "sub-01" / "ses-b").rename(real)
    (tmp_path / "sub-01" / "ses-b").symlink_to(real)
    (tmp_path / "sub-01" / "ses-a" / "loop").symlink_to(tmp_path)
    np.testing.assert_array_equal(only(tmp_path), expected)


def test_a_link_out_of_the_data_set_is_reported(tmp_path: Path) -> None:
    record(tmp_path / "set", "02", tiny_tape())
    path = record(tmp_path / "away", "01", tiny_tape())
    (tmp_path / "set" / "sub-01").mkdir()
    (tmp_path / "set" / "sub-01" / "eeg").symlink_to(path.parent)
    assert "outside the data set" in refusal(tmp_path / "set")


def _brainvision_part(key: str, part: str, name: str) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        path.with_name(name).write_bytes(path.with_suffix(part).read_bytes())
        text = path.read_text().replace(f"{key}={path.stem}{part}", f"{key}={name}")
        assert name in text
        path.write_text(text)

    return change


def _eeglab_part(name: str) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        tape = tiny_tape()
        write_eeglab(path.with_suffix(".set"), tape, [(t, 0.0, kind) for t, kind in tape.events])
        fields = loadmat(path.with_suffix(".set"), simplify_cells=True)["EEG"]
        np.asarray(fields["data"], "<f4").T.tofile(path.with_name(name))
        savemat(path.with_suffix(".set"), {"EEG": fields | {"data": name, "datfile": name}})
        for each in (".vhdr", ".vmrk", ".eeg"):
            path.with_suffix(each).unlink()

    return change


_OF = f"task-{TASK}_eeg"
PARTS_OF: dict[str, Callable[[str], Callable[[Path], object]]] = {
    "DataFile": lambda name: _brainvision_part("DataFile", ".eeg", f"{name}.eeg"),
    "MarkerFile": lambda name: _brainvision_part("MarkerFile", ".vmrk", f"{name}.vmrk"),
    "datfile": lambda name: _eeglab_part(f"{name}.fdt"),
}


@pytest.mark.parametrize("part", PARTS_OF)
@pytest.mark.parametrize("name", [f"sub-02_{_OF}", "SUB-02", "copy of sub-02", f"sub-1_{_OF}"])
def test_a_part_of_another_participant_is_refused(tmp_path: Path, part: str, name: str) -> None:
    PARTS_OF[part](name)(record(tmp_path, "01", tiny_tape()))
    assert "the parts of a recording of sub-01 must be" in refusal(tmp_path)
    (note,) = summarize_recordings(tmp_path, VIEW, DataSection()).notes
    assert name in note


@pytest.mark.parametrize("part", PARTS_OF)
@pytest.mark.parametrize("name", ["EEG0042", f"sub-01_{_OF}", "SUB-01", "lab_sub"])
def test_a_part_of_any_other_name_is_read(tmp_path: Path, part: str, name: str) -> None:
    tape = tiny_tape()
    PARTS_OF[part](name)(record(tmp_path, "01", tape))
    np.testing.assert_allclose(only(tmp_path), by_mne([tape]), atol=1e-4)


# -- the cache -------------------------------------------------------------------------------------

PARTS = {
    ".vhdr": ("_eeg.vhdr", "_eeg.eeg", "_eeg.vmrk"),
    ".edf": ("_eeg.edf",),
    ".fif": ("_eeg.fif",),
    ".nii.gz": ("_eeg.nii.gz",),
}


@pytest.mark.parametrize("ending", sorted(PARTS))
def test_the_key_changes_with_every_file_that_is_read(tmp_path: Path, ending: str) -> None:
    path = record(tmp_path, "01", tiny_tape(), ending)
    keys = {vector_key([path], VIEW)}
    stem = path.name.removesuffix(f"_eeg{ending}")
    above = path.parents[1] / f"{stem}_channels.tsv"
    above.write_text("name\n")
    ends = (*PARTS[ending], "_events.tsv", "_channels.tsv", "_eeg.json")
    files = [above, *(path.with_name(f"{stem}{end}") for end in ends)]
    for file in files:
        file.write_bytes(file.read_bytes() + b" ")
        keys.add(vector_key([path], VIEW))
    assert len(keys) == len(files) + 1


@pytest.mark.parametrize("later", ["_eeg.fdt", "_split-02_eeg.fif"])
def test_the_key_changes_with_later_parts(tmp_path: Path, later: str) -> None:
    path = record(tmp_path, "01", tiny_tape(), ".fif")
    before = vector_key([path], VIEW)
    path.with_name(path.name.replace("_eeg.fif", later)).write_bytes(b"x")
    assert vector_key([path], VIEW) != before


def test_a_sidecar_with_another_rate_does_not_move_the_vector(tmp_path: Path) -> None:
    path = record(tmp_path, "01", tiny_tape())
    expected = only(tmp_path)
    path.with_suffix(".json").write_text(json.dumps({"SamplingFrequency": 500}))
    np.testing.assert_array_equal(only(tmp_path), expected)
