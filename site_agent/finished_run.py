"""The one release of a finished run, checked against what this hospital and the centre signed."""

import json
from dataclasses import dataclass
from pathlib import Path

from consortium.algorithms.base import Release
from consortium.base.atomic import DAMAGED, path_in_folder
from consortium.engine.run_context import RunContext
from consortium.engine.session import per_statistic_unit
from consortium.engine.transcript import TRANSCRIPT, Transcript
from consortium.errors import OutputError, StudyError
from consortium.membership.signed_study import SignedStudy
from consortium.space.study_space import Space, study_space
from consortium.study.plan import Plan
from consortium.verification.agreement import read_agreement
from consortium.verification.record import EVIDENCE, EvidenceRecord
from consortium.verification.rounds import read_round

RUN = "run.json"


def study_file(output: Path) -> Path:
    """Where an output folder keeps the study as it was signed.

    Raises OutputError if it has none.
    """
    path = output / EVIDENCE / "study" / "study.yaml"
    if not path.is_file():
        raise OutputError(
            f"{output} is no output folder of a run with its evidence; ask the coordinator for the "
            "whole folder."
        )
    return path


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """A run of one release."""

    run: str
    plan: Plan
    """Of the sites that it started with."""
    space: Space
    release: Release
    """In the statistic's units."""

    def persons(self, site: str) -> tuple[int, int]:
        """Participants of a site in the release, and of all sites.

        Raises StudyError if the site is not in it.
        """
        sites, units = self.plan.study.sites, self.plan.shape.units
        present = self.release.sites
        if site not in sites or sites.index(site) not in present:
            raise StudyError(f"{site} took no part in the release of {self.run}; name another run.")
        return units[sites.index(site)], sum(units[s] for s in present)


def read_finished(output: Path, signed: SignedStudy) -> FinishedRun:
    """Read the first release of a run, as its centre signed it.

    Raises OutputError if a file is missing or damaged. Raises ContradictionError if messages and
    numbers don't fit each other, or are of another study. Raises ConfigurationError if the run was
    announced with another version of this software.
    """
    run = _run(output)

    def read(name: str) -> bytes | None:
        try:
            return path_in_folder(output / EVIDENCE, name).read_bytes()
        except (OSError, ValueError):
            return None

    space = study_space(signed.study, signed.folder)
    record = EvidenceRecord(run, signed.keys, read)
    context = RunContext(run, signed.study, signed.keys, space.digest, space.extent, signed.file)
    agreement = read_agreement(record, context)
    kept = next(Transcript(output / TRANSCRIPT).rounds(), None)
    if kept is None:
        raise OutputError(f"{output} holds no release; ask the coordinator for the whole folder.")
    mechanism = read_round(record, agreement, kept).stage.mechanism
    values = mechanism.lattice.decode(kept.ring)
    return FinishedRun(
        run, agreement.plan, space, per_statistic_unit(mechanism, values, kept.survivors)
    )


def _run(output: Path) -> str:
    try:
        return str(json.loads((output / RUN).read_text(encoding="utf-8"))["run"])
    except (OSError, *DAMAGED) as error:
        raise OutputError(
            f"{output / RUN} can't be read; ask the coordinator for the whole folder."
        ) from error
