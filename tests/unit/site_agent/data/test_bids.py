"""Who is found in a BIDS data set or a list of files; names only, so the files are empty."""

from pathlib import Path

import pytest

from consortium.errors import DataError
from consortium.study.data_section import DataSection
from site_agent.data.bids import entities, find_subjects
from site_agent.data.survey import NobodyError

DATA = DataSection()
SPACE = "space-MNI152NLin2009cAsym"


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


def test_entities_of_a_bids_name():
    found = entities(Path("/x/sub-01_ses-b_task-rest_run-2_desc-preproc_bold.nii.gz"))
    assert found == {
        "sub": "01",
        "ses": "b",
        "task": "rest",
        "run": "2",
        "desc": "preproc",
        "suffix": "bold",
    }
    assert entities(Path("fmri1.nii")) == {"suffix": "fmri1"}


def test_only_fitting_images_are_chosen(tmp_path):
    touch(
        tmp_path,
        f"sub-02/func/sub-02_task-rest_{SPACE}_desc-preproc_bold.nii.gz",
        f"sub-02/func/sub-02_task-rest_{SPACE}_desc-preproc_bold.json",
        f"sub-02/func/sub-02_task-rest_{SPACE}_boldref.nii.gz",
        f"sub-02/func/sub-02_task-rest_{SPACE}_desc-brain_mask.nii.gz",
        f"sub-02/func/sub-02_task-nback_{SPACE}_desc-preproc_bold.nii.gz",
        "sub-02/func/sub-02_task-rest_space-T1w_desc-preproc_bold.nii.gz",
        "sub-02/func/sub-02_task-rest_desc-confounds_timeseries.tsv",
        "sub-02/func/sub-02_task-nback_desc-confounds_timeseries.tsv",
        "sub-01/anat/sub-01_T1w.nii.gz",
        f"sub-03/ses-a/func/sub-03_ses-a_task-rest_{SPACE}_bold.nii",
    )
    subjects, skipped = find_subjects(tmp_path, DATA)
    assert [subject.label for subject in subjects] == ["02", "03"]
    (run,) = subjects[0].runs
    assert run.bold.name == f"sub-02_task-rest_{SPACE}_desc-preproc_bold.nii.gz"
    assert run.confounds is not None
    assert run.confounds.name == "sub-02_task-rest_desc-confounds_timeseries.tsv"
    assert subjects[1].runs[0].confounds is None
    assert [(item.label, item.reason) for item in skipped] == [("01", "no-image")]


def test_one_version_of_a_recording_is_enough(tmp_path):
    stem = f"sub-1/func/sub-1_task-rest_{SPACE}"
    touch(
        tmp_path,
        f"{stem}_desc-smoothed_bold.nii.gz",
        f"{stem}_bold.nii.gz",
        f"{stem}_res-2_desc-preproc_bold.nii.gz",
        f"{stem}_desc-preproc_bold.nii.gz",
        "sub-1/func/sub-1_task-rest_echo-1_" + SPACE + "_desc-preproc_bold.nii.gz",
    )
    (subject,), _ = find_subjects(tmp_path, DATA)
    assert [run.bold.name for run in subject.runs] == [
        f"sub-1_task-rest_{SPACE}_desc-preproc_bold.nii.gz"
    ]


def test_all_runs_and_sessions_belong_to_one_person(tmp_path):
    for session in ("a", "b"):
        for run in ("1", "2"):
            stem = f"sub-1/ses-{session}/func/sub-1_ses-{session}_task-rest_run-{run}"
            touch(
                tmp_path,
                f"{stem}_{SPACE}_desc-preproc_bold.nii.gz",
                f"{stem}_desc-confounds_regressors.tsv",
            )
    (subject,), _ = find_subjects(tmp_path, DATA)
    assert len(subject.runs) == 4
    for run in subject.runs:
        assert run.confounds is not None
        assert run.confounds.name.split("_desc")[0] == run.bold.name.split("_space")[0]


def test_listed_files_keep_persons_together(tmp_path):
    touch(tmp_path, "b.nii", "a.nii.gz", "sub-1_run-1_bold.nii", "sub-1_run-2_bold.nii")
    touch(tmp_path, "b_confounds.tsv")
    paths = [path for path in tmp_path.iterdir() if path.suffix != ".tsv"]
    subjects, skipped = find_subjects([*paths, paths[0]], DATA)
    assert [(s.label, len(s.runs)) for s in subjects] == [("1", 2), ("a", 1), ("b", 1)]
    assert subjects[2].runs[0].confounds == tmp_path / "b_confounds.tsv"
    assert not skipped


