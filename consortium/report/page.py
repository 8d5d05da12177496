"""The page that people read: one HTML file with everything in it, no script and no link out."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from consortium.algorithms import REGISTRY
from consortium.base.atomic import write_text
from consortium.base.formatting import number
from consortium.report.finished import Finished
from consortium.report.sections import EXPLANATIONS, FINDINGS, SUMMARY
from consortium.report.templating import plain_environment

NAME = "report.html"
_PICTURE = r"data:image/webp;base64,[A-Za-z0-9+/=]+"


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
    """What stands around the sections."""
    study, day = run.study, run.day
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
    """One number, or the range over the sites."""
    if not isinstance(value, tuple):
        return number(value)
    low, high = number(min(value)), number(max(value))
    return low if low == high else f"{low}–{high}"


def _unbroken(text: str) -> str:
    """Keep a symbol with its value and a value with its unit on one line."""
    return text.replace(" = ", "\u00a0=\u00a0").replace(" %", "\u00a0%")


def _value(value: object) -> str:
    """Format a parameter or number of the analysis."""
    return f"{value:.5g}" if isinstance(value, float) else str(value)
