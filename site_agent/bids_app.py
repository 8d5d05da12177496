"""Participants' own networks as a BIDS App writes them: of any data set, without a consortium.

Source: BIDS Apps 1.0, the command line and the analysis level ``participant``.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import ValidationError

from consortium.base.frozen_model import first_problem
from consortium.errors import DataError
from consortium.space.study_space import study_space
from consortium.space.templates import read_templates
from consortium.study.spec import Study
from site_agent.data.bids import labels_in
from site_agent.data.survey import SkippedPerson, excludes_nobody
from site_agent.images.series import SiteDataset
from site_agent.networks import normalized_templates, write_everybody


def run_participants(
    source: Path,
    target: Path,
    templates: Path,
    settings: Mapping[str, Any],
    labels: Collection[str] = (),
    tell: Callable[[str], None] = lambda _line: None,
) -> tuple[int, tuple[SkippedPerson, ...]]:
    """Write networks of some or all participants; others may already be in the folder.

    Raises DataError if a named participant, an image, the templates, the settings or the folder
    can't be used.

    Parameters
    ----------
    source : Path
        BIDS data set with preprocessed images.
    target : Path
        Folder that is new, is empty, or was begun with the same templates and settings.
    templates : Path
        3-D or 4-D NIfTI, a map for each network.
    settings : mapping
        Fields of a study file's ``data``.
    labels : collection of str
        Labels of participants, with or without ``sub-``; all participants if empty.
    tell : callable
        Is called with a message after each participant.

    Returns
    -------
    persons : int
        Number of participants who have networks now.
    left_out : tuple of Skipped
        Participants without networks, and why; none who was named.
    """
    study = _study(settings)
    wanted = {label.removeprefix("sub-") for label in labels}
    space = study_space(study, source)
    values = normalized_templates(read_templates(templates, space.grid, at_home=True), templates)
    check_there(source, wanted)
    _check_begun(target)
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".work-", dir=target) as work:
        hook = partial(_not_named, wanted) if wanted else excludes_nobody
        dataset = SiteDataset(source, study.data, space, "subject", Path(work), without=hook)
        out = tuple(each for each in dataset.survey.skipped if not wanted or each.label in wanted)
        if wanted and out:
            raise DataError(out[0].detail)
        return write_everybody(target, study, dataset, values, tell), out


def _study(settings: Mapping[str, Any]) -> Study:
    """Return the settings as a study for the writers of networks, without a consortium."""
    nowhere = {"epsilon": 1.0, "delta": 1e-5, "scheme": "none", "colluding_sites": 0}
    about = {"study": "networks", "sites": ["here"], "algorithm": "group_ica"}
    try:
        return Study.model_validate({**about, "privacy": nowhere, "data": dict(settings)})
    except ValidationError as error:
        raise DataError(f"The settings can't be used: {first_problem(error, Study)}") from error


def check_there(source: Path, wanted: Iterable[str]) -> None:
    """Refuse a participant of the BIDS App who has no folder in the data set."""
    lacking = sorted({*wanted}.difference(labels_in(source)))
    if lacking:
        raise DataError(f"{source} has no folder sub-{lacking[0]}. Correct --participant-label.")


def _check_begun(target: Path) -> None:
    begun = (target / "dataset_description.json").is_file()
    if target.exists() and not begun and (not target.is_dir() or any(target.iterdir())):
        raise DataError(f"{target} is not empty and has no networks. Name another folder.")


def _not_named(wanted: Collection[str], labels: Sequence[str]) -> Iterable[SkippedPerson]:
    for label in labels:
        if label not in wanted:
            yield SkippedPerson(label, "not-chosen", f"sub-{label} is not named; left out.")
