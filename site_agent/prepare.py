"""Preparation of a study's scans in advance, by participant, on any machine."""

from collections.abc import Mapping
from pathlib import Path

from consortium.errors import ConfigurationError, StudyError
from consortium.space.study_space import image_space
from site_agent.approval.approval import newest_approval
from site_agent.approval.folder import SiteFolder
from site_agent.config import SiteConfig
from site_agent.images.series import SiteDataset

_opened: dict[tuple[str, bytes], SiteDataset] = {}
"""The last study, by its signed digest and the site's settings: a worker prepares many participants
of one study."""


def check_own_prefect(config: SiteConfig, environment: Mapping[str, str]) -> None:
    """Refuse a Prefect server that the site's owner has not named as the hospital's own.

    Raises ConfigurationError.

    Parameters
    ----------
    config : SiteConfig
        Configuration of the site.
    environment : mapping of str to str
        Environment variables. Without PREFECT_API_URL the command starts a server of its own.
    """
    url = environment.get("PREFECT_API_URL")
    if url and not config.prefect:
        raise ConfigurationError(
            f"PREFECT_API_URL: the Prefect server must be the hospital's own, got {url} while "
            "site.yaml has 'prefect: false'. The server records one task run per participant. "
            "Unset the variable, or set 'prefect: true' if the server is the hospital's own."
        )


def count_persons(folder: Path, study: Path, roster: Path) -> int:
    """Count the participants of a site whom an approved study would load.

    Raises StudyError if exactly this study is not approved here. Raises ConsortiumError as
    `site_agent.approval.inspection.inspect`.
    """
    site = SiteFolder.open(folder)
    signed = site.papers(study, roster).signed
    approved = newest_approval(folder, site.identity, signed.study.study)
    papers = (signed.file, signed.mask, signed.keys)
    if approved is None or (approved.file, approved.mask, approved.keys) != papers:
        raise StudyError(
            f"{study}: the study must be approved here before its scans are prepared, and this "
            "file with these keys is not. Approve it with 'site-agent approve'."
        )
    return len(_dataset(folder, study, roster).lengths)


def prepare_person(folder: Path, study: Path, roster: Path, number: int) -> None:
    """Prepare one participant's series in the site's cache, where the agent will find them.

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
