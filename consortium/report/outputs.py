"""The output folder of a finished study: its files, and the page that shows them.

The methods as a text to be copied into a paper, with a bibliography beside it.
"""

import re
from dataclasses import replace
from pathlib import Path

from consortium.base.atomic import write_text
from consortium.report.claims import write_claims
from consortium.report.component_files import write_component_maps
from consortium.report.dataset import DATASET, start_dataset
from consortium.report.finished import Finished
from consortium.report.image_sets import write_image_sets
from consortium.report.page import write_page
from consortium.report.privacy_report import write_privacy_report
from consortium.report.references import bibtex, citation_keys
from consortium.report.sections.methods import paragraphs
from consortium.report.sections.verdict import guarantee_text
from consortium.report.tables import write_tables
from consortium.report.viewer import write_viewer
from consortium.report.views import write_loadings

METHODS, BIBLIOGRAPHY = "methods.md", "references.bib"


def write_credit(folder: Path, run: Finished) -> tuple[Path, Path]:
    """Write the text in Markdown, which cites as Pandoc does, and its BibTeX.

    Raises
    ------
    OutputError
        If the folder can't be written.
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
    """Text that Markdown shows as it is, whatever a study file says."""
    return re.sub(r"([\\`*_<>@\[\]{}#|$^~])", r"\\\1", text)


def write_outputs(folder: Path, run: Finished, *, pages: bool = True) -> tuple[Path, ...]:
    """Write privacy report, maps, loadings, tables and the page.

    Files of an earlier run are replaced one by one; the page comes last.

    Parameters
    ----------
    pages : bool
        Whether the page with its pictures is written, too.

    Returns
    -------
    tuple of Path
        What people may want to open, relative to the folder.

    Raises
    ------
    OutputError
        If the folder can't be written.
    ValueError
        If two sets of maps would be one file.
    """
    write_privacy_report(folder / "privacy_report.json", run.report)
    start_dataset(folder, run)
    files = (
        *write_component_maps(folder, run),
        *write_image_sets(folder, run),
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
