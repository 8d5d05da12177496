"""The notice of who is awaited: written when it is worth telling, and gone when nobody is."""

from pathlib import Path

import pytest

from consortium.base.work import work_folder
from consortium.engine.wait_file import WAITING, WaitFile, Waiting, read_waiting
from consortium.errors import OutputError


def board(folder: Path, now: float = 1000.0) -> WaitFile:
    return WaitFile(folder, lambda: now)


def _note(folder: Path) -> Path:
    work_folder(folder).mkdir(exist_ok=True)
    return work_folder(folder) / WAITING


def test_a_short_wait_is_not_worth_a_note(tmp_path: Path) -> None:
    board(tmp_path).show("round 1", 0.99, 9.0, {"east": ""})
    assert read_waiting(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_wait_says_who_since_when_and_until_when(tmp_path: Path) -> None:
    board(tmp_path).show("round 1", 3.0, 7.0, {"east": "", "west": "late"})
    expected = Waiting("round 1", 997.0, 1007.0, {"east": "", "west": "late"})
    assert read_waiting(tmp_path) == expected


def test_a_note_is_written_again_only_if_it_says_something_new(tmp_path: Path) -> None:
    shown = board(tmp_path)
    shown.show("round 1", 3.0, 7.0, {"east": "", "west": ""})
    _note(tmp_path).unlink()
    shown.show("round 1", 4.0, 6.0, {"east": "", "west": ""})
    assert read_waiting(tmp_path) is None
    shown.show("round 1", 5.0, 5.0, {"west": ""})
    assert read_waiting(tmp_path) == Waiting("round 1", 995.0, 1005.0, {"west": ""})
    shown.show("round 2", 1.0, 9.0, {"west": ""})
    assert read_waiting(tmp_path) == Waiting("round 2", 999.0, 1009.0, {"west": ""})


def test_after_the_wait_the_note_is_gone_and_may_come_again(tmp_path: Path) -> None:
    shown = board(tmp_path)
    shown.clear()
    for _ in range(2):
        shown.show("round 1", 3.0, 7.0, {"east": ""})
        assert read_waiting(tmp_path) is not None
        shown.clear()
        assert read_waiting(tmp_path) is None


def test_what_a_dead_centre_left_goes_with_the_first_wait(tmp_path: Path) -> None:
    board(tmp_path).show("round 1", 3.0, 7.0, {"east": ""})
    board(tmp_path).clear()
    assert read_waiting(tmp_path) is None


DAMAGED = ["", "{", "[]", "7", "{}", '{"step": "x", "since": 1, "until": 2, "sites": []}']
DAMAGED += ['{"step": "x", "since": "soon", "until": 2, "sites": {}}']


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_note_is_named(text: str, tmp_path: Path) -> None:
    _note(tmp_path).write_text(text)
    with pytest.raises(OutputError, match=r"waiting\.json is damaged; remove it"):
        read_waiting(tmp_path)


def test_what_can_not_be_written_or_removed_is_told(tmp_path: Path) -> None:
    _note(tmp_path).mkdir()
    with pytest.raises(OutputError, match="can't be written"):
        board(tmp_path).show("round 1", 3.0, 7.0, {"east": ""})
    with pytest.raises(OutputError, match="can't be removed"):
        board(tmp_path).clear()
