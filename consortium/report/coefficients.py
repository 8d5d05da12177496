"""Coefficients that a finished `glm` released, read from the tables of its folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from consortium.base.array import Array
from consortium.base.atomic import DAMAGED
from consortium.base.tables import read_rows
from consortium.errors import OutputError

_WITHHELD = "n/a"


@dataclass(frozen=True)
class CoefficientEntry:
    """Name of a coefficient, and for a level its name and that of its reference."""

    name: str
    level: str
    reference: str


@dataclass(frozen=True, eq=False)
class ReleasedCoefficients:
    """All coefficients that a finished `glm` released, from its run folder."""

    labels: tuple[tuple[str, str], ...]
    """View and entry of every outcome."""
    values: Array
    """V x K."""
    variances: Array
    """Sampling variance of the first coefficient of every outcome, length V."""
    chance: Array
    noise: Array
    """Covariances of the coefficients, K x K: from sampling, relative to ``variances``, and from
    privacy noise."""
    inverse_moment: Array | None
    """Inverse second moment of the columns within sites, K x K, over its first entry; None if it
    was not released."""
    moment_noise: Array | None
    """Noise variance of each entry of that moment, K x K, times the square of the inverse's first
    entry; None if ``inverse_moment`` is, and its error is then part of ``noise``."""
    entries: tuple[CoefficientEntry, ...]
    """Length K."""
    freedom: float
    """Degrees of freedom of ``variances``."""
    relative_divisor_variance: float
    """Variance of the number that all coefficients were divided by, over its square: the table's
    column ``doubt``."""
    names: dict[str, int | None]
    """Coefficient of each name; a reference level has none."""
    shared: dict[str, str]
    """Columns by their levels whose name denotes another coefficient."""


def read_released(folder: Path) -> ReleasedCoefficients:
    """Read the tables of coefficients of a run.

    Raises OutputError if there are none, or they are damaged.
    """
    single, errors = map(_rows, coefficient_files(folder))
    try:
        found = released_coefficients(single, errors)
        _check_numbers(found)
    except DAMAGED as error:
        raise OutputError(f"The tables of coefficients in {folder} are damaged.") from error
    return found


def released_coefficients(
    single: Sequence[Mapping[str, Any]], errors: Sequence[Mapping[str, Any]]
) -> ReleasedCoefficients:
    """Read two tables, of coefficients and of their errors: a mapping for each row."""
    coefficients = [row["coefficient"] for row in errors]
    single = [row for row in single if row["chance"] != _WITHHELD]
    names, shared = _names(errors)
    refits = f"moment {coefficients[0]}" in errors[0]
    return ReleasedCoefficients(
        labels=tuple((row["view"], row["entry"]) for row in single),
        values=_matrix(single, coefficients),
        variances=_matrix(single, ["chance"])[:, 0],
        chance=_block("chance", errors, coefficients),
        noise=_block("noise", errors, coefficients),
        inverse_moment=_block("design", errors, coefficients) if refits else None,
        moment_noise=_block("moment", errors, coefficients) if refits else None,
        entries=tuple(
            CoefficientEntry(row["coefficient"], row["level"] or "", row["reference"] or "")
            for row in errors
        ),
        freedom=float(errors[0]["freedom"]),
        relative_divisor_variance=float(errors[0]["doubt"]),
        names=names,
        shared=shared,
    )


def coefficient_files(folder: Path) -> tuple[Path, ...]:
    """Return the paths of the tables of coefficients and of their errors.

    Raises OutputError if the run has none.
    """
    names = ("coefficients", "coefficientserrors")
    found = [sorted((folder / "tables").glob(f"desc-*glm{name}_results.tsv")) for name in names]
    if any(len(each) != 1 for each in found):
        raise OutputError(
            f"{folder} has no table of all coefficients. Run a 'glm' with contrasts: all."
        )
    return tuple(path for (path,) in found)


def _rows(path: Path) -> list[dict[str, str]]:
    rows = read_rows(path)
    if not rows:
        raise OutputError(f"{path} has no lines. Ask for the run's folder again.")
    return rows


def _check_numbers(found: ReleasedCoefficients) -> None:
    """Raise a ValueError for what no run writes."""
    scales = np.array([found.freedom, found.relative_divisor_variance])
    blocks = (found.chance, found.noise, found.inverse_moment, found.moment_noise)
    for each in (found.values, found.variances, scales, *blocks):
        if each is not None and not np.isfinite(each).all():
            raise ValueError("a number is not finite")
    if not (found.variances.min() > 0 and found.freedom > 0 <= found.relative_divisor_variance):
        raise ValueError("a variance is none")


def _block(kind: str, errors: Sequence[Mapping[str, Any]], coefficients: list[str]) -> Array:
    return _matrix(errors, [f"{kind} {name}" for name in coefficients])


def _matrix(rows: Sequence[Mapping[str, Any]], columns: list[str]) -> Array:
    return np.array([[float(row[name]) for name in columns] for row in rows])


def _names(errors: Sequence[Mapping[str, Any]]) -> tuple[dict[str, int | None], dict[str, str]]:
    """Return coefficients by labels and by levels that only one column has; and shared names."""
    found: dict[str, int | None] = {}
    levels: dict[str, set[tuple[str, int | None]]] = {}
    for number, row in enumerate(errors):
        column = row["coefficient"].partition("=")[0]
        for level, place in ((row["level"], number), (row["reference"], None)):
            if level:
                found[f"{column}={level}"] = place
                levels.setdefault(level, set()).add((column, place))
    found |= {row["coefficient"]: number for number, row in enumerate(errors)}
    single = {level: next(iter(each)) for level, each in levels.items() if len(each) == 1}
    shared = {
        level: column
        for level, (column, place) in single.items()
        if level in found and found[level] != place
    }
    return {level: place for level, (_, place) in single.items()} | found, shared
