"""Job for a platform that hospitals already run, which transports a study's messages."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from consortium.errors import ConfigurationError, OutputError, StudyError

if TYPE_CHECKING:
    from consortium.study.spec import Study


class Platform(StrEnum):
    """Platforms on which the relay can transport a study's messages."""

    nvflare = "nvflare"
    vantage6 = "vantage6"
    neuroflame = "neuroflame"


FOLDER_IS = {
    Platform.nvflare: "in CAPE_RELAY_FOLDER",
    Platform.vantage6: "as the database 'exchange'",
    Platform.neuroflame: "as its data",
}
"""Setting of a party's platform for the folder."""


class Carriage(NamedTuple):
    """Sites' names and time limits of a job that transports a study's messages."""

    clients: tuple[str, ...]
    """The sites' names on the platform; empty if they are the study's."""
    wait: float
    """Seconds that a party may wait for something to send."""
    hours: float
    """After which the job ends whatever has come."""
    code: bool
    """Whether the relay's code goes with the job."""


def write_relay_job(study: Study, platform: Platform, how: Carriage, output: Path) -> None:
    """Write the folder of the relay's job for a platform.

    Raises ConfigurationError if cape-relay is not installed. Raises StudyError if the platform's
    names are not as many as the study's sites, or some are the same. Raises OutputError if the
    folder exists or can't be written.
    """
    try:
        from cape_relay import RelayError, job
    except ImportError as error:
        raise ConfigurationError(
            "A job for a platform needs cape-relay. Run 'pip install \"cape-consortium[relay]\"'."
        ) from error
    clients = how.clients or study.sites
    name = study.study
    if len(set(clients)) != len(study.sites):
        raise StudyError(
            f"--clients must give {len(study.sites)} different names, one for each site of the "
            f"study ({', '.join(study.sites)})."
        )
    carried = (f"runs/{name}-", f"consent/{name}/", "ledgers/")
    least = len(clients) - study.privacy.dropouts
    last = f"runs/{name}-*/end"
    made = job.Job(
        name=name,
        sites=tuple(clients),
        least=least,
        only=carried,
        last=last,
        wait=how.wait,
        hours=how.hours,
    )
    try:
        if platform is Platform.nvflare:
            job.write_nvflare(made, output, code=how.code)
        elif platform is Platform.vantage6:
            job.write_vantage6(made, output)
        else:
            job.write_neuroflame(made, output)
    except RelayError as error:
        raise OutputError(str(error)) from error
