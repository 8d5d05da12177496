"""Results of feature studies as files, view by view: images, and tables of channels or columns.

Source: BIDS 1.11, derivatives; neither suffix is in the standard (see `maps.NOT_IN_BIDS`).
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from csv import writer
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Result, Table
from consortium.files.atomic import write_json, write_text
from consortium.report.bids import (
    NOT_IN_BIDS,
    describe,
    label,
    map_stem,
    strict,
    voxel_text,
    write_image,
)
from consortium.report.cells import plain_table
from consortium.space.study_space import Space, ViewSpace
from consortium.study.spec import Study
from consortium.views.eeg import EegView
from consortium.views.fmri import FmriView

Array = NDArray[Any]


def split_views(space: Space, values: Array) -> list[tuple[ViewSpace, Array]]:
    """Each view with its rows of the loadings.

    Parameters
    ----------
    space : Space
    values : array, shape (D, K)
    """
    stops = np.cumsum([view.size for view in space.views])[:-1]
    return list(zip(space.views, np.split(values, stops), strict=True))


def paint_view(space: Space, view: ViewSpace, values: Array) -> Array:
    """Loadings of a view of images as values of the grid's voxels: D_v x K to V x K.

    A measure of components is painted as its components' maps, each times its loading.
    """
    rows = values if view.components is None else view.components @ values
    return np.asarray(space.paint(rows))


def write_results(folder: Path, study: Study, space: Space, result: Result) -> list[Path]:
    """Write loadings and tables of a feature study, each with a sidecar.

    Parameters
    ----------
    folder : Path
        Output folder; files of an earlier run are replaced.
    study : Study
    space : Space
        The study's.
    result : Result
        Its ``loadings`` (or else its ``maps``) are over all views' entries; both may be empty.

    Returns
    -------
    list of Path
        What people may want to open, relative to the folder.

    Raises
    ------
    OutputError
        If the folder can't be written.
    """
    write_json(folder / "dataset_description.json", describe(study))
    write_text(folder / ".bidsignore", "\n".join(NOT_IN_BIDS) + "\n")
    written = []
    name = result.loadings or result.maps
    parts = split_views(space, result.arrays[name]) if name else []
    for view, values in parts:
        if isinstance(view.view, FmriView):
            written.append(_write_images(folder, study, space, view, values, result))
        else:
            written.append(_write_table(folder, study, view, values, result))
    for title, table in result.tables.items():
        path = folder / "tables" / f"desc-{label(study.study + study.algorithm + title)}"
        write_json(path.with_name(f"{path.name}_results.json"), {"Description": table.caption})
        written.append(_tsv(path.with_name(f"{path.name}_results.tsv"), table))
    return [path.relative_to(folder) for path in written]


def entry_table(view: ViewSpace, values: Array, column: str) -> Table:
    """Loadings of a view that is no image: one line for each entry.

    EEG has a column of channels and one of times in s, or of bands.
    """
    count = values.shape[1]
    headings = tuple(f"{column}-{k + 1}" for k in range(count))
    numbers = [tuple(float(value) for value in row) for row in values]
    if not isinstance(view.view, EegView):
        labels: list[tuple[str, ...]] = [(text,) for text in view.labels]
        heads: tuple[str, ...] = ("entry",)
    else:
        labels = [(channel, inner) for channel, _, inner in (x.partition("@") for x in view.labels)]
        heads = ("channel", "time" if view.view.measure == "erp" else "band")
    rows: tuple[tuple[float | int | str, ...], ...]
    rows = tuple((*one, *other) for one, other in zip(labels, numbers, strict=True))
    return Table("", (*heads, *headings), rows)


def _write_images(
    folder: Path, study: Study, space: Space, view: ViewSpace, values: Array, result: Result
) -> Path:
    stem = folder / f"tpl-{study.data.space}" / "func" / map_stem(study, space.grid, view.name)
    about = {
        **_about(study, view, result),
        "SpatialReference": study.data.space,
        "Resolution": voxel_text(space.grid),
        "FourthDimension": result.captions.column,
    }
    write_json(stem.with_name(f"{stem.name}_loadings.json"), about)
    painted = paint_view(space, view, values).astype(np.float32)
    return write_image(stem, "loadings", space.grid, painted)


def _write_table(
    folder: Path, study: Study, view: ViewSpace, values: Array, result: Result
) -> Path:
    kind = "eeg" if isinstance(view.view, EegView) else "tables"
    stem = f"desc-{label(study.study + study.algorithm + view.name)}"
    write_json(folder / kind / f"{stem}_loadings.json", _about(study, view, result))
    path = folder / kind / f"{stem}_loadings.tsv"
    return _tsv(path, entry_table(view, values, result.captions.column))


def _about(study: Study, view: ViewSpace, result: Result) -> Mapping[str, Any]:
    return {
        "Description": result.captions.meaning,
        "View": view.view.model_dump(mode="json"),
        "Study": study.study,
        "StudyDigest": study.digest,
        "Analysis": study.algorithm,
        "AnalysisParameters": study.analysis.model_dump(mode="json"),
        "Numbers": strict(result.numbers),
    }


def _tsv(path: Path, table: Table) -> Path:
    text = io.StringIO()
    lines = writer(text, delimiter="\t", lineterminator="\n")
    plain = plain_table(table)
    lines.writerow(plain.columns)
    lines.writerows(plain.rows)
    return write_text(path, text.getvalue())
