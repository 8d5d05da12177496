"""A person's EEG vector: the same from every format, MNE's own, and of that person alone."""

import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import mne
import numpy as np
import pytest
from scipy.io import savemat

from consortium.errors import ConfigurationError, DataError
from consortium.study.data_section import DataSection
from site_agent.eeg import vectors as vectors_module
from site_agent.eeg.recording import plain_channel, plain_event
from site_agent.eeg.vectors import band_power
from site_agent.engines.base import Threads
from tests.support.recordings import WRITERS, Tape
from tests.support.tiny_recordings import CHANNELS, RATE, TASK, erp_view, record, table, tiny_tape

FORMATS = sorted(WRITERS)
DATA = DataSection()


def read_recordings(dataset: Path, view, data: DataSection = DATA):
    """Read from the files, without what an earlier reading left."""
    shutil.rmtree(dataset / "cache", ignore_errors=True)
    return vectors_module.read_recordings(dataset, view, data, dataset / "cache", Threads())


def only(dataset: Path, view=None) -> np.ndarray:
    vectors, skipped = read_recordings(dataset, view or erp_view())
    assert skipped == []
    (vector,) = vectors.values()
    return vector


def reference(tape: Tape, view) -> np.ndarray:
    """The same through MNE's own classes, for a rate that divides the recording's."""
    info = mne.create_info(list(tape.channels), tape.rate, "eeg", verbose="ERROR")
    raw = mne.io.RawArray(1e-6 * tape.signals, info, verbose="ERROR").pick(list(view.channels))
    raw.set_eeg_reference("average", verbose="ERROR")
    raw.filter(*view.filter, verbose="ERROR")
    onsets = [round(t * tape.rate) for t, name in tape.events if name in view.events]
    epochs = mne.Epochs(
        raw,
        np.array([[onset, 0, 1] for onset in onsets]),
        tmin=view.times[0],
        tmax=view.times[-1],
        baseline=None,
        decim=round(tape.rate / view.rate),
        preload=True,
        verbose="ERROR",
    )
    mean = 1e6 * epochs.average().data
    before = np.array(view.times) < 0
    return (mean - mean[:, before].mean(axis=1, keepdims=True)).ravel() / view.scale


# -- one truth, many files -----------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_leads_to_what_mne_makes_of_the_data(tmp_path: Path, ending: str) -> None:
    tape = tiny_tape()
    record(tmp_path, "01", tape, ending)
    view = erp_view(rate=125)
    vector, expected = only(tmp_path, view), reference(tape, view)
    assert vector.shape == (len(view.labels),)
    # EDF keeps 16 bits of about ±40 µV.
    np.testing.assert_allclose(vector, expected, atol=2e-3 if ending == ".edf" else 1e-4)
    assert np.abs(expected).max() > 1


def test_eeglab_files_are_read(tmp_path: Path) -> None:
    tape = tiny_tape()
    path = record(tmp_path, "01", tape)
    expected = only(tmp_path)
    for each in path.parent.glob("*_eeg.*"):
        each.unlink()
    places = np.array([(name, 0.0) for name in CHANNELS], dtype=[("labels", "O"), ("X", "f8")])
    content = {
        "nbchan": len(CHANNELS),
        "pnts": tape.signals.shape[1],
        "trials": 1,
        "srate": float(RATE),
        "xmin": 0.0,
        "xmax": tape.signals.shape[1] / RATE,
        "data": tape.signals.astype(np.float32),
        "chanlocs": places,
        "event": [],
        "epoch": [],
    }
    savemat(path.with_suffix(".set"), {"EEG": content}, appendmat=False)
    np.testing.assert_allclose(only(tmp_path), expected, atol=1e-4)


@pytest.mark.parametrize("ending", [".vhdr", ".fif"])
def test_without_a_table_the_files_own_markers_serve(tmp_path: Path, ending: str) -> None:
    path = record(tmp_path, "01", tiny_tape(), ending)
    expected = only(tmp_path)
    table(path, "events").unlink()
    np.testing.assert_allclose(only(tmp_path), expected, atol=1e-9)


