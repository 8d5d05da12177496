"""The roster file: everybody's public key by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from consortium.errors import StudyError
from consortium.study import Study


def load_roster(path: Path) -> dict[str, bytes]:
    """Read a roster: YAML lines ``name: 64 hexadecimal digits``, with the centre's key as 'centre'.

    Raises
    ------
    StudyError
        If it is missing or a key is malformed.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        keys = {str(name): bytes.fromhex(text) for name, text in values.items()}
    except (OSError, yaml.YAMLError, AttributeError, TypeError, ValueError) as error:
        raise StudyError(
            f"{path} is no roster; write one line 'name: public key' for each site and 'centre'."
        ) from error
    for name, key in keys.items():
        if len(key) != 32:
            raise StudyError(f"{path}: the key of '{name}' is not 32 bytes; ask the site for it.")
    return keys


def save_roster(path: Path, keys: Mapping[str, bytes]) -> None:
    """Write a roster."""
    path.write_text(yaml.safe_dump({n: k.hex() for n, k in keys.items()}), encoding="utf-8")


def keys_of(study: Study, roster: Mapping[str, bytes], where: str) -> dict[str, bytes]:
    """Keys of a study's sites and of the centre.

    Raises
    ------
    StudyError
        If one is not on the roster.
    """
    missing = [name for name in (*study.sites, "centre") if name not in roster]
    if missing:
        raise StudyError(f"{where}: no key for {', '.join(missing)}; add it to the roster.")
    return {name: roster[name] for name in (*study.sites, "centre")}
