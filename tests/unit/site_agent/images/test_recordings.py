"""Recordings that differ from a site's others, for its own people."""

from pathlib import Path

from site_agent.data.survey import RecordingRun, Subject
from site_agent.images.recordings import recording_remarks
from tests.support.data_fields import tell_time
from tests.support.tiny_images import save, tiny_series


def person(folder: Path, label: str, *lengths: int, step: float | None = 2.0) -> Subject:
    runs = []
    for number, volumes in enumerate(lengths):
        path = folder / f"sub-{label}_run-{number}_bold.nii.gz"
        save(path, tiny_series(volumes=volumes))
        if step is not None:
            tell_time(path, step)
        runs.append(RecordingRun(path))
    return Subject(label, tuple(runs))


def test_recordings_that_are_alike_are_passed_over(tmp_path: Path) -> None:
    people = [person(tmp_path, f"{n}", 30 + n, 31) for n in range(4)]
    assert recording_remarks(people) == ()
    assert recording_remarks([]) == ()


def test_shorter_longer_and_slower_ones_are_named(tmp_path: Path) -> None:
    people = [person(tmp_path, f"{n}", 30) for n in range(6)]
    people += [person(tmp_path, "short", 20), person(tmp_path, "long", 90)]
    people += [person(tmp_path, "slow", 30, step=2.2)]
    length, step = recording_remarks(people)
    assert "sub-short_run-0_bold.nii.gz and 1 other (sub-long_run-0_bold.nii.gz)" in length
    assert "have 20 to 90 volumes, where the median is 30" in length
    assert "sub-slow_run-0_bold.nii.gz has 2.2 s from volume to volume" in step


def test_a_damaged_file_or_one_without_times_stops_nothing(tmp_path: Path) -> None:
    people = [person(tmp_path, f"{n}", 30) for n in range(3)]
    people += [person(tmp_path, "x", 10, step=None), person(tmp_path, "y", 30)]
    people[-1].runs[0].bold.write_bytes(b"damaged")
    (length,) = recording_remarks(people)
    assert "sub-x_run-0_bold.nii.gz has 10 volumes" in length
