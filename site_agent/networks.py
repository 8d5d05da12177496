"""Each participant's own networks, in the hospital's own folder. They are never sent.

Maps, courses and connectivity by dual regression on public templates, as BIDS derivatives.
"""

import csv
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from consortium import __version__
from consortium.algorithms.base import Array, Templates
from consortium.base.atomic import write_json, write_text
from consortium.errors import DataError, StudyError
from consortium.kernels.dual_regression import courses, person_maps
from consortium.kernels.projectors import GlobalSignal, reduce_series
from consortium.opened_study import open_signed
from consortium.privacy.clipping import column_norms
from consortium.report.bids import about_image, label, resolution_label, write_image
from consortium.report.dataset import BIDS_VERSION, GENERATOR
from consortium.report.image_sets import write_surface
from consortium.space.study_space import Space
from consortium.space.templates import read_surface_templates, read_templates
from consortium.study.spec import Study
from site_agent.approval.folder import SiteFolder
from site_agent.config import SiteConfig
from site_agent.images.series import SiteDataset
from site_agent.loading.open import check_anybody

_NOT_IN_BIDS = ("components", "relmat", "timeseries")  # proposals, no standard yet
_README = """\
# Networks of single participants

Maps, time series and connectivity of each participant by dual regression on the templates of
study {study}.
They belong to this hospital; no study sends any of them. Protect it like the scans.
"""


def write_networks(
    folder: Path,
    study: Path,
    roster: Path,
    target: Path,
    templates: Path | None = None,
    tell: Callable[[str], None] = lambda _line: None,
) -> int:
    """Write the networks of every participant whom a study would include.

    Raises ConsortiumError if the study, its templates or an image can't be used, or the folder is
    unsuitable.

    Parameters
    ----------
    folder : Path
        The site's.
    study, roster : Path
        The files, as for approval.
    target : Path
        A folder that is empty or new.
    templates : Path, optional
        4-D NIfTI, or on a mesh CIFTI, instead of the study's templates.
    tell : callable
        Is called with a message after each participant.

    Returns
    -------
    int
        Number of participants.
    """
    site = SiteFolder.open(folder)
    check_target(target, site.config)
    signed = site.papers(study, roster).signed
    asked = signed.study
    if asked.features:
        raise StudyError(
            f"{study}: networks require series of images, and this study has feature vectors."
        )
    space = open_signed(signed).space
    values = normalized_templates(_templates(space, study, templates), templates or study)
    dataset = site.series(asked.data, space, asked.privacy.unit)
    return write_everybody(target, asked, dataset, values, tell)


def write_everybody(
    target: Path, study: Study, dataset: SiteDataset, values: Array, tell: Callable[[str], None]
) -> int:
    """Write the networks of all participants of a data set, and the description files of BIDS.

    Raises DataError if an image can't be used, or the folder was made with other templates or
    settings.

    Parameters
    ----------
    target : Path
        A folder that is empty, new, or begun with the same templates and settings.
    study : Study
        Defines the loaded data and their preparation.
    dataset : SiteDataset
        The participants of the data set.
    values : array, shape (D, K)
        Templates, of `normalized_templates`.
    tell : callable
        Is called with a message after each participant.

    Returns
    -------
    int
        Number of participants.
    """
    check_anybody(dataset)
    names = _names(dataset, values.shape[1])
    _start(target, study, values)
    for number, (name, block) in enumerate(zip(names, dataset.blocks(), strict=True), start=1):
        _write_person(
            target=target,
            person=name,
            study=study,
            space=dataset.space,
            block=block,
            templates=values,
        )
        tell(f"{number} of {len(names)}")
    return len(names)


def _templates(space: Space, study: Path, own: Path | None) -> Templates:
    """Return the site's own templates if it gives any, or otherwise the study's."""
    if own is not None:
        return _given(own, space)
    if space.templates is None:
        raise StudyError(
            f"{study} names no templates. Give --templates FILE, a 4-D NIfTI with a map for each "
            "network, or dense maps of CIFTI where the study is on a mesh."
        )
    return space.templates


def _names(dataset: SiteDataset, many: int) -> list[str]:
    """Return BIDS names of all participants, who must have more volumes than templates."""
    short = [p for p, n in zip(dataset.people, dataset.lengths, strict=True) if n <= many]
    if short:
        raise DataError(
            f"{short[0]} has no more volumes than there are templates ({many}). Give fewer "
            "templates, or leave the participant out."
        )
    names = [f"sub-{label(person)}" for person in dataset.people]
    if len(set(names)) < len(names):
        raise DataError(
            "Two labels of participants differ only in characters that BIDS does not allow."
        )
    return names


