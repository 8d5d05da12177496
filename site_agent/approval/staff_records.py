"""Records of the staff's decisions and notes in a site's folder: pairs of texts in a JSON file."""

import json
from collections.abc import Mapping
from pathlib import Path

from consortium.base.atomic import DAMAGED, write_bytes
from consortium.errors import ConfigurationError


def read_records(path: Path) -> dict[str, tuple[str, str]]:
    """Return the pair of texts of each key; nothing without the file.

    Raises ConfigurationError if the file is damaged, because a new record would replace all others.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(key): (str(first), str(second)) for key, (first, second) in found.items()}
    except FileNotFoundError:
        return {}
    except DAMAGED as error:
        raise ConfigurationError(
            f"{path} is damaged. Restore it from a backup, or remove it."
        ) from error


def write_records(path: Path, records: Mapping[str, tuple[str, str]]) -> None:
    """Replace all records, for the owner's eyes only.

    Raises OutputError if the file can't be written.
    """
    text = json.dumps(records, indent=1, ensure_ascii=False)
    write_bytes(path, text.encode("utf-8", "replace"), mode=0o600)