@pytest.mark.parametrize("kind", ["annotations", "triggers"])
def test_events_of_a_cut_fif_file_count_from_its_first_sample(tmp_path: Path, kind: str) -> None:
    tape, cut = tiny_tape(), 500
    path = record(tmp_path, "01", replace(tape, signals=tape.signals[:, cut:], events=()), ".vhdr")
    moved = "".join(f"{t - 2:.6f}\t0\t{name}\n" for t, name in tape.events)
    table(path, "events").write_text("onset\tduration\ttrial_type\n" + moved)
    expected = only(tmp_path)
    for each in path.parent.iterdir():
        each.unlink()
    trigger = np.zeros((1, tape.signals.shape[1]))
    for onset, name in tape.events:
        trigger[0, round(onset * RATE)] = 1 + (name == "standard")
    kinds = ["eeg"] * len(CHANNELS) + ["stim"]
    info = mne.create_info([*CHANNELS, "STI 014"], RATE, kinds, verbose="ERROR")
    raw = mne.io.RawArray(np.vstack([1e-6 * tape.signals, trigger]), info, verbose="ERROR")
    if kind == "annotations":
        onsets, names = zip(*tape.events, strict=True)
        raw.set_annotations(mne.Annotations(onsets, 0.0, names))
    raw.crop(cut / RATE).save(path.with_suffix(".fif"), verbose="ERROR")
    view = erp_view(events=["target" if kind == "annotations" else "1"])
    np.testing.assert_allclose(only(tmp_path, view), expected, atol=1e-4)


@pytest.mark.parametrize("layout", [(0, 1, 2, 3), (1, 0, 2, 3), (0, 2, 3, 1), (3, 2, 0, 1)])
def test_a_nifti_recording_may_lie_on_any_axes(tmp_path: Path, layout) -> None:
    import nibabel as nib

    path = record(tmp_path, "01", tiny_tape(), ".nii.gz")
    expected = only(tmp_path)
    stored = np.asarray(nib.load(path).dataobj)
    nib.save(nib.Nifti2Image(stored.transpose(layout), np.eye(4)), path)
    np.testing.assert_array_equal(only(tmp_path), expected)


def test_names_are_matched_however_systems_write_them(tmp_path: Path) -> None:
    record(tmp_path / "a", "01", tiny_tape())
    dressed = ("EEG FP1-REF", "EEG CZ-REF", "Pz.", "oz")
    record(tmp_path / "b", "01", tiny_tape(channels=dressed))
    np.testing.assert_array_equal(only(tmp_path / "a"), only(tmp_path / "b"))
    assert plain_channel("T3") == plain_channel("EEG T7-LE") == "t7"
    assert plain_channel("EEG") == "eeg"
    assert plain_event("Stimulus/S  1") == plain_event("S1") == "S1"


# -- what the vector is --------------------------------------------------------------------


