"""What machines read of a result: its claim of privacy, and a catalogue of its files.

The claim has the form of an entry of OpenDP's registry of deployments (its template of 2026), to
be completed by people and sent there; it follows from `privacy_report.json` and the study file.
The catalogue is an RO-Crate 1.1. Neither has anything of a person in it.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from consortium import __version__
from consortium.algorithms import REGISTRY
from consortium.base.atomic import write_json, write_text
from consortium.base.formatting import count
from consortium.report.dataset import GENERATOR, NO_LICENSE, code_url
from consortium.report.finished import Finished
from consortium.report.privacy_report import SEEDED, PrivacyReport
from consortium.report.statement import clauses

ENTRY, CRATE = "dp_deployment.yaml", "ro-crate-metadata.json"
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


def write_claims(folder: Path, run: Finished, files: Sequence[Path]) -> None:
    """Write the entry, where noise protected anybody, and the catalogue.

    Parameters
    ----------
    files : sequence of Path
        What else the catalogue names, relative to the folder.

    Raises
    ------
    OutputError
        If the folder can't be written.
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
    """Entry for a registry of deployments; None for a run that protects nobody."""
    report, study = run.report, run.study
    if report.scheme == "none" or report.sampler.startswith(SEEDED):
        return None
    texts = {clause.heading: clause.text for clause in clauses(report)}
    entry = {
        "basic": _basic(run),
        **_loss(report, texts),
        **_making(run, texts),
        "administrative": {"status": "Draft", "registry_authors": list(study.authors), "tier": 3},
    }
    return {"url_slug": study.study, "deployment": entry}


def _basic(run: Finished) -> dict[str, Any]:
    report, study = run.report, run.study
    return {
        "name": study.heading,
        "data_curators": [{"data_curator_name": site.name} for site in report.sites],
        "description": f"{REGISTRY[study.algorithm].title} over the data of "
        f"{count(len(report.sites), 'site')}, which stay at the sites.",
        "intended_use": "Research",
        "data_product_type": "Summary statistics",
        "data_product_region": "",
        "data_product_sector": "Healthcare",
        "publication_date": run.day.isoformat(),
    }


def _loss(report: PrivacyReport, texts: Mapping[str, str]) -> dict[str, Any]:
    person = report.unit == "subject"
    return {
        "dp_variant": {
            "variant_name": "Approximate DP",
            "data_domain": "Data sets of "
            f"{count(_units(report), 'participant' if person else 'volume')} at the sites, as the "
            "study file says; two are neighbours if one unit's values differ (replace one).",
            "unprotected_quantities": texts["What is not protected"],
        },
        "privacy_loss": {
            "privacy_unit": "Person" if person else "Volume",
            "privacy_unit_details": texts["What is protected"],
            "number_of_privacy_units": _units(report),
            "privacy_parameters": {
                "epsilon": report.guarantees.coalition.epsilon,
                "delta": report.delta,
            },
            "privacy_parameters_details": texts["How strong"],
        },
    }


def _making(run: Finished, texts: Mapping[str, str]) -> dict[str, Any]:
    report = run.report
    return {
        "deployment_model": {
            "model_name": "Local" if report.scheme == "local" else "Federated",
            "model_name_details": "Noise is added at every site before anything leaves it.",
            "trust_assumptions": texts["Assumptions"],
            "actors": texts["Against whom"],
            "release_type": f"{count(len(report.releases), 'release')} of one study",
            "release_type_details": "Privacy parameters are those of all of them together; each "
            "site's ledger adds them to all others of its data.",
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": "All parameters were fixed in the study "
            "file, which the consortium signed before any data were read.",
            "mechanisms": f"Gaussian mechanism; {report.sampler}. "
            f"{count(len(report.releases), 'release')}, each listed in privacy_report.json with "
            "bound, sensitivity and noise.",
            "composition": "Exact, in Gaussian differential privacy: "
            f"μ = {report.guarantees.coalition.mu:.6g}. {texts['Independent check']}",
            "post_processing": "All maps and tables follow from the releases and public settings.",
            "additional_information": f"{GENERATOR} {__version__}, {code_url(GENERATOR)}; study "
            f"{run.study.digest}",
        },
    }


def crate(run: Finished, files: Sequence[tuple[Path, int]]) -> dict[str, Any]:
    """Catalogue of an output folder as an RO-Crate.

    Parameters
    ----------
    files : sequence of (Path, int)
        Relative to the folder, with their sizes in bytes.
    """
    study = run.study
    software, action = f"#{GENERATOR}-{__version__}", f"#run-of-{study.study}"
    names = [_address(path) for path, _ in files]
    root, licences = _root(run, names)
    root["mentions"] = [{"@id": action}]  # so that what is read from the root leads to the run
    made = {
        "@id": action,
        "@type": "CreateAction",
        "name": f"Run of the study {study.study}",
        "endTime": run.day.isoformat(),
        "instrument": {"@id": software},
        "result": {"@id": "./"},
    }
    tool = {
        "@id": software,
        "@type": "SoftwareApplication",
        "name": GENERATOR,
        "version": __version__,
        "url": code_url(GENERATOR),
    }
    about = {
        "@id": CRATE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": _SPECIFICATION},
        "about": {"@id": "./"},
    }
    sites = [{"@id": f"#site-{s}", "@type": "Organization", "name": s} for s in study.sites]
    parts = [
        {
            "@id": name,
            "@type": "File",
            "name": path.name,
            "contentSize": str(size),
            "encodingFormat": _format(path),
        }
        for name, (path, size) in zip(names, files, strict=True)
    ]
    graph = [about, root, *licences, made, tool, *sites, *parts]
    return {"@context": f"{_SPECIFICATION}/context", "@graph": json.loads(json.dumps(graph))}


def _root(run: Finished, names: Sequence[str]) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """What the folder is, and what describes its licence."""
    study = run.study
    licence, licences = _licence(study.license)
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": study.title or f"Group results of the study {study.study}",
        "description": f"{REGISTRY[study.algorithm].title} over "
        f"{count(len(study.sites), 'site')} under differential privacy; privacy_report.json "
        "lists every release.",
        "datePublished": run.day.isoformat(),
        "license": licence,
        "identifier": study.digest,
        "contributor": [{"@id": f"#site-{site}"} for site in study.sites],
        "hasPart": [{"@id": name} for name in names],
        **({"creditText": "; ".join(study.authors)} if study.authors else {}),
    }
    return root, licences


def _licence(name: str) -> tuple[Any, list[dict[str, str]]]:
    """Licence of the whole, and what describes it: SPDX's page if it is one word."""
    if not name or " " in name:
        return name or NO_LICENSE, []
    place = f"https://spdx.org/licenses/{quote(name, safe='.-')}"
    return {"@id": place}, [{"@id": place, "@type": "CreativeWork", "name": name}]


def _address(path: Path) -> str:
    return quote(path.as_posix())


def _format(path: Path) -> str:
    ends = (kind for end, kind in _FORMATS.items() if path.name.endswith(end))
    return next(ends, "application/octet-stream")


def _units(report: PrivacyReport) -> int:
    return sum(site.units for site in report.sites)
