"""Preparing a study's scans ahead, person by person, wherever that is run."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from consortium.membership.keys import load_identity
from consortium.space.study_space import image_space
from site_agent.approval.approval import read_papers
from site_agent.config import SiteConfig
from site_agent.data.people import left_out_here
from site_agent.images.series import SiteDataset
from site_agent.layout import CACHE


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


@lru_cache(maxsize=1)  # a worker prepares many persons of one study
def _dataset(folder: Path, study: Path, roster: Path) -> SiteDataset:
    config, identity = SiteConfig.load(folder), load_identity(folder)
    signed = read_papers(folder, config.name, identity.public, study, roster).signed
    asked = signed.study
    space = image_space(asked.data, signed.folder)
    return SiteDataset(
        *(config.dataset, asked.data, space, asked.privacy.unit, folder / CACHE),
        without=left_out_here(config.left_out),
    )