def test_another_rate_leads_to_the_same_potential(tmp_path: Path) -> None:
    times = np.arange(0, 40, 1 / 1000)
    events = tuple((2.0 + n, "target") for n in range(30))
    phase = (times - 0.2 + 0.5) % 1.0 - 0.5  # 0.2 s after each event
    signals = np.outer([0, 10, -5, 3], np.exp(-0.5 * (phase / 0.06) ** 2))
    for rate in (1000, 500, 200):
        tape = Tape(CHANNELS, rate, signals[:, :: 1000 // rate], events)
        record(tmp_path / str(rate), "01", tape)
    fast, half, slow = (only(tmp_path / str(rate)) for rate in (1000, 500, 200))
    assert np.abs(fast).max() > 5
    np.testing.assert_allclose(fast, half, atol=0.02)
    np.testing.assert_allclose(fast, slow, atol=0.02)


def test_power_of_a_sine_is_found_in_its_band(tmp_path: Path) -> None:
    tape = tiny_tape()
    wave = 12 * np.sin(2 * np.pi * 10 * np.arange(tape.signals.shape[1]) / RATE)
    signals = 0.01 * tape.signals
    signals[2] += wave
    record(tmp_path, "01", replace(tape, signals=signals))
    view = erp_view(
        measure="band-power",
        events=[],
        bands={"alpha": [8, 12], "beta": [15, 25]},
        reference="as-recorded",
    )
    powers = dict(zip(view.labels, only(tmp_path, view), strict=True))
    # A²/2 over the nine half hertz bins of the band.
    assert powers["Pz@alpha"] == pytest.approx(10 * np.log10(12**2 / 2 / 4.5), abs=0.1)
    assert powers["Pz@beta"] < powers["Pz@alpha"] - 40
    assert powers["Cz@alpha"] < powers["Pz@alpha"] - 40


def test_band_power_is_welchs() -> None:
    from scipy.signal import welch

    view = erp_view(measure="band-power", bands={"alpha": [8, 12]}, rate=100)
    series = np.random.default_rng(1).standard_normal((3, 1000))
    windows = np.stack([series[:, n : n + 200] for n in range(0, 801, 100)])
    frequencies, density = welch(series, 100, nperseg=200, noverlap=100)
    inside = (frequencies >= 8) & (frequencies <= 12)
    expected = 10 * np.log10(density[:, inside].mean(axis=1))
    np.testing.assert_allclose(band_power(windows, view), expected)


def test_runs_are_pooled_epoch_by_epoch(tmp_path: Path) -> None:
    few, many = tiny_tape(1, trials=12), tiny_tape(2, trials=36)
    record(tmp_path / "few", "01", few)
    record(tmp_path / "many", "01", many)
    record(tmp_path / "both", "01", few, run="1")
    record(tmp_path / "both", "01", many, ".fif", run="2")
    expected = (6 * only(tmp_path / "few") + 18 * only(tmp_path / "many")) / 24
    np.testing.assert_allclose(only(tmp_path / "both"), expected, atol=1e-4)


def test_a_better_version_of_a_recording_replaces_it(tmp_path: Path) -> None:
    path = record(tmp_path, "01", tiny_tape(1))
    record(tmp_path / "other", "01", tiny_tape(2), ".fif")
    better = next((tmp_path / "other").rglob("*.fif"))
    shutil.copy(better, path.with_name(f"sub-01_task-{TASK}_desc-preproc_eeg.fif"))
    expected = only(tmp_path / "other")
    np.testing.assert_allclose(only(tmp_path), expected, atol=1e-9)


def test_nobody_elses_data_move_a_vector(tmp_path: Path) -> None:
    record(tmp_path, "01", tiny_tape(1))
    alone = only(tmp_path)
    record(tmp_path, "02", replace(tiny_tape(2), signals=50 * tiny_tape(2).signals))
    vectors, skipped = read_recordings(tmp_path, erp_view(reject=5000))
    np.testing.assert_array_equal(vectors["01"], alone)
    assert sorted(vectors) == ["01", "02"]
    assert skipped == []


def test_the_reference_is_the_mean_of_the_studys_channels(tmp_path: Path) -> None:
    tape = tiny_tape()
    record(tmp_path / "plain", "01", tape)
    common = 20 * np.sin(np.arange(tape.signals.shape[1]) / 40)
    record(tmp_path / "moved", "01", replace(tape, signals=tape.signals + common))
    np.testing.assert_allclose(only(tmp_path / "plain"), only(tmp_path / "moved"), atol=1e-4)
    kept = erp_view(reference="as-recorded")
    plain, moved = only(tmp_path / "plain", kept), only(tmp_path / "moved", kept)
    assert np.abs(plain - moved).max() > 0.1


def test_scale_centre_and_norm_are_the_persons_own(tmp_path: Path) -> None:
    record(tmp_path, "01", tiny_tape())
    plain = only(tmp_path)
    np.testing.assert_allclose(only(tmp_path, erp_view(scale=5)), plain / 5)
    centred = only(tmp_path, erp_view(center=True, normalize=True))
    assert centred.sum() == pytest.approx(0, abs=1e-12)
    assert np.linalg.norm(centred) == pytest.approx(1)


def test_loud_epochs_are_left_out_and_marked_ones_too(tmp_path: Path) -> None:
    tape = tiny_tape()
    targets = [t for t, name in tape.events if name == "target"]
    clean = tuple((t, n) for t, n in tape.events if t not in (targets[3], targets[7]))
    record(tmp_path / "clean", "01", replace(tape, events=clean))
    loud, place = tape.signals.copy(), round((targets[3] + 0.2) * RATE)
    path = record(tmp_path / "marked", "01", tape)
    with table(path, "events").open("a") as file:
        file.write(f"{targets[3]:.3f}\t0.5\tbad-muscle\n{targets[7]:.3f}\t0.1\tBAD\n")
    np.testing.assert_allclose(only(tmp_path / "marked"), only(tmp_path / "clean"))
    loud[1, place : place + 25] += 600
    record(tmp_path / "loud", "01", replace(tape, signals=loud))
    few = erp_view(minimum_epochs=12)
    assert len(targets) == 12
    _, (skipped,) = read_recordings(tmp_path / "loud", few)
    assert "11 sound epochs of 12" in skipped.detail
    assert only(tmp_path / "loud", erp_view(minimum_epochs=11)).any()


# -- what is kept --------------------------------------------------------------------------


def test_what_was_worked_out_is_not_again_until_a_file_changes(tmp_path: Path, monkeypatch) -> None:
    path = record(tmp_path, "01", tiny_tape())
    first, _ = vectors_module.read_recordings(
        tmp_path, erp_view(), DATA, tmp_path / "cache", Threads()
    )
    reads = []
    real = vectors_module.read_recording
    monkeypatch.setattr(vectors_module, "read_recording", lambda *a: reads.append(a) or real(*a))
    again, _ = vectors_module.read_recordings(
        tmp_path, erp_view(), DATA, tmp_path / "cache", Threads()
    )
    np.testing.assert_array_equal(again["01"], first["01"])
    assert reads == []
    scaled, _ = vectors_module.read_recordings(
        tmp_path, erp_view(scale=2.0), DATA, tmp_path / "cache", Threads()
    )
    np.testing.assert_allclose(2 * scaled["01"], first["01"])
    assert len(reads) == 1
    with table(path, "events").open("a") as file:
        file.write("4.4\t1.0\tbad\n")
    changed, _ = vectors_module.read_recordings(
        tmp_path, erp_view(), DATA, tmp_path / "cache", Threads()
    )
    assert len(reads) == 2
    assert np.abs(changed["01"] - first["01"]).max() > 0.01
    assert not [f for f in (tmp_path / "cache").iterdir() if f.stat().st_mode & 0o077]


# -- what can't be used --------------------------------------------------------------------


def _rewrite(path: Path, tape: Tape) -> None:
    record(path.parents[2], "01", tape)


def _spoil(value: float):
    def change(path: Path) -> None:
        tape = tiny_tape()
        tape.signals[1, 100] = value
        _rewrite(path, tape)

    return change


def _zero(path: Path) -> None:
    _rewrite(path, replace(tiny_tape(), signals=0 * tiny_tape().signals))


def _flat(path: Path) -> None:
    tape = tiny_tape()
    tape.signals[1] = 7
    _rewrite(path, tape)


def _zero_epochs(path: Path) -> None:
    tape = tiny_tape()
    tape.signals[:, 3 * RATE :] = 0
    _rewrite(path, tape)


def _truncated(path: Path) -> None:
    data = path.with_suffix(".eeg")
    data.write_bytes(data.read_bytes()[:-4000])


def _truncated_unnoticed(path: Path) -> None:
    path.write_text("".join(x for x in path.open() if not x.startswith("DataPoints")))
    data = path.with_suffix(".eeg")
    data.write_bytes(data.read_bytes()[: 10 * RATE * 16])


def _bad_channel(path: Path) -> None:
    file = table(path, "channels")
    file.write_text(file.read_text().replace("Pz\tEEG\tuV\tgood", "Pz\tEEG\tuV\tbad"))


def _events(text: str):
    return lambda path: table(path, "events").write_text(text)


def _units(path: Path) -> None:
    path.write_text(path.read_text().replace("Cz,,1,µV", "Cz,,1,C"))


WRONG = {
    "a value that is not a number": (_spoil(np.nan), "unusable", "not finite"),
    "an infinite value": (_spoil(np.inf), "unusable", "not finite"),
    "nothing but zeros": (_zero, "unusable", "zero throughout"),
    "a dead channel": (_flat, "no-view", "constant on channel Cz"),
    "dead epochs": (_zero_epochs, "does-not-fit", "1 sound epochs of 12"),
    "a channel called bad": (_bad_channel, "no-view", "no good channel Pz"),
    "data cut short": (_truncated, "unusable", "cut short"),
    "data cut short, unknown to the header": (_truncated_unnoticed, "unusable", "an event at"),
    "no data": (lambda p: p.with_suffix(".eeg").unlink(), "unusable", "can't be read"),
    "no header": (lambda p: p.write_bytes(b""), "unusable", "can't be read"),
    "noise for a header": (lambda p: p.write_bytes(bytes(range(256))), "unusable", "can't be"),
    "other units": (_units, "unusable", "not in volts"),
    "no events": (_events("onset\tduration\ttrial_type\n"), "no-view", "no event target"),
    "other events": (_events("onset\ttrial_type\n3\tother\n"), "no-view", "no event target"),
    "events without time": (_events("onset\ttrial_type\nn/a\ttarget\n"), "no-view", "no event"),
    "events before it began": (_events("onset\ttrial_type\n-3\ttarget\n"), "no-view", "no event"),
    "events at a word": (_events("onset\ttrial_type\nsoon\ttarget\n"), "unusable", "line 2"),
    "events without type": (_events("onset\tduration\n1\t1\n"), "unusable", "trial_type"),
    "an empty table": (_events(""), "unusable", "is empty"),
    "a table that is none": (lambda p: table(p, "events").write_bytes(b"\xff\xfe"), "unusable", ""),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_one_sentence_about_one_person(tmp_path: Path, case: str) -> None:
    change, reason, match = WRONG[case]
    change(record(tmp_path, "01", tiny_tape()))
    record(tmp_path, "02", tiny_tape(2))
    vectors, (skipped,) = read_recordings(tmp_path, erp_view())
    assert list(vectors) == ["02"]
    assert (skipped.label, skipped.reason) == ("01", reason)
    assert match in skipped.detail
    assert skipped.detail.endswith(".")
    assert "\n" not in skipped.detail
    assert "sub-01" in skipped.detail


@pytest.mark.parametrize("ending", [".edf", ".fif", ".nii.gz"])
def test_a_file_cut_short_is_never_read_in_part(tmp_path: Path, ending: str) -> None:
    path = record(tmp_path, "01", tiny_tape(), ending)
    whole = path.read_bytes()
    for part in (0.99, 0.5, 0.01, 0):
        path.write_bytes(whole[: int(part * len(whole))])
        vectors, (skipped,) = read_recordings(tmp_path, erp_view())
        assert vectors == {}
        assert skipped.reason == "unusable"


def test_a_nifti_recording_needs_its_sidecar(tmp_path: Path) -> None:
    path = record(tmp_path, "01", tiny_tape(), ".nii.gz")
    sidecar = path.with_name(path.name.replace(".nii.gz", ".json"))
    whole = sidecar.read_text()
    for text in (
        "",
        "[]",
        whole.replace("SamplingFrequency", "Rate"),
        whole.replace(": 250", ": 0"),
        whole.replace("Units", "units").replace("µV", "V").replace("units", "Units") + "x",
        whole.replace('"Cz",', ""),
    ):
        sidecar.write_text(text)
        _, (skipped,) = read_recordings(tmp_path, erp_view())
        assert skipped.reason == "unusable"
        assert skipped.detail.count("\n") == 0


def test_a_rate_too_low_for_the_pass_band_is_refused(tmp_path: Path) -> None:
    record(tmp_path, "01", tiny_tape(rate=60))
    _, (skipped,) = read_recordings(tmp_path, erp_view())
    assert skipped.reason == "unusable"
    assert "60 samples per second, not enough" in skipped.detail
    vectors, _ = read_recordings(tmp_path, erp_view(filter=[0.5, 20]))
    assert list(vectors) == ["01"]


def test_two_channels_that_may_be_meant_are_no_guess(tmp_path: Path) -> None:
    record(tmp_path, "01", tiny_tape(channels=("CZ", "cz", "Pz", "Oz")))
    _, (skipped,) = read_recordings(tmp_path, erp_view())
    assert skipped.reason == "unusable"
    assert "2 channels that may be Cz" in skipped.detail


def test_who_has_no_recording_is_left_out_and_nobody_at_all_an_error(tmp_path: Path) -> None:
    record(tmp_path, "01", tiny_tape())
    (tmp_path / "sub-02" / "func").mkdir(parents=True)
    vectors, (skipped,) = read_recordings(tmp_path, erp_view())
    assert list(vectors) == ["01"]
    assert (skipped.label, skipped.reason) == ("02", "no-view")
    with pytest.raises(DataError, match="task-rest"):
        read_recordings(tmp_path, erp_view(task="rest"))


@pytest.mark.parametrize("ending", FORMATS)
def test_without_mne_the_extra_is_named(tmp_path: Path, ending: str, monkeypatch) -> None:
    record(tmp_path, "01", tiny_tape(), ending)
    monkeypatch.setitem(sys.modules, "mne", None)
    with pytest.raises(ConfigurationError, match="extra 'eeg'"):
        read_recordings(tmp_path, erp_view())


def test_mne_is_imported_by_who_reads_eeg_only() -> None:
    code = "import sys, site_agent.cli, site_agent.eeg.vectors; sys.exit('mne' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_nothing_is_said_on_the_terminal(tmp_path: Path, capfd) -> None:
    for ending in FORMATS:
        path = record(tmp_path / ending, "01", tiny_tape(), ending)
    path.write_bytes(path.read_bytes()[:100])
    capfd.readouterr()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for ending in FORMATS:
            read_recordings(tmp_path / ending, erp_view())
    assert capfd.readouterr() == ("", "")
    assert [str(each.message) for each in said if "mne" in str(each.filename)] == []
    assert [str(each.message) for each in said] == []
