"""What a site's people have said yes to: one exact study with one exact roster."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consortium.engine.transcript import write_atomically
from consortium.errors import ConfigurationError, OutputError, StudyError
from consortium.roster import keys_of, load_roster
from consortium.study import Study, load_study
from site_agent.ledger import LEDGER, Ledger

_FOLDER = "approved"


@dataclass(frozen=True)
class Approval:
    """An approved study.

    Parameters
    ----------
    study : Study
    keys : mapping of str to bytes
    folder : Path
        Where the study's mask is looked for.
    runs : int
        Runs of the study that may ever cost something, those of before included.
    """

    study: Study
    keys: Mapping[str, bytes]
    folder: Path
    runs: int


def approve(folder: Path, study_path: Path, roster_path: Path, *, runs: int = 1) -> Approval:
    """Record a yes to a study and its roster, for so many runs from now on.

    Parameters
    ----------
    folder : Path
        The site's folder.
    study_path, roster_path : Path
    runs : int
        A run that goes on after a crash is one; a run that is started anew is another, and costs
        again.

    Raises
    ------
    StudyError
        If a file can't be used, or the study protects nobody.
    ConfigurationError
        If the record can't be written.
    """
    study = load_study(study_path)
    if study.privacy.scheme == "none":
        raise StudyError(
            f"{study_path}: field 'privacy.scheme': 'none' protects nobody and is for simulations; "
            "ask for a study with cape, secure-sum or local."
        )
    keys = keys_of(study, load_roster(roster_path), str(roster_path))
    record: dict[str, Any] = {
        "study": study.model_dump(mode="json"),
        "keys": {name: key.hex() for name, key in keys.items()},
        "folder": str(study_path.resolve().parent),
        "runs": runs + len(Ledger(folder / LEDGER).runs(study.study)),
    }
    path = folder / _FOLDER / f"{study.study}-{_digest(study, keys)[:16]}.json"
    try:
        write_atomically(path, json.dumps(record, indent=1).encode())
    except OutputError as error:
        raise ConfigurationError(str(error)) from error
    return Approval(study, keys, Path(record["folder"]), record["runs"])


def approvals(folder: Path) -> list[Approval]:
    """Every study that a site has approved.

    Raises
    ------
    ConfigurationError
        If a record is damaged.
    """
    found = []
    for path in sorted((folder / _FOLDER).glob("*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            keys = {name: bytes.fromhex(text) for name, text in record["keys"].items()}
            study = Study.model_validate(record["study"])
            source, runs = Path(record["folder"]), int(record["runs"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError(
                f"{path} is damaged; remove it and approve the study again."
            ) from error
        found.append(Approval(study, keys, source, runs))
    return found


def _digest(study: Study, keys: Mapping[str, bytes]) -> str:
    text = "|".join([study.digest, *(f"{n}={k.hex()}" for n, k in sorted(keys.items()))])
    return hashlib.sha256(text.encode()).hexdigest()
