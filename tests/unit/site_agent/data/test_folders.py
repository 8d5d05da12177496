"""Folders of a data set with links: followed inside the data set, and reported otherwise."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.study.data_section import DataSection
from site_agent.data.bids import find_subjects
from site_agent.data.folders import files_below, foreign_home, homes_in, tree_of

NAME = "sub-01_ses-b_task-rest_space-MNI152NLin2009cAsym_bold.nii.gz"


def _touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_a_linked_folder_inside_the_data_set_is_followed(tmp_path: Path) -> None:
    root, home = tmp_path / "bids", tmp_path / "bids" / "sub-01"
    _touch(root / "store" / "ses-b" / "func" / NAME)
    own = _touch(home / "ses-a" / NAME.replace("ses-b", "ses-a"))
    (home / "ses-b").symlink_to(root / "store" / "ses-b")
    tree = tree_of(home, root)
    assert tree.files == [own, home / "ses-b" / "func" / NAME]
    assert tree.followed == [home / "ses-b"]
    (subject,), _ = find_subjects(root, DataSection())
    assert len(subject.runs) == 2


def _outside(root: Path, home: Path) -> None:
    _touch(root.parent / "elsewhere" / NAME)
    (home / "ses-b").symlink_to(root.parent / "elsewhere")


def _missing(root: Path, home: Path) -> None:
    (home / "ses-b").symlink_to(root / "gone")


def _of_another(root: Path, home: Path) -> None:
    _touch(root / "sub-02" / "ses-b" / "x_bold.nii.gz")
    (home / "ses-b").symlink_to(root / "sub-02" / "ses-b")


def _whole(root: Path, home: Path) -> None:
    (home / "ses-b").symlink_to(root)


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        (_outside, "outside the data set"),
        (_missing, "is a link to a missing folder"),
        (_of_another, "is a link into the folder of sub-02"),
        (_whole, "is a link to the data set itself"),
    ],
)
def test_other_linked_folders_are_not_read_and_named(tmp_path: Path, link, reason: str) -> None:
    root, home = tmp_path / "bids", tmp_path / "bids" / "sub-01"
    own = _touch(home / "ses-a" / "x.nii")
    link(root, home)
    tree = tree_of(home, root)
    assert tree.files == [own]
    ((path, why),) = tree.passed_over
    assert path == home / "ses-b"
    assert reason in why


def test_loops_and_second_names_of_one_folder_are_read_once(tmp_path: Path) -> None:
    home = tmp_path / "sub-01"
    own = _touch(home / "ses-a" / "x.nii")
    (home / "ses-a" / "loop").symlink_to(home)
    (home / "baseline").symlink_to(home / "ses-a")
    tree = tree_of(home, tmp_path)
    assert (tree.files, tree.passed_over) == ([own], [])


def test_a_link_to_itself_and_hidden_files_cost_nothing(tmp_path: Path) -> None:
    home = tmp_path / "sub-01"
    own = _touch(home / "ses-a" / "x.nii")
    (home / "ses-b").symlink_to("ses-b")
    for hidden in ("._x.nii", ".DS_Store", ".heudiconv/y.nii"):
        _touch(home / "ses-a" / hidden)
    (tmp_path / "sub-02").symlink_to("sub-02")
    tree = tree_of(home, tmp_path)
    assert tree.files == [own]
    assert [path for path, _ in tree.passed_over] == [home / "ses-b"]
    assert "missing folder" in str(foreign_home(tmp_path / "sub-02", tmp_path))
    assert len(homes_in(tmp_path)) == 2


def test_links_to_files_are_listed_also_broken_ones(tmp_path: Path) -> None:
    home = tmp_path / "sub-01"
    annex = _touch(tmp_path / ".git" / "annex" / "key.nii.gz")
    home.mkdir()
    (home / "a_bold.nii.gz").symlink_to(annex)
    (home / "b_bold.nii.gz").symlink_to(tmp_path / "gone.nii.gz")
    assert files_below(home, tmp_path) == [home / "a_bold.nii.gz", home / "b_bold.nii.gz"]
    assert not tree_of(home, tmp_path).passed_over


def test_a_closed_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "sub-01"
    own = _touch(home / "ses-b" / "x.nii")
    _touch(home / "ses-a" / "x.nii")
    real = os.scandir

    def closed(path: str) -> object:
        if str(path).endswith("ses-a"):
            raise PermissionError(path)
        return real(path)

    monkeypatch.setattr(os, "scandir", closed)
    tree = tree_of(home, tmp_path)
    assert tree.files == [own]
    assert [tuple(each) for each in tree.passed_over] == [(home / "ses-a", "can't be opened")]


def test_a_participants_own_folder_may_be_a_link_inside_the_data_set(tmp_path: Path) -> None:
    root = tmp_path / "bids"
    names = [NAME.replace("sub-01", f"sub-0{k}") for k in range(1, 5)]
    _touch(root / "store" / "sub-01" / names[0])
    _touch(tmp_path / "raw" / "sub-02" / names[1])
    _touch(root / "sub-04" / names[3])
    for label, target in (
        ("01", root / "store" / "sub-01"),
        ("02", tmp_path / "raw" / "sub-02"),
        ("03", root / "gone"),
        ("05", root / "sub-04"),
    ):
        (root / f"sub-{label}").symlink_to(target)
    assert [home.name for home in homes_in(root)] == [f"sub-0{k}" for k in range(1, 6)]
    assert foreign_home(root / "sub-01", root) is None
    subjects, skipped = find_subjects(root, DataSection())
    assert [subject.label for subject in subjects] == ["01", "04"]
    told = {each.label: each.detail for each in skipped}
    assert "outside the data set" in told["02"]
    assert "is a link to a missing folder" in told["03"]
    assert "is a link into the folder of sub-04" in told["05"]
    assert all(each.reason == "unusable" for each in skipped)


PARTS = st.lists(st.sampled_from(["a", "b-1", "b", "c.d"]), min_size=1, max_size=4)


@settings(max_examples=40, deadline=None)
@given(st.lists(PARTS, max_size=8))
def test_without_links_the_list_is_that_of_rglob(tmp_path_factory, paths) -> None:
    root = tmp_path_factory.mktemp("tree")
    home = root / "sub-01"
    home.mkdir()
    for parts in paths:
        _touch(home.joinpath(*parts).with_name(f"{parts[-1]}_f.nii"))
    assert files_below(home, root) == sorted(p for p in home.rglob("*") if p.is_file())


def test_a_link_to_another_participants_file_is_not_read_and_named(tmp_path: Path) -> None:
    annex = _touch(tmp_path / ".git" / "annex" / "objects" / "key.nii.gz")
    store = tmp_path / "store" / "twice.nii.gz"
    for label in ("01", "02"):
        (tmp_path / f"sub-{label}").mkdir()
    (tmp_path / "sub-01" / NAME).symlink_to("../.git/annex/objects/key.nii.gz")
    store.parent.mkdir()
    store.symlink_to(tmp_path / "sub-01" / NAME)
    home, second = tmp_path / "sub-02", NAME.replace("sub-01", "sub-02")
    own = tmp_path / "sub-02" / second
    for target in ("../sub-01/" + NAME, "../store/twice.nii.gz"):
        own.symlink_to(target)
        subjects, (skipped,) = find_subjects(tmp_path, DataSection())
        # The second link leads through the first participant's folder to the annex.
        assert [subject.label for subject in subjects] == ["01"]
        assert f"{own} is a link into the folder of sub-01" in skipped.detail
        own.unlink()
    own.symlink_to(annex)
    assert files_below(home, tmp_path) == [own]


def test_a_link_through_another_participants_linked_folder_is_not_read(tmp_path: Path) -> None:
    own = _touch(tmp_path / "store" / "func" / "x.nii")
    for label in ("01", "02"):
        (tmp_path / f"sub-{label}").mkdir()
    (tmp_path / "sub-01" / "func").symlink_to("../store/func")
    (tmp_path / "sub-02" / "func").symlink_to("../sub-01/func")
    (tmp_path / "sub-02" / "x.nii").symlink_to("../sub-01/func/x.nii")
    assert own.exists()
    assert [len(files_below(tmp_path / f"sub-{k}", tmp_path)) for k in ("01", "02")] == [1, 0]
    assert len(tree_of(tmp_path / "sub-02", tmp_path).passed_over) == 2
