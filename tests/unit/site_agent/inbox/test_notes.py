"""The staff's notes: stored for the owner only, and never replaced by a guess."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from consortium.errors import ConfigurationError
from site_agent.inbox.notes import MOST_NOTE, Note, read_notes, write_note

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


def test_a_note_is_kept_replaced_and_removed(tmp_path: Path) -> None:
    assert read_notes(tmp_path) == {}
    write_note(tmp_path, "small", " <b>first</b>\nsecond ", NOW, "")
    write_note(tmp_path, "other", "x", NOW, "")
    at = "2026-11-28 12:00+00:00"
    assert read_notes(tmp_path)["small"] == Note("<b>first</b>\nsecond", at)
    assert (tmp_path / "notes.json").stat().st_mode & 0o777 == 0o600
    with pytest.raises(ConfigurationError, match="was saved after the page was shown"):
        write_note(tmp_path, "small", "mine", NOW, "")
    write_note(tmp_path, "small", " ", NOW, "<b>first</b>\nsecond")
    assert [*read_notes(tmp_path)] == ["other"]
    with pytest.raises(ConfigurationError, match="at most 4,000 characters"):
        write_note(tmp_path, "other", "x" * (MOST_NOTE + 1), NOW, "x")
    assert read_notes(tmp_path)["other"].text == "x"


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', '{"a": ["x"]}'])
def test_a_damaged_file_is_not_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / "notes.json").write_text(text)
    with pytest.raises(ConfigurationError, match=r"is damaged. Restore it"):
        write_note(tmp_path, "small", "x", NOW, "")
    assert (tmp_path / "notes.json").read_text() == text
