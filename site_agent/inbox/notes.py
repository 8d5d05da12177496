"""The staff's own notes on studies, in the site's folder."""

import json
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from consortium.base.atomic import DAMAGED, write_bytes
from consortium.base.lock import take_turns
from consortium.errors import ConfigurationError
from site_agent.layout import DECISIONS, NOTES

MOST_NOTE = 4_000
"""Characters of a note."""


class Note(NamedTuple):
    """A note, and when it was written."""

    text: str
    at: str


def read_notes(folder: Path) -> dict[str, Note]:
    """Return the notes by study.

    Raises ConfigurationError if the file is damaged: a new note would replace it.
    """
    path = folder / NOTES
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): Note(str(text), str(at)) for name, (text, at) in found.items()}
    except FileNotFoundError:
        return {}
    except DAMAGED as error:
        raise ConfigurationError(
            f"{path} is damaged. Restore it from a backup, or remove it."
        ) from error


def write_note(folder: Path, study: str, text: str, now: datetime, before: str) -> None:
    """Replace the note on a study; an empty text removes it.

    Raises ConfigurationError if the text is too long or the note has changed, or as `read_notes`.
    Raises OutputError if the file can't be written.

    Parameters
    ----------
    folder : Path
        The site's.
    study : str
        Name of the study.
    text : str
        The new note.
    now : datetime
        The time.
    before : str
        The note that the new one replaces.
    """
    if len(text) > MOST_NOTE:
        raise ConfigurationError(
            f"A note must have at most {MOST_NOTE:,} characters, and this one has {len(text):,}. "
            "Shorten it."
        )
    with take_turns(folder, DECISIONS):
        notes = read_notes(folder)
        found = notes[study].text if study in notes else ""
        if found != before:
            raise ConfigurationError(
                f"Another note on {study} was saved after the page was shown: '{found}'. Nothing "
                "was changed. Go back, copy your text, and reload the page."
            )
        notes.pop(study, None)
        if text.strip():
            notes[study] = Note(text.strip(), now.isoformat(sep=" ", timespec="minutes"))
        content = json.dumps(notes, indent=1, ensure_ascii=False)
        write_bytes(folder / NOTES, content.encode("utf-8", "replace"), mode=0o600)