def test_nobody_is_an_error_that_names_the_place(tmp_path):
    with pytest.raises(DataError, match=r"nowhere is not a folder"):
        find_subjects(tmp_path / "nowhere", DATA)
    touch(tmp_path, "sub-1/func/sub-1_task-other_bold.nii")
    with pytest.raises(DataError, match=r"task-rest in space-MNI"):
        find_subjects(tmp_path, DATA)
    with pytest.raises(DataError, match="list of images is empty"):
        find_subjects([], DATA)
    with pytest.raises(DataError, match=r"gone\.nii is not a file"):
        find_subjects([tmp_path / "gone.nii"], DATA)


def test_an_image_named_as_anothers_makes_no_second_person(tmp_path):
    own, theirs = (f"func/sub-{label}_task-rest_{SPACE}_bold.nii.gz" for label in ("01", "02"))
    touch(tmp_path, f"sub-01/{own}", f"sub-01/{theirs}", f"sub-02/{theirs}")
    subjects, skipped = find_subjects(tmp_path, DATA)
    assert [subject.label for subject in subjects] == ["02"]
    assert [(each.label, each.reason) for each in skipped] == [("01", "unusable")]
    assert f"{theirs} is named as sub-02's and is in the folder of sub-01" in skipped[0].detail


def test_a_label_in_capitals_is_a_label(tmp_path):
    stem = f"task-rest_{SPACE}_bold.nii.gz"
    touch(tmp_path, f"sub-01/Sub-02_{stem}", f"sub-03/SUB-03_{stem}")
    ((subject,), (skipped,)) = find_subjects(tmp_path, DATA)
    assert (subject.label, skipped.label, skipped.reason) == ("03", "01", "unusable")


def test_images_without_a_label_are_their_folders(tmp_path):
    names = (f"sub-01/func/run-{run}_task-rest_{SPACE}_bold.nii.gz" for run in (1, 2))
    ((subject,), skipped) = find_subjects(touch(tmp_path, *names), DATA)
    assert (subject.label, len(subject.runs), skipped) == ("01", 2, ())


SESSIONS = (
    f"sub-1/ses-b/func/sub-1_ses-b_task-rest_acq-fast_dir-PA_run-01_{SPACE}_bold.nii.gz",
    f"sub-1/ses-a/func/sub-1_ses-a_task-rest_dir-AP_run-10_{SPACE}_bold.nii.gz",
    f"sub-1/ses-a/func/sub-1_ses-a_task-rest_dir-AP_run-2_{SPACE}_bold.nii.gz",
    f"sub-1/ses-a/func/sub-1_ses-a_task-rest_dir-AP_run-2_echo-2_{SPACE}_bold.nii.gz",
    f"sub-2/func/sub-2_task-rest_{SPACE}_bold.nii.gz",
)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, ["run-10", "run-2", "run-01"]),
        ({"session": "a"}, ["run-10", "run-2"]),
        ({"run": 1}, ["run-01"]),
        ({"acquisition": "fast"}, ["run-01"]),
        ({"direction": "AP"}, ["run-10", "run-2"]),
        ({"echo": 2}, ["echo-2"]),
        ({"runs": "first"}, ["run-2"]),
        ({"runs": "first", "session": "b"}, ["run-01"]),
    ],
)
def test_a_study_chooses_recordings_by_their_entities(tmp_path, data, expected):
    touch(tmp_path, *SESSIONS)
    subjects, skipped = find_subjects(tmp_path, DataSection(**data))
    names = [run.bold.name for run in subjects[0].runs]
    assert len(names) == len(expected)
    assert all(part in name for part, name in zip(expected, names, strict=True))
    chosen_by_entity = bool(data.keys() - {"runs"})
    assert [each.label for each in skipped] == (["2"] if chosen_by_entity else [])


def test_who_lacks_the_session_is_told_of_it(tmp_path):
    touch(tmp_path, *SESSIONS)
    _, (skipped,) = find_subjects(tmp_path, DataSection(session="a", run=2))
    assert skipped.reason == "not-chosen"
    assert "none of task-rest, ses-a, run-2 in space-MNI152NLin2009cAsym" in skipped.detail
    with pytest.raises(DataError, match="ses-c"):
        find_subjects(tmp_path, DataSection(session="c"))


