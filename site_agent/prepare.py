"""Preparing a study's scans ahead, person by person, wherever that is run."""

from pathlib import Path

from consortium.space.study_space import image_space
from site_agent.approval.folder import SiteFolder
from site_agent.images.series import SiteDataset

_opened: dict[tuple[str, bytes], SiteDataset] = {}
"""The last study, by what was signed of it and the site's settings: a worker prepares many persons
of one."""


def count_persons(folder: Path, study: Path, roster: Path) -> int:
    """How many persons of a site a study would load.

    Raises ConsortiumError as `site_agent.approval.inspection.inspect`.
    """
    return len(_dataset(folder, study, roster).lengths)


def prepare_person(folder: Path, study: Path, roster: Path, number: int) -> None:
    """Leave one person's prepared series in the site's cache, where the agent will find them.

    Raises ConsortiumError if an image or table can't be used.
    """
    _dataset(folder, study, roster).prepare(number)


def _dataset(folder: Path, study: Path, roster: Path) -> SiteDataset:
    site = SiteFolder.open(folder)
    signed = site.papers(study, roster).signed
    facts = site.config.model_dump_json(), signed.signed()
    if facts not in _opened:
        _opened.clear()
        space = image_space(signed.study.data, signed.folder)
        _opened[facts] = site.series(signed.study.data, space, signed.study.privacy.unit)
    return _opened[facts]
