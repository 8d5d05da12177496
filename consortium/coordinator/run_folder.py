"""Where a run stands, read from the exchange and the output folder alone."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from consortium.base.atomic import DAMAGED, write_bytes
from consortium.base.work import work_folder
from consortium.engine.closing import read_end
from consortium.errors import OutputError
from consortium.exchange.base import Exchange
from consortium.study.spec import Study

RECORD = "run.json"
_RUN = re.compile(r"[a-z0-9][a-z0-9-]{0,62}-[0-9]{4,9}")


@dataclass(frozen=True)
class RunRecord:
    """Which run an output folder belongs to."""

    run: str
    study: str
    """Digest of the study."""

    @property
    def data(self) -> bytes:
        """The file's bytes."""
        return json.dumps({"run": self.run, "study": self.study}).encode()


def claim_run(
    folder: Path, study: Study, exchange: Exchange, keys: Mapping[str, bytes]
) -> RunRecord:
    """Take up the folder's run of this study, or name a new one if there is none that goes on.

    A complete run is taken up, too: its outputs are then written again from its transcript. Raises
    OutputError if the folder holds another study whose run was not given up.
    """
    known = read_run(folder)
    if known is not None:
        if not _given_up(exchange, known.run, keys):
            if known.study != study.digest:
                raise OutputError(
                    f"{folder} holds another study; choose another output folder with --out."
                )
            return known
        archive = folder / "transcript"
        if archive.exists():
            _put_aside(archive, work_folder(folder) / f"transcript-{known.run}")
    record = RunRecord(f"{study.study}-{_last_number(exchange, study) + 1:04d}", study.digest)
    write_bytes(folder / RECORD, record.data)
    return record


def _put_aside(archive: Path, place: Path) -> None:
    try:
        place.parent.mkdir(exist_ok=True)
        archive.replace(place)
    except OSError as error:
        raise OutputError(
            f"{archive} can't be moved to {place} ({error.strerror}); choose another output folder."
        ) from error


def _last_number(exchange: Exchange, study: Study) -> int:
    """Largest number of the study's runs: counting them would use a name again after a removal."""
    named = (re.fullmatch(r"(.+)-([0-9]{4,9})", run) for run in exchange.children("runs"))
    return max((int(m[2]) for m in named if m and m[1] == study.study), default=0)


def _given_up(exchange: Exchange, run: str, keys: Mapping[str, bytes]) -> bool:
    end = read_end(exchange, run, keys)
    return end is not None and not end.complete


def read_run(folder: Path) -> RunRecord | None:
    """Return the run that a folder belongs to, or None.

    Raises OutputError if the record is damaged.
    """
    path = folder / RECORD
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        record = RunRecord(str(content["run"]), str(content["study"]))
        if not _RUN.fullmatch(record.run):
            raise ValueError(record.run)
        return record
    except DAMAGED as error:
        raise OutputError(f"{path} is damaged; choose another output folder.") from error
