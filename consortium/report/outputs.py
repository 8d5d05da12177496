"""The output folder of a finished study: its files, and the page that shows them.

The page is one HTML file with everything in it, no script and no link out.

The methods as a text to be copied into a paper, with a bibliography next to it.

The component maps of a study of images as files: maps, mask and noise, each with a sidecar.

On a mesh each is one file of CIFTI and a pair of GIFTI, without a mask.
"""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment
from numpy.typing import NDArray

from consortium.algorithms import REGISTRY
from consortium.base.atomic import write_json, write_text
from consortium.base.formatting import number
from consortium.report.bids import about_image, about_study, map_stem, write_image
from consortium.report.dataset import DATASET, start_dataset, write_claims
from consortium.report.finished import ComponentMaps, Finished
from consortium.report.image_sets import (
    about_map,
    surface_folder,
    surface_name,
    write_image_sets,
    write_mask,
    write_surface,
)
from consortium.report.privacy_report import write_privacy_report
from consortium.report.references import bibtex, citation_keys
from consortium.report.sections import EXPLANATIONS, FINDINGS, SUMMARY
from consortium.report.sections.methods import paragraphs
from consortium.report.sections.verdict import guarantee_text
from consortium.report.shown_maps import component_maps, map_names, set_maps
from consortium.report.tables import cell_json, write_tables
from consortium.report.templating import plain_environment
from consortium.report.viewer import write_viewer
from consortium.report.views import write_loadings
from consortium.space.mesh import Mesh
from consortium.study.spec import Study

METHODS = "methods.md"
BIBLIOGRAPHY = "references.bib"
NAME = "report.html"
COMPONENTS = "components"
"""End of the names of images of networks."""
_PICTURE = r"data:image/webp;base64,[A-Za-z0-9+/=]+"


def write_credit(folder: Path, run: Finished) -> tuple[Path, Path]:
    """Write the text in Markdown, which cites as Pandoc does, and its BibTeX.

    Raises OutputError if the folder can't be written.
    """
    found = citation_keys(run.study, run.report, images=run.has_images)
    cited = [
        f"{what} {'; '.join(f'@{key}' for key in keys)}." for what, keys in found.items() if keys
    ]
    texts = map(escape_markdown, (*paragraphs(run), guarantee_text(run.report)))
    text = (*texts, " ".join(cited))
    keys = list(dict.fromkeys(key for each in found.values() for key in each))
    return (
        write_text(folder / METHODS, "\n\n".join(filter(None, text)) + "\n"),
        write_text(folder / BIBLIOGRAPHY, bibtex(keys)),
    )


def escape_markdown(text: str) -> str:
    """Escape text for Markdown, whatever a study file contains."""
    return re.sub(r"([\\`*_<>@\[\]{}#|$^~])", r"\\\1", text)


def write_outputs(folder: Path, run: Finished, *, pages: bool = True) -> tuple[Path, ...]:
    """Write privacy report, maps, loadings, tables and the page.

    Files of an earlier run are replaced one by one; the page comes last. Raises OutputError if the
    folder can't be written. Raises ValueError if two sets of maps would be one file.

    Parameters
    ----------
    pages : bool
        Whether the page with its pictures is also written.

    Returns
    -------
    tuple of Path
        Files that users may open, relative to the folder.
    """
    write_privacy_report(folder / "privacy_report.json", run.report)
    start_dataset(folder, run)
    files = (
        *write_component_maps(folder, run),
        *write_image_sets(folder, run, _names_of_networks(run)),
        *write_loadings(folder, run),
        *write_tables(folder, run),
    )
    written = tuple(path.relative_to(folder) for path in files)
    if pages:
        viewer = write_viewer(folder, run)
        page = write_page(folder, replace(run, files=written))
        more = (page, *write_credit(folder, run), *([viewer] if viewer else []))
        write_claims(
            folder, run, (*written, *DATASET, *(path.relative_to(folder) for path in more))
        )
    return written


def _names_of_networks(run: Finished) -> dict[str, dict[str, list[str]]]:
    """Return the field of a sidecar with the maps' names, by the keys of sets of networks."""
    return {
        key: map_names(run, set_maps(run, key, images))
        for key, images in run.result.images.items()
        if images.suffix == COMPONENTS
    }


def write_component_maps(folder: Path, run: Finished) -> list[Path]:
    """Write maps and mask, and the privacy noise of each voxel where it is known.

    Raises OutputError if the folder can't be written.

    Returns
    -------
    list of Path
        The images; none if the study has no component maps.
    """
    if run.components is None:
        return []
    study = run.study
    grid = run.components.grid
    components = run.components.components
    if isinstance(grid, Mesh):
        return _write_on_mesh(folder, run, run.components, grid)
    place = folder / f"tpl-{study.data.space}"
    maps = place / "func" / map_stem(study, grid)
    about = _about_maps(run, run.components) | about_image(study, grid)
    images: list[tuple[Path, str, NDArray[Any], dict[str, Any]]] = [
        (maps, COMPONENTS, components.maps.astype(np.float32), about),
    ]
    noise = run.components.noise
    floor = run.components.floor
    if noise is not None and floor is not None:
        floor = floor.astype(np.float32)
        noise_about = _about_noise(study, noise, floor) | about_image(study, grid)
        images.append((maps, "noise", floor, noise_about))
    for stem, suffix, _, sidecar in images:
        write_json(stem.with_name(f"{stem.name}_{suffix}.json"), sidecar)
    files = [write_image(stem, suffix, grid, values) for stem, suffix, values, _ in images]
    return [files[0], write_mask(folder, study, grid), *files[1:]]


