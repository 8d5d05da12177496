"""Tables of a finished study as TSV files, each with a sidecar.

Source: BIDS 1.11, derivatives; the suffixes are not in the standard (see `dataset.NOT_IN_BIDS`).
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from csv import writer
from pathlib import Path
from typing import Any

from consortium.algorithms.base import Array, Table
from consortium.files.atomic import write_json, write_text
from consortium.report.bids import about_study, label
from consortium.report.cells import plain_table
from consortium.report.finished import Finished
from consortium.space.study_space import AnyViewSpace

Entries = tuple[Sequence[str], Sequence[tuple[str, ...]]]
"""Headings of the columns that name an entry, and the names of each."""


def write_tables(folder: Path, run: Finished) -> list[Path]:
    """Write the result's tables.

    Raises
    ------
    OutputError
        If the folder can't be written.
    """
    written = []
    for title, table in run.result.tables.items():
        name = f"desc-{label(run.study.study + run.study.algorithm + title)}_results"
        path = folder / "tables" / f"{name}.tsv"
        write_json(path.with_suffix(".json"), {"Description": table.caption})
        written.append(_write_tsv(path, table))
    return written


def write_loading_table(
    folder: Path, run: Finished, view: AnyViewSpace, entries: Entries, values: Array
) -> Path:
    """Write a view's loadings (D_v x K), a line for each entry and a column for each of K.

    Raises
    ------
    OutputError
        If the folder can't be written.
    """
    study = run.study
    path = folder / f"desc-{label(study.study + study.algorithm + view.name)}_loadings.tsv"
    write_json(path.with_suffix(".json"), about_loadings(run, view))
    heads, names = entries
    columns = (f"{run.result.captions.column}-{k + 1}" for k in range(values.shape[1]))
    rows: tuple[tuple[float | str, ...], ...] = tuple(
        (*name, *(float(value) for value in row)) for name, row in zip(names, values, strict=True)
    )
    return _write_tsv(path, Table("", (*heads, *columns), rows))


def about_loadings(run: Finished, view: AnyViewSpace) -> dict[str, Any]:
    """Sidecar of a view's loadings."""
    return {
        "Description": run.result.captions.meaning,
        "View": view.view.model_dump(mode="json"),
        **about_study(run.study, run.result.numbers),
    }


def _write_tsv(path: Path, table: Table) -> Path:
    text = io.StringIO()
    lines = writer(text, delimiter="\t", lineterminator="\n")
    plain = plain_table(table)
    lines.writerow(plain.columns)
    lines.writerows(plain.rows)
    return write_text(path, text.getvalue())