def _given(path: Path, space: Space) -> Templates:
    """Return the templates of the hospital's own choice."""
    if space.mesh is not None:
        return read_surface_templates(path, space.mesh, space.regions, at_home=True)
    return read_templates(path, space.grid, space.regions, at_home=True)


def check_target(target: Path, config: SiteConfig) -> None:
    """Raise DataError for a folder for networks that others read, or that is not empty."""
    place = target.resolve()
    if "://" not in config.exchange and place.is_relative_to(Path(config.exchange).resolve()):
        raise DataError(f"{target} is on the exchange, which others read. Name another folder.")
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise DataError(f"{target} is not empty. Name a new folder.")


def normalized_templates(templates: Templates, file: Path) -> Array:
    """Return templates as columns of norm 1: D x K.

    Raises DataError if one is a linear combination of the others.
    """
    values = np.asarray(templates.values, dtype=np.float64)
    values = values / column_norms(values)
    if np.linalg.matrix_rank(values) < values.shape[1]:
        raise DataError(f"Templates of {file} depend on each other. Remove the duplicates.")
    return np.asarray(values)


def _start(target: Path, study: Study, values: Array) -> None:
    about = _description(study, values)
    file = target / "dataset_description.json"
    if file.exists() and json.loads(file.read_bytes()) != about:
        raise DataError(
            f"{target} has networks by other templates, settings or versions. Name another folder."
        )
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.chmod(0o700)  # also of an existing one
    write_json(file, about)
    write_text(target / "README.md", _README.format(study=study.study))
    write_text(target / ".bidsignore", "".join(f"sub-*/func/*_{x}.*\n" for x in _NOT_IN_BIDS))


def _description(study: Study, values: Array) -> dict[str, Any]:
    parts = np.ascontiguousarray(values).tobytes(), study.data.model_dump_json().encode()
    templates, settings = (hashlib.sha256(part).hexdigest()[:16] for part in parts)
    made = f"Dual regression; SHA-256 of templates {templates}, of settings {settings}"
    return {
        "Name": f"Networks of single participants, by the templates of {study.study}",
        "BIDSVersion": BIDS_VERSION,
        "DatasetType": "derivative",
        "GeneratedBy": [{"Name": GENERATOR, "Version": __version__, "Description": made}],
    }


def _write_person(
    target: Path, person: str, study: Study, space: Space, block: Array, templates: Array
) -> None:
    signal: GlobalSignal = "remove" if study.analysis.without_global_signal else "keep"
    series = reduce_series(block, None, signal)
    maps = person_maps(series, templates) * np.sqrt(len(templates))
    shared = courses(series, templates)
    parts = (person, f"task-{study.data.task}", f"space-{study.data.space}", _size_of(space))
    front = "_".join(filter(None, parts))
    stem = target / person / "func" / f"{front}_desc-{label(study.study)}"
    stem.parent.mkdir(parents=True, exist_ok=True)
    names = [f"network{k}" for k in range(1, templates.shape[1] + 1)]
    _write_maps(stem, study, space, maps, names)
    _write_table(stem.with_name(f"{stem.name}_timeseries.tsv"), names, shared.T)
    _write_table(stem.with_name(f"{stem.name}_relmat.tsv"), names, shared @ shared.T)


def _size_of(space: Space) -> str:
    """Return the entity for the size of voxels or vertices; empty if voxels are not cubes."""
    if space.mesh is not None:
        return f"den-{space.mesh.kind.density}"
    resolution = resolution_label(space.grid)
    return f"res-{resolution}" if resolution else ""


def _write_maps(stem: Path, study: Study, space: Space, maps: Array, names: list[str]) -> None:
    about: dict[str, Any] = {
        "Description": "The participant's map of each network by dual regression, one volume "
        "each; its root mean square is 1.",
        "Units": "arbitrary",
        "Networks": names,
    }
    painted = np.asarray(space.paint(maps), dtype=np.float32)
    if space.mesh is not None:
        write_surface(
            folder=stem.parent,
            name=stem.name,
            suffix="components",
            mesh=space.mesh,
            values=painted,
            labels=names,
            about=about,
        )
        return
    about |= about_image(study, space.grid)
    write_json(stem.with_name(f"{stem.name}_components.json"), about)
    write_image(stem, "components", space.grid, painted)


def _write_table(path: Path, names: list[str], rows: Array) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter="\t", lineterminator="\n")
    writer.writerow(names)
    writer.writerows([f"{value:.6g}" for value in row] for row in rows)
    write_text(path, text.getvalue())
