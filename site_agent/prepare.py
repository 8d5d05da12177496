"""Preparing a study's scans ahead, person by person, wherever that is run."""

from __future__ import annotations

from pathlib import Path

from consortium.membership.keys import load_identity
from consortium.membership.signed_study import SignedStudy
from consortium.space.study_space import image_space
from site_agent.approval.approval import read_papers
from site_agent.config import SiteConfig
from site_agent.data.people import left_out_here
from site_agent.images.series import SiteDataset

_opened: dict[tuple[str, bytes], SiteDataset] = {}
"""The last study, by what was signed of it and the site's settings: a worker prepares many persons
of one."""


def count_persons(folder: Path, study: Path, roster: Path) -> int:
    """How many persons of a site a study would load.

    Raises
    ------
    ConsortiumError
        As `site_agent.approval.inspection.inspect`.
    """
    return len(_dataset(folder, study, roster).lengths)


def prepare_person(folder: Path, study: Path, roster: Path, number: int) -> None:
    """Leave one person's prepared series in the site's cache, where the agent will find them.

    Raises
    ------
    ConsortiumError
        If an image or table can't be used.
    """
    _dataset(folder, study, roster).prepare(number)


def _dataset(folder: Path, study: Path, roster: Path) -> SiteDataset:
    config, identity = SiteConfig.load(folder), load_identity(folder)
    signed = read_papers(folder, config.name, identity.public, study, roster).signed
    facts = config.model_dump_json(), signed.signed()
    if facts not in _opened:
        _opened.clear()
        _opened[facts] = _open(config, signed)
    return _opened[facts]


def _open(config: SiteConfig, signed: SignedStudy) -> SiteDataset:
    asked = signed.study
    space = image_space(asked.data, signed.folder)
    return SiteDataset(
        *(config.dataset, asked.data, space, asked.privacy.unit, config.cache),
        without=left_out_here(config.left_out),
        aliases=config.aliases,
    )
