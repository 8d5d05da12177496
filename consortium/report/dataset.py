"""Files that make an output folder a BIDS data set, and its machine-readable descriptions.

Its description, a README, a list of other files; its privacy claim, and a catalogue of its files.
Source: BIDS 1.11, agnostic files. The validator (`bids-validator-deno`) passes on the folder;
``.bidsignore`` has only what no standard names.

The claim has the form of an entry of OpenDP's registry of deployments (its template of 2026), to
be completed by the coordinator and sent there. It follows from `privacy_report.json` and the study
file. The catalogue is an RO-Crate 1.1. Neither contains data of a participant.
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, metadata
from importlib.resources import files as resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from consortium import __version__
from consortium.algorithms import REGISTRY
from consortium.base.atomic import write_json, write_text
from consortium.base.formatting import count
from consortium.report.finished import Finished
from consortium.report.privacy_report import SEEDED
from consortium.report.statement import clauses, statement
from consortium.study.spec import Study

BIDS_VERSION = "1.11.0"
GENERATOR = "cape-consortium"
NO_LICENSE = "none stated. Ask the sites that took part"
DATASET = tuple(map(Path, ("dataset_description.json", "README.md", "privacy_report.json")))
"""Files that every output folder has."""
_TEMPLATES = resources("consortium.report") / "templates"
_IGNORED = (_TEMPLATES / "bidsignore.txt").read_text(encoding="utf-8").splitlines()
NOT_IN_BIDS = tuple(line for line in _IGNORED if not line.startswith("#"))
"""Files that the validator ignores, as lines of ``.bidsignore``.

Folders are without a slash at the end: the validator would not match the folder itself.
"""
ENTRY = "dp_deployment.yaml"
CRATE = "ro-crate-metadata.json"
_SPECIFICATION = "https://w3id.org/ro/crate/1.1"
_FORMATS = {
    ".json": "application/json",
    ".tsv": "text/tab-separated-values",
    ".html": "text/html",
    ".md": "text/markdown",
    ".bib": "application/x-bibtex",
    ".yaml": "application/yaml",
    ".nii.gz": "application/x-nifti",
}


def start_dataset(folder: Path, run: Finished) -> None:
    """Write an output folder's BIDS description, README and list of files to ignore.

    Raises OutputError if the folder can't be written.
    """
    write_json(folder / "dataset_description.json", describe(run.study))
    write_text(folder / "README.md", _readme(run))
    write_text(folder / ".bidsignore", "\n".join(NOT_IN_BIDS) + "\n")


def describe(study: Study) -> dict[str, Any]:
    """Return the content of ``dataset_description.json``.

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
    """Return the source URL of the installed package, or otherwise its package URL."""
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


def write_claims(folder: Path, run: Finished, files: Sequence[Path]) -> None:
    """Write the catalogue of an output folder and, if noise protected participants, the entry.

    Raises OutputError if the folder can't be written.

    Parameters
    ----------
    files : sequence of Path
        Further files of the catalogue, relative to the folder.
    """
    entry = deployment_entry(run)
    if entry is not None:
        text = yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=100)
        write_text(folder / ENTRY, text)
        files = (*files, Path(ENTRY))
    present = [path for path in dict.fromkeys(files) if (folder / path).is_file()]
    sizes = [(path, (folder / path).stat().st_size) for path in present]
    write_json(folder / CRATE, crate(run, sizes))


def deployment_entry(run: Finished) -> dict[str, Any] | None:
    """Return the entry for a registry of deployments; None for a run without protection."""
    report = run.report
    person = run.report.unit == "subject"
    if report.scheme == "none" or report.sampler.startswith(SEEDED):
        return None
    many = sum(site.units for site in report.sites)
    own = {
        "heading": run.study.heading,
        "curators": [{"data_curator_name": site.name} for site in report.sites],
        "sites": count(len(report.sites), "site"),
        "many": many,
        "unit": "Person" if person else "Volume",
        "units": count(many, "participant" if person else "volume"),
        "epsilon": report.guarantees.coalition.epsilon,
        "mu": report.guarantees.coalition.mu,
        "delta": report.delta,
        "model": "Local" if report.scheme == "local" else "Federated",
        "releases": count(len(report.releases), "release"),
        "sampler": report.sampler,
        "authors": list(run.study.authors),
    }
    texts = {clause.heading: clause.text for clause in clauses(report)}
    entry: dict[str, Any] = _filled(_written()["entry"], _known(run) | texts | own)
    return entry


def crate(run: Finished, files: Sequence[tuple[Path, int]]) -> dict[str, Any]:
    """Return the catalogue of an output folder as an RO-Crate.

    Parameters
    ----------
    files : sequence of (Path, int)
        Relative to the folder, with their sizes in bytes.
    """
    study = run.study
    licence, licences = _licence(study.license)
    sites = [{"@id": f"#site-{s}", "@type": "Organization", "name": s} for s in study.sites]
    parts = [
        {
            "@id": quote(path.as_posix()),
            "@type": "File",
            "name": path.name,
            "contentSize": str(size),
            "encodingFormat": _format(path),
        }
        for path, size in files
    ]
    own = {
        "title": study.title or f"Group results of the study {study.study}",
        "sites": count(len(study.sites), "site"),
        "licence": licence,
        "contributors": [{"@id": site["@id"]} for site in sites],
        "credit": "; ".join(study.authors),
        "parts": [{"@id": part["@id"]} for part in parts],
    }
    about, root, made, tool = _filled(_written()["crate"], _known(run) | own)
    if not study.authors:
        del root["creditText"]
    graph = [about, root, *licences, made, tool, *sites, *parts]
    return {"@context": f"{_SPECIFICATION}/context", "@graph": graph}


def _known(run: Finished) -> dict[str, Any]:
    """Return the common fields of both."""
    return {
        "study": run.study.study,
        "analysis": REGISTRY[run.study.algorithm].title,
        "day": run.day.isoformat(),
        "digest": run.study.digest,
        "generator": GENERATOR,
        "version": __version__,
        "code": code_url(GENERATOR),
    }


def _written() -> dict[str, Any]:
    """Return the texts of both, with placeholders in braces."""
    path = resources("consortium.report").joinpath("templates/claims.yaml")
    written: dict[str, Any] = yaml.safe_load(path.read_bytes())
    return written


def _filled(value: Any, known: Mapping[str, Any]) -> Any:
    """Put the run's words into their places; a place that is a whole value may get any."""
    if isinstance(value, dict):
        return {name: _filled(each, known) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, known) for each in value]
    if isinstance(value, str):
        return known[value[1:-1]] if value[1:-1] in known else value.format_map(known)
    return value


def _licence(name: str) -> tuple[Any, list[dict[str, str]]]:
    """Return the licence and its description: SPDX's page if it is one word."""
    if not name or " " in name:
        return name or NO_LICENSE, []
    place = f"https://spdx.org/licenses/{quote(name, safe='.-')}"
    return {"@id": place}, [{"@id": place, "@type": "CreativeWork", "name": name}]


def _format(path: Path) -> str:
    ends = (kind for end, kind in _FORMATS.items() if path.name.endswith(end))
    return next(ends, "application/octet-stream")
