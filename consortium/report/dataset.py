"""What makes an output folder a BIDS data set: its description, a README, what is not BIDS's.

Source: BIDS 1.11, agnostic files. The validator (`bids-validator-deno`) passes on the folder;
``.bidsignore`` has only what no standard names.
"""

from importlib.metadata import PackageNotFoundError, metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

from consortium import __version__
from consortium.base.atomic import write_json, write_text
from consortium.report.finished import Finished
from consortium.report.statement import statement
from consortium.study.spec import Study

BIDS_VERSION = "1.11.0"
GENERATOR = "cape-consortium"
NO_LICENSE = "none stated; ask the sites that took part"
DATASET = tuple(map(Path, ("dataset_description.json", "README.md", "privacy_report.json")))
"""Files that every output folder has."""
_TEMPLATES = files("consortium.report") / "templates"
_IGNORED = (_TEMPLATES / "bidsignore.txt").read_text(encoding="utf-8").splitlines()
NOT_IN_BIDS = tuple(line for line in _IGNORED if not line.startswith("#"))
"""What the validator shall pass over, as lines of ``.bidsignore``.

Folders are without a slash at the end: the validator would not match the folder itself.
"""


def start_dataset(folder: Path, run: Finished) -> None:
    """Write description, README and what validators pass over.

    Raises OutputError if the folder can't be written.
    """
    write_json(folder / "dataset_description.json", describe(run.study))
    write_text(folder / "README.md", _readme(run))
    write_text(folder / ".bidsignore", "\n".join(NOT_IN_BIDS) + "\n")


def describe(study: Study) -> dict[str, Any]:
    """Content of ``dataset_description.json``.

    The source of every site is named, and where it is: nowhere to be fetched from.
    """
    about = {
        "Name": _title(study),
        "BIDSVersion": BIDS_VERSION,
        "DatasetType": "derivative",
        "License": study.license or NO_LICENSE,
        "GeneratedBy": [
            {"Name": GENERATOR, "Version": __version__, "CodeURL": code_url(GENERATOR)}
        ],
        "SourceDatasets": [
            {"Site": site, "Availability": "stays at the site"} for site in study.sites
        ],
    }
    return {**about, "Authors": list(study.authors)} if study.authors else about


def code_url(package: str) -> str:
    """Where the code is that the installed package names as its source; else its package URL."""
    try:
        links = metadata(package).get_all("Project-URL") or []
    except PackageNotFoundError:  # run from a folder that was not installed
        links = []
    named: dict[str, str] = dict(link.split(", ", 1) for link in links)
    return named.get("Source", f"pkg:generic/{package}@{__version__}")


def _title(study: Study) -> str:
    return study.title or f"Group maps of the study {study.study}"


def _readme(run: Finished) -> str:
    study = run.study
    return (
        (_TEMPLATES / "README.md")
        .read_text(encoding="utf-8")
        .format(
            title=_title(study),
            sites=", ".join(study.sites),
            version=__version__,
            study=study.study,
            algorithm=study.algorithm,
            privacy="\n\n".join(statement(run.report)),
            space=study.data.space,
        )
    )