def _write_on_mesh(folder: Path, run: Finished, maps: ComponentMaps, mesh: Mesh) -> list[Path]:
    """Write a file of CIFTI and a pair of GIFTI of the maps, and of the noise if it is known."""
    name = surface_name(run.study, mesh, "")
    labels = [f"component {r + 1}" for r in range(len(maps.components))]
    content = maps.components.maps, labels, _about_maps(run, maps)
    place = surface_folder(folder, mesh)
    written = write_surface(place, name, COMPONENTS, mesh, *content)
    noise = maps.noise
    floor = maps.floor
    if noise is not None and floor is not None:
        about = _about_noise(run.study, noise, floor)
        written += write_surface(
            folder=place,
            name=name,
            suffix="noise",
            mesh=mesh,
            values=floor,
            labels=labels,
            about=about,
        )
    return written


def _about_maps(run: Finished, maps: ComponentMaps) -> dict[str, Any]:
    """Return the sidecar of the maps: entry r of every list describes volume r of the image."""
    components = maps.components
    return {
        "Description": "Group component maps over the consortium's sites, one volume each.",
        "Units": "robust z-score",
        "FourthDimension": "component, in descending order of explained share",
        "SignConvention": "arbitrary in the analysis; fixed to make the heavier tail of a map's "
        "values positive",
        "Scale": "(value - median) / noise floor; the noise floor is 1.4826 times the median "
        "absolute deviation over the mask (the standard deviation where that is zero)",
        "NoiseFloor": [float(noise) for noise in components.noise],
        "Found": [maps.is_found(r) for r in range(len(components))],
        "ExplainedShare": [cell_json(maps.share(r)) for r in range(len(components))],
        "ExplainedShareOf": "the data's variance"
        if maps.shares
        else "the variance of all components together",
        "Peaks": [[round(float(mm), 2) for mm in peak] for peak in components.peaks],
        "PeaksUnits": "mm",
        "PeakScores": [float(height) for height in components.heights],
        **map_names(run, component_maps(maps)),
        **about_map(run, maps.grid),
        **about_study(run.study, run.result.numbers),
    }


def _about_noise(
    study: Study, noise: NDArray[np.float64], floor: NDArray[np.floating]
) -> dict[str, Any]:
    return {
        "Description": "Standard deviation of the privacy noise in each voxel of each component "
        "map, in the units of that map. A map divided by it has privacy noise of "
        "size 1. The sampling error is additional.",
        "Units": "robust z-score",
        "MedianNoise": [float(value) for value in np.median(floor, axis=0)],
        "MedianNoiseBeforeScaling": float(np.median(noise)),
        "MapsSmoothing": study.data.maps_smoothing,
        "MapsSmoothingUnits": "mm FWHM, after the release",
    }


def write_page(folder: Path, run: Finished) -> Path:
    """Write `report.html`, whatever was analysed.

    Raises OutputError if the folder can't be written.

    Parameters
    ----------
    folder : Path
        Output folder; an earlier page is replaced.
    """
    templates = _environment()
    summary, findings, explanations = (
        [section for section in (make(run) for make in makes) if section is not None]
        for makes in (SUMMARY, FINDINGS, EXPLANATIONS)
    )
    page = templates.get_template("page.html.j2").render(
        _frame(run), summary=summary, findings=findings, explanations=explanations
    )
    return write_text(folder / NAME, page)


def first_picture(folder: Path) -> str:
    """Return the page's first picture as the address of an image; empty if it has none."""
    found = re.search(_PICTURE, (folder / NAME).read_text(encoding="utf-8"))
    return found[0] if found else ""


def _frame(run: Finished) -> dict[str, Any]:
    """Return the parts around the sections."""
    study = run.study
    day = run.day
    views = ", ".join(view.name for view in study.features)
    maps = run.components
    return {
        "study": study,
        "title": study.heading,
        "day": f"{day.day} {day:%B %Y}",
        "algorithm": REGISTRY[study.algorithm].title,
        "source": views or f"{study.data.task}, {study.data.space}",
        "subject": "group maps" if maps else "group results",
        "heading": "Components" if maps else "Findings",
        "place": ("grid", maps.grid.digest) if maps else ("space", run.space.digest),
    }


@cache  # compiling takes longer than filling in
def _environment() -> Environment:
    """Build the environment of the page's templates."""
    found = plain_environment("consortium.report")
    found.filters |= {"per_site": _per_site, "unbroken": _unbroken, "value": _value}
    return found


def _per_site(value: float | tuple[float, ...]) -> str:
    """Return one number, or the range over the sites."""
    if not isinstance(value, tuple):
        return number(value)
    low = number(min(value))
    high = number(max(value))
    return low if low == high else f"{low}–{high}"


def _unbroken(text: str) -> str:
    """Keep a symbol with its value and a value with its unit on one line."""
    return text.replace(" = ", "\u00a0=\u00a0").replace(" %", "\u00a0%")


def _value(value: object) -> str:
    """Format a parameter or number of the analysis."""
    return f"{value:.5g}" if isinstance(value, float) else str(value)