XCPD = f"sub-{{}}/func/sub-{{}}_task-rest_{SPACE}_desc-{{}}_bold.nii.gz"


def test_a_shorter_label_goes_before_its_continuation_at_every_site(tmp_path):
    for label, kinds in {"1": ["denoisedSmoothed", "denoised"], "2": ["denoisedSmoothed"]}.items():
        touch(tmp_path, *(XCPD.format(label, label, kind) for kind in kinds))
    subjects, _ = find_subjects(tmp_path, DATA)
    kinds = [entities(subject.runs[0].bold)["desc"] for subject in subjects]
    assert kinds == ["denoised", "denoisedSmoothed"]
    (chosen,), (skipped,) = find_subjects(tmp_path, DataSection(description="denoised"))
    assert (chosen.label, skipped.label, skipped.reason) == ("1", "2", "not-chosen")
    assert "desc-denoisedSmoothed instead of desc-denoised" in skipped.detail


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"entities": {"res": "2"}}, "res-2"),
        ({"entities": {"cohort": "6"}}, "cohort-6"),
        ({"space": "MNIPediatricAsym+5"}, "cohort-5"),
        ({"space": "MNIPediatricAsym+7"}, "MNIPediatricAsym+7"),
        ({"entities": {"cohort": "7"}}, "MNIPediatricAsym+7"),
    ],
)
def test_any_entity_and_the_cohort_of_a_space_choose(tmp_path, data, expected):
    stem, end = "sub-1/func/sub-1_task-rest_space-MNIPediatricAsym", "desc-preproc_bold.nii.gz"
    touch(
        tmp_path,
        f"{stem}_cohort-5_{end}",
        f"{stem}_cohort-6_{end}",
        f"{stem}_cohort-6_res-2_{end}",
        f"{stem}+7_{end}",
    )
    wanted = DataSection.model_validate({"space": "MNIPediatricAsym", **data})
    ((subject,), _) = find_subjects(tmp_path, wanted)
    (run,) = subject.runs
    assert expected in run.bold.name


@pytest.mark.parametrize(
    "names",
    [
        ("run-1_{}_bold.nii.gz", "run-01_{}_bold.nii.gz"),
        ("run-01_{}_bold.nii.gz", "run-001_{}_desc-preproc_bold.nii.gz"),
        ("{}_bold.nii.gz", "../copy/{}_bold.nii.gz"),
        ("acq-Fast_{}_bold.nii.gz", "acq-fast_{}_bold.nii.gz"),
        ("acq-1_{}_bold.nii.gz", "acq-01_{}_bold.nii.gz"),
    ],
)
def test_one_recording_under_two_names_leaves_its_participant_out(tmp_path, names):
    paths = [name.format(SPACE) for name in names]
    named = [
        str(Path(path).parent / f"sub-1_task-rest_{Path(path).name}").removeprefix("./")
        for path in paths
    ]
    touch(tmp_path, *(f"sub-1/func/{path}" for path in named))
    touch(tmp_path, f"sub-2/func/sub-2_task-rest_{SPACE}_bold.nii.gz")
    subjects, (skipped,) = find_subjects(tmp_path, DATA)
    assert [subject.label for subject in subjects] == ["2"]
    assert (skipped.label, skipped.reason) == ("1", "unusable")
    assert all(Path(path).name in skipped.detail for path in named)


def test_the_magnitude_is_the_image_and_the_phase_is_not(tmp_path):
    stem = "sub-1/func/sub-1_task-rest_part-{}_" + SPACE + "_bold.nii.gz"
    touch(tmp_path, *(stem.format(part) for part in ("mag", "phase", "real", "imag")))
    touch(tmp_path, stem.replace("sub-1", "sub-2").format("phase"))
    ((subject,), (skipped,)) = find_subjects(tmp_path, DATA)
    assert ["part-mag" in run.bold.name for run in subject.runs] == [True]
    assert "part-phase, which is not the magnitude" in skipped.detail


