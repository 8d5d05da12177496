"""Two results side by side in Python, as ``consortium compare`` writes them to a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import nibabel as nib

from consortium.errors import DataError
from consortium.python.result import StudyResult, data_frame
from consortium.python.scratch import is_surface
from consortium.report.comparison import (
    ComparedRun,
    Difference,
    differences,
    match_components,
    read_outcome,
)
from consortium.report.comparison_page import summarize_comparison

if TYPE_CHECKING:
    from pandas import DataFrame

_CONTRAST = "contrast"
_EFFECTS = ("view", "entry", "effect", "error")
_HEADS = ("first", "first name", "second", "second name", "correlation")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Matched components and differences of effects of two results."""

    components: DataFrame
    """A row for each pair: number and name of both, and their correlation."""
    effects: DataFrame
    """A row for each effect that both report: both values, their difference, its standard error if
    the runs have no participant in common, and z."""
    sentences: tuple[str, ...]
    """Summary."""

    def __repr__(self) -> str:
        """Return the summary."""
        return " ".join(self.sentences)


def compare(first: str | Path | StudyResult, second: str | Path | StudyResult) -> Comparison:
    """Compare two results, without privacy loss.

    Components are matched by the largest sum of absolute correlations. Effects are matched by the
    names of their contrast, view and entry.

    Parameters
    ----------
    first, second : str, Path or StudyResult
        Output folders, or results in memory. Maps on a mesh must be in folders.

    Raises
    ------
    OutputError
        If a folder has no result, or a damaged one.
    DataError
        If the maps of both can't be compared.

    Examples
    --------
    >>> import numpy as np
    >>> from consortium import PrivateGLM, compare
    >>> rng = np.random.default_rng(0)
    >>> design = {"group": ["a", "b"] * 400}
    >>> def outcomes(effect):
    ...     return rng.normal(size=(800, 2)) + effect * (np.arange(800) % 2)[:, None]
    >>> shared = {"groups": (400, 400), "epsilon": 8.0, "delta": 1e-6, "limits": (-8, 8)}
    >>> def fit(effect):
    ...     model = PrivateGLM("group", "group", {"group": ["a", "b"]}, deviation=1.0, **shared)
    ...     return model.fit(design, outcomes(effect)).result_
    >>> found = compare(fit(0.0), fit(1.0))
    >>> found.effects["difference"].round().tolist()
    [1.0, 1.0]
    """
    with TemporaryDirectory() as folder:
        one, other = (
            read_outcome(Path(given))
            if not isinstance(given, StudyResult)
            else _in_memory(given, Path(folder) / str(number))
            for number, given in enumerate((first, second))
        )
        matching = match_components(one, other)
    effects = sorted(differences(one, other), key=lambda each: -abs(each.z))
    pairs = [
        (
            pair.first,
            matching.names[0].get(pair.first, ""),
            pair.second,
            matching.names[1].get(pair.second, ""),
            pair.correlation,
        )
        for pair in matching.pairs
    ]
    heads = [{"value": "difference"}.get(each.name, each.name) for each in fields(Difference)]
    return Comparison(
        data_frame(_HEADS, pairs),
        data_frame([*heads, "z"], [(*astuple(each), each.z) for each in effects]),
        summarize_comparison(matching, effects, one, other),
    )


def _in_memory(result: StudyResult, folder: Path) -> ComparedRun:
    """Return a result in memory as a compared run; its maps go to a file in a folder."""
    maps = None
    about: Mapping[str, object] = {}
    if result.found_:
        image = result.components_img_
        if is_surface(image):
            raise DataError("compare: maps on a mesh must be in output folders. Name the folders.")
        about = result.images[result.components_key].about
        folder.mkdir()
        maps = folder / "components.nii.gz"
        nib.save(image, maps)
    return ComparedRun(
        name=result.privacy.report.study if result.privacy.report else "",
        report=result.privacy.report,  # type: ignore[arg-type]  # only the page reads it
        about=about,
        maps=maps,
        contrasts={
            name.removeprefix(_CONTRAST): _effects(table)
            for name, table in result.tables.items()
            if name.startswith(_CONTRAST) and {*_EFFECTS} <= {*table.columns}
        },
    )


def _effects(table: DataFrame) -> dict[tuple[str, str], tuple[float, float]]:
    rows = table[[*_EFFECTS]].dropna().itertuples(index=False, name=None)
    return {(str(view), str(entry)): (float(e), float(se)) for view, entry, e, se in rows}
