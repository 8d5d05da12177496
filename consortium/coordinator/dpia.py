"""A data protection impact assessment, filled in from a study and its plan, as page and as text."""

import re
from pathlib import Path

from consortium import __version__
from consortium.base.atomic import write_text
from consortium.coordinator.dpia_figures import figures
from consortium.coordinator.dpia_parts import AssessmentPart, Rows, parts
from consortium.errors import StudyError
from consortium.report.templating import plain_environment
from consortium.study.plan import Plan

_MARKED = re.compile(r"[\\`*_<>\[\]|]")
BLANK = "…"
"""Where people write."""


def write_dpia(folder: Path, plan: Plan, volumes: int) -> tuple[Path, Path]:
    """Write ``dpia.html`` and ``dpia.md``, from the study file and public sizes alone.

    Parameters
    ----------
    volumes : int
        T, volumes of one person.

    Raises
    ------
    StudyError
        If the study protects nobody, so that there is nothing to assess.
    OutputError
        If the folder can't be written.
    """
    study = plan.study
    if study.privacy.scheme == "none":
        raise StudyError(
            f"'{study.study}' has privacy.scheme: none, which protects no participant and runs in "
            "a simulation only; choose cape, secure-sum or local before it is assessed."
        )
    made = parts(plan, figures(plan, volumes))
    page = plain_environment("consortium.report").get_template("dpia.html.j2")
    html = page.render(study=study, parts=made, version=__version__, blank=BLANK)
    return (
        write_text(folder / "dpia.html", html),
        write_text(folder / "dpia.md", _markdown(plan, made)),
    )


def _markdown(plan: Plan, made: tuple[AssessmentPart, ...]) -> str:
    study = plan.study
    lines = [
        f"# Data protection impact assessment: {_plain(study.heading)}\n",
        f"Study {study.study}, digest {study.digest}; cape-consortium {__version__}.\n",
    ]
    for part in made:
        lines.append(f"## {part.heading}\n")
        lines += [f"{_plain(text)}\n" for text in part.paragraphs]
        lines += [_table(part.table)] if part.table else []
        lines += [f"- [ ] {_plain(asked)}: {BLANK}" for asked in part.asked]
        lines += [""] if part.asked else []
    return "\n".join(lines)


def _table(rows: Rows) -> str:
    cells = [rows.heads, ("---",) * len(rows.heads), *(map(_plain, line) for line in rows.lines)]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"


def _plain(text: str) -> str:
    """Text that a reader of Markdown sees as it is."""
    return _MARKED.sub(r"\\\g<0>", text)
