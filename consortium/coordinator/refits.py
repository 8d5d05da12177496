"""Folder of the refits of one run: questions, tables, and a page.

All refits of a run count together when false discoveries are limited, with the run's own contrast.
So each new refit also writes the tables of the earlier ones again.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count as numbers_from
from pathlib import Path

import numpy as np

from consortium.algorithms.base import Table
from consortium.base.array import Array
from consortium.base.atomic import DAMAGED, write_json, write_text
from consortium.base.formatting import count, percent
from consortium.base.frozen_model import FrozenModel
from consortium.coordinator.contrast import effects_along
from consortium.coordinator.refit import FittedModel, Refit, discovery_rates, fit_again
from consortium.errors import OutputError
from consortium.report.coefficients import (
    ReleasedCoefficients,
    coefficient_files,
    read_released,
)
from consortium.report.tables import cell_text, tab_separated
from consortium.report.templating import plain_environment

RECORD = "refits.json"
PAGE = "refits.html"
RATE = 0.05
"""False discovery rate at which an outcome counts as found."""


class _Record(FrozenModel):
    run: str
    """SHA-256 of the run's tables of coefficients."""
    refits: tuple[Refit, ...] = ()


@dataclass(frozen=True, eq=False)
class WrittenRefit:
    """A refit and where it was written."""

    number: int
    table: Table
    path: Path
    page: Path


def usual_folder(output: Path) -> Path:
    """Return the folder of a run's refits: next to the run's, which `verify` compares."""
    return output.resolve().with_name(f"{output.resolve().name}-refits")


def write_refit(output: Path, folder: Path, asked: Refit) -> WrittenRefit:
    """Compute a refit, and write it with all earlier ones of the run.

    Raises StudyError if the run's coefficients do not answer it. Raises OutputError if the folder
    has refits of another run, or a file is missing or damaged.
    """
    released = read_released(output)
    run = _digest(output)
    refits = _earlier(folder, run)
    new = fit_again(released, asked)
    if asked not in refits:
        refits = (*refits, asked)
    models = [new if each == asked else fit_again(released, each) for each in refits]
    tables = _tables(refits, models, _own(released))
    paths = [folder / f"refit-{number}.tsv" for number in range(1, len(tables) + 1)]
    for path, table in zip(paths, tables, strict=True):
        write_text(path, tab_separated(table))
        write_json(path.with_suffix(".json"), {"Description": table.caption})
    page = write_text(folder / PAGE, _page(output.resolve().name, refits, tables))
    write_json(folder / RECORD, _Record(run=run, refits=refits).model_dump(mode="json"))
    place = refits.index(asked)
    return WrittenRefit(place + 1, tables[place], paths[place], page)


def _own(released: ReleasedCoefficients) -> Array:
    """Return p of the run's own contrast, of its first coefficient."""
    first = np.zeros(released.values.shape[1])
    first[0] = 1.0
    return effects_along(released, first).p


def _tables(refits: Sequence[Refit], models: Sequence[FittedModel], own: Array) -> list[Table]:
    tests = len(own) + sum(len(model.p) for model in models)
    found = zip(numbers_from(1), refits, models, discovery_rates(models, own), strict=False)
    return [
        model.table(
            f"Refit {number} of {len(refits)}: {refit_text(asked)}. Effects of the first column on "
            "each outcome that is not withheld, in standard deviations within groups and sites, "
            "with 95 % intervals. Errors include sampling and privacy noise. q counts the "
            f"{tests:,} tests of the run's own contrast and of all refits in this folder.",
            q,
        )
        for number, asked, model, q in found
    ]


def refit_text(asked: Refit) -> str:
    """Return a refit as the options of the command `refit`."""
    more = [f"merge {each}" for each in asked.merge]
    more += [f"reference {each}" for each in asked.reference]
    more += [f"outcomes {each}" for each in asked.outcomes]
    return ", ".join([asked.formula, *more])


def first_sentence(table: Table) -> str:
    """Return the sentence on how many outcomes of refits differ."""
    place = table.columns.index("q")
    found = sum(float(str(row[place])) <= RATE for row in table.rows)
    tests = count(len(table.rows), "effect")
    return f"{found} of {tests} at a false discovery rate of {percent(RATE)}."


def _page(run: str, refits: Sequence[Refit], tables: Sequence[Table]) -> str:
    models = [
        {
            "name": refit_text(asked),
            "sentence": first_sentence(table),
            "columns": table.columns,
            "rows": [[cell_text(cell) for cell in row] for row in table.rows],
        }
        for asked, table in zip(refits, tables, strict=True)
    ]
    page = plain_environment("consortium.report").get_template("refits.html.j2")
    return page.render(run=run, models=models)


def _earlier(folder: Path, run: str) -> tuple[Refit, ...]:
    """Return the refits in a folder.

    Raises OutputError if they are of another run, or the folder has other files.
    """
    path = folder / RECORD
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return ()
    if not path.is_file():
        raise OutputError(
            f"{folder}: must be a new folder or one of refits, and has other files. Name another "
            "folder."
        )
    try:
        found = _Record.model_validate_json(path.read_bytes())
    except DAMAGED as error:
        raise OutputError(
            f"{path}: must be the record of earlier refits, and is damaged. Restore it, since all "
            "refits count together."
        ) from error
    if found.run != run:
        raise OutputError(
            f"{folder}: must have refits of this run only, and has those of another. Name another "
            "folder."
        )
    return found.refits


def _digest(output: Path) -> str:
    """Return SHA-256 of the tables of coefficients."""
    digest = hashlib.sha256()
    for path in coefficient_files(output):
        digest.update(path.read_bytes())
    return digest.hexdigest()