NEAR = {
    "task-rest_SPACE_desc-preproc_bold.NII.GZ": "the ending .NII.GZ instead of .nii.gz",
    "task-rest_SPACE_bold.img": "the ending .img instead of .nii.gz",
    "task-rest_SPACE_bold.nii.bz2": "the ending .nii.bz2 instead of .nii.gz",
    "task-rest_SPACE_bold.NII": "the ending .NII instead of .nii",
    "task-Rest_SPACE_bold.nii.gz": "task-Rest instead of task-rest",
    "task-rest_space-MNI152NLin6Asym_bold.nii.gz": "space-MNI152NLin6Asym instead of space-MNI15",
    "task-rest_bold.nii.gz": "no space- instead of space-MNI152NLin2009cAsym",
    "task-rest_SPACE_desc-denoised.nii.gz": "no suffix _bold after desc-denoised",
    "task-rest_SPACE_BOLD.nii.gz": "the suffix _BOLD instead of _bold",
    "task-rest_echo-1_SPACE_bold.nii.gz": "echo-1, which is a single echo",
}


@pytest.mark.parametrize("name", NEAR)
def test_a_near_miss_is_named_with_its_difference(tmp_path, name):
    image = f"sub-1_{name.replace('SPACE', SPACE)}"
    touch(tmp_path, f"sub-1/func/{image}", f"sub-1/func/sub-1_task-rest_{SPACE}_boldref.nii.gz")
    touch(tmp_path, f"sub-2/func/sub-2_task-rest_{SPACE}_bold.nii.gz")
    _, (skipped,) = find_subjects(tmp_path, DATA)
    assert skipped.reason == "no-image"
    assert f"{image} has {NEAR[name]}" in skipped.detail


def test_tasks_that_are_there_are_named_if_the_studys_is_not(tmp_path):
    for label, task in (("1", "faces"), ("2", "REST2"), ("2", "nback")):
        touch(tmp_path, f"sub-{label}/func/sub-{label}_task-{task}_{SPACE}_bold.nii.gz")
    with pytest.raises(NobodyError, match=r"There are 'REST2', 'faces' and 'nback'\.$"):
        find_subjects(tmp_path, DATA)


def test_a_reference_image_is_neither_taken_nor_near(tmp_path):
    touch(
        tmp_path, f"sub-1/func/sub-1_task-rest_{SPACE}_boldref.nii.gz", "sub-1/anat/sub-1_T1w.nii"
    )
    touch(tmp_path, f"sub-2/func/sub-2_task-rest_{SPACE}_bold.nii.gz")
    _, (skipped,) = find_subjects(tmp_path, DATA)
    assert " has no image of task-rest" in skipped.detail
    assert "instead of" not in skipped.detail


def test_one_reconstruction_of_a_recording_is_used_with_its_own_table(tmp_path):
    for label, kinds in {"1": ("moco", "norm"), "2": ("norm",)}.items():
        for kind in kinds:
            stem = f"sub-{label}/func/sub-{label}_task-rest_rec-{kind}"
            touch(tmp_path, f"{stem}_{SPACE}_bold.nii.gz", f"{stem}_desc-confounds_timeseries.tsv")
    subjects, _ = find_subjects(tmp_path, DATA)
    for subject, kind in zip(subjects, ("moco", "norm"), strict=True):
        (run,) = subject.runs
        assert f"rec-{kind}" in run.bold.name
        assert f"rec-{kind}" in run.confounds.name
    subjects, _ = find_subjects(tmp_path, DataSection(entities={"rec": "norm"}))
    assert ["rec-norm" in subject.runs[0].confounds.name for subject in subjects] == [True, True]


def test_a_session_that_is_written_otherwise_is_named(tmp_path):
    touch(tmp_path, f"sub-1/ses-01/func/sub-1_ses-01_task-rest_{SPACE}_bold.nii.gz")
    touch(tmp_path, f"sub-2/ses-1/func/sub-2_ses-1_task-rest_{SPACE}_bold.nii.gz")
    _, (skipped,) = find_subjects(tmp_path, DataSection(session="1"))
    assert "has ses-01 instead of ses-1" in skipped.detail


def test_a_name_too_long_for_a_table_beside_it_is_no_error(tmp_path):
    """The file system refuses to look for the table, as in a folder without rights."""
    ending = "_space-MNI152NLin2009cAsym_bold.nii.gz"
    for label in ("1", "2"):
        folder = tmp_path / f"sub-{label}" / "func"
        folder.mkdir(parents=True)
        start = f"sub-{label}_task-rest"
        if label == "2":
            start += f"_acq-{'a' * (250 - len(start) - 5 - len(ending))}"
        (folder / f"{start}{ending}").touch()
    subjects, _ = find_subjects(tmp_path, DataSection())
    assert {"1"} <= {subject.label for subject in subjects}
