"""File of an open cohort's directions, from a BIDS data set: the command ``open-cohort``.

Images are read, cleaned and reduced by the code of a site.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from consortium.algorithms.group_ica.parameters import GroupIcaParameters
from consortium.algorithms.open_cohort import OpenDirections
from consortium.algorithms.subspace import Directions, ProjectorPlan, directions_of
from consortium.base.atomic import make_folder, path_in_folder
from consortium.base.delimited import open_table
from consortium.base.one_thread import one_thread
from consortium.base.work import work_folder
from consortium.errors import DataError, StudyError
from consortium.space.open_cohort import (
    DIRECTIONS,
    FEWEST,
    CohortBasis,
    read_directions,
    write_directions,
)
from consortium.space.study_space import Space, image_space
from consortium.study.reader import read_study
from site_agent.data.survey import SkippedPerson
from site_agent.images.series import SiteDataset
from site_agent.loading.open import check_anybody

SITE = "site"
"""Column of the participants' table with the site where each was scanned."""
_USUAL_MAPS = 400
"""Maps of the basis if the study states no cutoff."""
_TABLE = "participants.tsv"
_MOST_BYTES = 50_000_000
_LABELS = "participant_id"
_STEPS = 2.0
"""Steps of a millimetre to which a chosen cutoff is rounded up."""


@dataclass(frozen=True)
class MadeCohort:
    """A file of directions, as it was written."""

    path: Path
    cohort: OpenDirections
    skipped: tuple[SkippedPerson, ...]
    """Participants without directions, and why."""


def make_open_cohort(
    study_path: Path,
    source: Path,
    *,
    column: str = SITE,
    terms: str | None = None,
    tell: Callable[[int, int], None] = lambda _done, _total: None,
) -> MadeCohort:
    """Write the file that a study of group ICA names as `analysis.open`.

    Raises StudyError if the study names none, or is of another kind. Raises DataError if the data
    set can't be used, has fewer than 30 participants, or the file exists.

    Parameters
    ----------
    study_path : Path
        The study file, next to which the file is written.
    source : Path
        BIDS data set of the open cohort with preprocessed images.
    column : str
        Column of participants.tsv with the site of each participant.
    terms : str, optional
        Where the data come from and under which terms (default: name, license and DOI of
        dataset_description.json).
    tell : callable
        Is called with the numbers of finished and of all participants.
    """
    one_thread()
    study = read_study(study_path)
    parameters = study.analysis
    if not isinstance(parameters, GroupIcaParameters) or parameters.open is None:
        raise StudyError(
            f"{study_path}: open-cohort requires a study of group_ica that names a file as "
            "analysis.open. Add the line 'open: NAME.npz' to its analysis."
        )
    target = _target(study_path.parent, parameters.open)
    space = image_space(study.data, study_path.parent)
    plan = _basis_of(parameters.asked, space)
    work = work_folder(study_path.parent)
    make_folder(work)
    with TemporaryDirectory(dir=work, prefix="cache-") as cache:
        dataset = SiteDataset(source, study.data, space, "subject", Path(cache))
        check_anybody(dataset)
        many = len(dataset.lengths)
        if many < FEWEST:
            raise DataError(
                f"{source}: an open cohort must have at least {FEWEST} participants, and {many} "
                "qualify. Add participants."
            )
        sites = _sites(source, dataset.people, column)
        asked = (plan.for_series, plan.asked.global_signal, plan.asked.kept)
        found = []
        for directions in directions_of(dataset.blocks(), *asked):
            found.append(directions)
            tell(len(found), many)
        short = [p for p, d in zip(dataset.people, found, strict=True) if d.shape[1] < asked[2]]
        if short:
            raise DataError(
                f"{source}: every participant must have {asked[2]} directions, and {short[0]} has "
                "fewer: its series is too short. Remove the participant, or ask for fewer "
                "analysis.directions."
            )
        skipped = tuple(dataset.survey.skipped)
    with suppress(OSError):  # not empty: others work in it
        work.rmdir()
    basis = CohortBasis(space.rows_digest, plan.cutoff, plan.asked.global_signal)
    write_directions(target, found, sites, basis, terms or _terms(source))
    return MadeCohort(target, read_directions(target, space.rows_digest), skipped)


def _target(folder: Path, name: str) -> Path:
    """Return the path of a new file of directions in the study's folder."""
    if not name.endswith(DIRECTIONS):
        raise StudyError(
            f"field 'analysis.open': a file of directions must end in {DIRECTIONS}, and it is "
            f"{name}. Name another file."
        )
    try:
        target = path_in_folder(folder, name)
    except ValueError as error:
        raise StudyError(
            f"field 'analysis.open': the file must be in the study's folder, got {name}. Name "
            "another file."
        ) from error
    if target.exists():
        raise DataError(f"{target} exists already. Remove it, or name another file in the study.")
    return target


def _basis_of(asked: Directions, space: Space) -> ProjectorPlan:
    """Return a plan with the basis of the study, or a usual one if it states no cutoff."""
    shape = space.extent.shape((1,), (1,), "subject")
    plan = ProjectorPlan(asked, shape)
    if plan.basis != "smooth" or asked.cutoff is not None or shape.places is None:
        return plan
    usual = max(shape.places.finest, shape.places.room.cutoff(_USUAL_MAPS))
    return ProjectorPlan(replace(asked, cutoff=-(-usual * _STEPS // 1) / _STEPS), shape)


def _sites(source: Path, people: tuple[str, ...], column: str) -> tuple[str, ...]:
    """Return the site of each participant, or one site for all if the table has no such column."""
    path = source / _TABLE
    if not path.is_file():
        return ("",) * len(people)
    known = {}
    with open_table(path, _MOST_BYTES) as table:
        if column not in table.header or _LABELS not in table.header:
            if column != SITE:
                raise DataError(
                    f"{path}: a column named '{column}' is required, and the table has "
                    f"{', '.join(table.header)}. Correct --site-column."
                )
            return ("",) * len(people)
        label = table.header.index(_LABELS)
        site = table.header.index(column)
        for row in table.rows():
            known[row.cells[label].strip().removeprefix("sub-")] = row.cells[site].strip()
    return tuple(known.get(person.removeprefix("sub-"), "") for person in people)


def _terms(source: Path) -> str:
    """Return name, license and DOI of a data set, as far as it states them."""
    path = source / "dataset_description.json"
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    parts = (about.get(key) for key in ("Name", "License", "DatasetDOI"))
    return ", ".join(str(part) for part in parts if part)
