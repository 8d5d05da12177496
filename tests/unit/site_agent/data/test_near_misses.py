"""The most similar file of a participant who has no fitting image."""

from pathlib import Path

from consortium.study.data_section import DataSection
from site_agent.data.near_misses import near_miss

SPACE = "space-MNI152NLin2009cAsym"


def test_the_fewest_differences_win_and_all_spaces_are_named() -> None:
    names = [
        "sub-1_task-nback_space-T1w_bold.nii.gz",
        "sub-1_task-rest_space-T1w_bold.nii.gz",
        "sub-1_task-rest_space-MNI152NLin6Asym_bold.nii.gz",
        f"sub-1_task-rest_{SPACE}_boldref.nii.gz",
        f"sub-1_task-rest_{SPACE}_desc-brain_mask.nii.gz",
    ]
    found = near_miss([Path(name) for name in names], DataSection())
    assert found == (
        "sub-1_task-rest_space-MNI152NLin6Asym_bold.nii.gz has space-MNI152NLin6Asym instead of "
        f"{SPACE}. Other files differ by space-T1w instead of {SPACE}."
    )


def test_no_file_is_near_where_there_is_no_series() -> None:
    names = ("sub-1_T1w.nii.gz", "sub-1_task-rest_bold.json", "sub-1_dwi.nii.gz", "notes.txt")
    assert near_miss([Path(name) for name in names], DataSection()) == ""


def test_files_on_a_mesh_are_compared_with_the_mesh() -> None:
    data = DataSection.model_validate({"mesh": "fsaverage5"})
    found = near_miss([Path("sub-1_task-Rest_hemi-L_space-fsaverage5_bold.func.gii")], data)
    assert "task-Rest instead of task-rest" in found
