"""The methods as a text to be copied into a paper, with a bibliography beside it."""

import re
from pathlib import Path

from consortium.base.atomic import write_text
from consortium.report.finished import Finished
from consortium.report.references import bibtex, citation_keys
from consortium.report.sections.methods import paragraphs
from consortium.report.sections.verdict import guarantee_text

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
    told = map(escaped, (*paragraphs(run), guarantee_text(run.report)))
    text = (*told, " ".join(cited))
    keys = list(dict.fromkeys(key for each in found.values() for key in each))
    return (
        write_text(folder / METHODS, "\n\n".join(filter(None, text)) + "\n"),
        write_text(folder / BIBLIOGRAPHY, bibtex(keys)),
    )


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, whatever a study file says."""
    return re.sub(r"([\\`*_<>@\[\]{}#|$^~])", r"\\\1", text)
