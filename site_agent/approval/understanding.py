"""Interpretation of a site's files by its readers, compared with the last approval.

The summary of the last approval is stored in the site's folder. It never leaves the site.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from consortium.base.atomic import DAMAGED, write_bytes
from consortium.base.regular_file import text_of
from consortium.errors import DataError
from site_agent.data.understood import Fact, Understanding
from site_agent.layout import UNDERSTOOD


def store_understanding(folder: Path, study: str, found: Understanding) -> None:
    """Store the facts that a site's staff saw when they approved a study.

    Raises OutputError if the site's folder can't be written.

    Parameters
    ----------
    folder : Path
        The site's.
    study : str
        Name of the study.
    found : Understanding
        Its facts are stored.
    """
    stored = {**_stored(folder), study: dict(found.facts)}
    text = json.dumps(stored, indent=1, ensure_ascii=False)
    write_bytes(folder / UNDERSTOOD, text.encode(), mode=0o600)


def facts_before(folder: Path, study: str) -> Mapping[str, str]:
    """Return a study's facts at its last approval, by topic; none if there was no approval.

    Parameters
    ----------
    folder : Path
        The site's.
    study : str
        Name of the study.
    """
    found = _stored(folder).get(study, {})
    return found if isinstance(found, dict) else {}


def show_facts(facts: tuple[Fact, ...], before: Mapping[str, str], out: Console) -> None:
    """Print a study's facts, with a mark where the last approval saw another finding."""
    if not facts:
        return
    table = Table.grid(padding=(0, 2))
    for topic, finding in facts:
        table.add_row(f"  {escape(topic)}", escape(finding))
    out.print("Read from the files:")
    out.print(table)
    for sentence in changes(facts, before):
        out.print(f"CHANGED: {sentence}", soft_wrap=True, markup=False)


def changes(facts: tuple[Fact, ...], before: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each finding that differs from the last approval's."""
    for topic, finding in facts:
        if topic in before and before[topic] != finding:
            yield f"{topic}: {finding}. At the last approval: {before[topic]}."


def _stored(folder: Path) -> dict[str, object]:
    """Return the stored facts; none if the file is damaged, as they serve only for comparison."""
    try:
        found = json.loads(text_of(folder / UNDERSTOOD))
    except (*DAMAGED, DataError):
        return {}
    return found if isinstance(found, dict) else {}
