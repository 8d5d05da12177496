"""JSON files apply to images by BIDS's inheritance principle, the nearest first."""

from pathlib import Path

from consortium.study.data_section import DataSection
from site_agent.data.bids import find_subjects
from site_agent.data.sidecars import described, sidecars_of

SPACE = "space-MNI152NLin2009cAsym"
IMAGE = f"sub-01_ses-a_task-rest_run-1_{SPACE}_desc-preproc_bold.nii.gz"


def test_the_nearest_and_most_specific_file_is_first() -> None:
    home = Path("/data/sub-01")
    applies = [
        home / "ses-a" / "func" / IMAGE.replace(".nii.gz", ".json"),
        home / "ses-a" / "func" / "sub-01_ses-a_task-rest_bold.json",
        home / "ses-a" / "sub-01_ses-a_bold.json",
        home / "sub-01_task-rest_bold.json",
        Path("/data/task-rest_bold.json"),
    ]
    other = [
        Path("/data/task-nback_bold.json"),
        Path("/data/task-rest_events.json"),
        Path("/data/sub-01/ses-b/sub-01_ses-b_bold.json"),
        home / "ses-a" / "func" / "sub-01_ses-a_task-rest_run-2_bold.json",
        Path("/data/sub-010/task-rest_bold.json"),
    ]
    known = described([*other, *applies[::-1], Path("/data/participants.tsv")])
    assert sidecars_of(home / "ses-a" / "func" / IMAGE, known) == tuple(applies)


def test_relative_paths_are_compared_alike(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    image = tmp_path / "sub-01" / f"sub-01_task-rest_{SPACE}_bold.nii"
    image.parent.mkdir()
    image.touch()
    (tmp_path / "task-rest_bold.json").touch()
    for root in (tmp_path, Path()):
        (subject,), _ = find_subjects(root, DataSection())
        assert subject.runs[0].metadata == (root / "task-rest_bold.json",)
        assert root / "task-rest_bold.json" in subject.runs[0].files
