"""The parties of a published run, and the documents that they signed before it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from consortium.base.atomic import path_in_folder
from consortium.base.strict_yaml import read_yaml
from consortium.coordinator.evidence import STUDY_FILE, STUDY_FOLDER
from consortium.coordinator.run_folder import read_run
from consortium.engine.names import ANNOUNCEMENT
from consortium.engine.queries import read_announcement
from consortium.engine.run_context import RunContext
from consortium.errors import (
    ConfigurationError,
    ConsortiumError,
    ContradictionError,
    ProtocolError,
)
from consortium.membership.roster import Roster, fingerprint
from consortium.membership.signed_study import read_signed
from consortium.opened_study import OpenedStudy, open_signed
from consortium.secagg import CENTRE
from consortium.secagg.envelope import read_unchecked
from consortium.verification import record as names
from consortium.verification.agreement import check_version
from consortium.verification.record import EvidenceRecord, evidence_path
from consortium.verification.verdict import Verdict

_T = TypeVar("_T")


@dataclass(frozen=True)
class Provenance:
    """Parties, plan and signed documents of a published run, from which it is verified."""

    record: EvidenceRecord
    """The run's messages, under the keys that the study's signature holds."""
    context: RunContext
    """As the signed study has it."""
    opened: OpenedStudy


def read_provenance(folder: Path, sites: Path | None, verdict: Verdict) -> Provenance:
    """Check the signed study, under keys that come from elsewhere if possible.

    Raises ContradictionError if a signature is wrong, or by another key. Raises ConfigurationError
    if this is not a folder of a run, another version announced the run, or the fingerprints can't
    be read.

    Parameters
    ----------
    folder : Path
        The output folder.
    sites : Path, optional
        File of fingerprints.
    verdict : Verdict
        Receives the source of the keys.
    """
    study_file = folder / names.EVIDENCE / STUDY_FOLDER / STUDY_FILE
    run = as_contradiction(lambda: read_run(folder), "run.json")
    if run is None or not study_file.exists():
        raise ConfigurationError(
            f"{folder} must be the output folder of a run with its evidence, and it is not. Ask "
            "the coordinator for the whole folder."
        )
    verdict.run = run.run

    def read(name: str) -> bytes | None:
        try:
            return path_in_folder(folder / names.EVIDENCE, name).read_bytes()
        except (OSError, ValueError):
            return None

    announced = read(names.ANNOUNCED) or b""
    members = as_contradiction(lambda: announced_members(announced), evidence_path(names.ANNOUNCED))
    record = EvidenceRecord(run.run, members.keys, read)
    # Before the study is read: another version may read its file otherwise.
    check_version(record.message(names.ANNOUNCED, ANNOUNCEMENT))
    signed = as_contradiction(
        lambda: read_signed(study_file, members), evidence_path(f"{STUDY_FOLDER}/{STUDY_FILE}")
    )
    _compare_keys(members, signed.study.sites, sites, verdict)
    if run.study != signed.study.digest:
        raise ContradictionError("run.json", "it is of another study than the signed one.")
    opened = open_signed(signed)
    context = opened.context(run.run)
    return Provenance(EvidenceRecord(run.run, signed.keys, read), context, opened)


def _compare_keys(
    members: Roster, names_of: Sequence[str], sites: Path | None, verdict: Verdict
) -> None:
    if sites is None:
        verdict.add(
            evidence_path(names.ANNOUNCED),
            "the names of hospitals, and their keys, are confirmed only by the coordinator. Give "
            "the fingerprints that they publish themselves with --sites.",
        )
        return
    known = fingerprints(sites)
    for name in (CENTRE, *names_of):
        own = fingerprint(members.keys[name])
        if name not in known:
            verdict.leave_open(str(sites), f"has no fingerprint of {name}.")
        elif known[name] != own:
            raise ContradictionError(
                evidence_path(names.ANNOUNCED),
                f"gives {name} the key {own}, and {name} says that its own is {known[name]}.",
            )


def fingerprints(path: Path) -> dict[str, str]:
    """Read fingerprints by name; raises ConfigurationError if the file can't be read so."""
    try:
        content = read_yaml(path)
        return {str(name): str(value) for name, value in dict(content).items()}
    except (OSError, ValueError, TypeError) as error:
        raise ConfigurationError(
            f"{path} can't be read. Write one line a site, 'name: fingerprint'."
        ) from error


def announced_members(message: bytes) -> Roster:
    """Return the parties of a published run's announcement, whose keys must be in the signature.

    Raises ContradictionError if it is not an announcement.
    """
    try:
        keys_by_name = read_announcement(read_unchecked(message).body)["keys"]
        keys = {str(name): bytes.fromhex(key) for name, key in dict(keys_by_name).items()}
        return Roster(1, keys.pop(CENTRE), keys)
    except (ProtocolError, KeyError, ValueError, TypeError) as error:
        raise ContradictionError(
            evidence_path(names.ANNOUNCED), "is missing, or no announcement of a run."
        ) from error


def as_contradiction(act: Callable[[], _T], where: str) -> _T:
    """Read something of a published run; an error of it contradicts the file ``where``."""
    try:
        return act()
    except ContradictionError:
        raise
    except ConsortiumError as error:
        raise ContradictionError(where, str(error)) from error
