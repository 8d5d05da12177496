"""Reading the columns of a confounds table that a study regresses out."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consortium.base.formatting import count
from consortium.errors import DataError
from site_agent.data.tsv import read_lines

OUTLIERS = ("motion_outlier*", "non_steady_state_outlier*")
"""Columns of which fMRIPrep writes one for each such volume: who has none, has no column."""


def read_confounds(path: Path, patterns: Sequence[str], volumes: int) -> NDArray[np.float64]:
    """Read confounds as a matrix.

    Parameters
    ----------
    path : Path
        A TSV table with a header line and one line per volume.
    patterns : sequence of str
        Names of columns; one that ends in ``*`` stands for all that begin so. Of `OUTLIERS` there
        need not be any.
    volumes : int
        T, lines that there must be.

    Returns
    -------
    array, shape (T, C)
        Each column once, in the order of the patterns. A first line of ``n/a``, which fMRIPrep
        gives to derivatives, is 0.

    Raises
    ------
    DataError
        If a column or a line is missing, or a value after the first line is not a number.
    """
    rows = read_lines(path, "the confounds that fMRIPrep wrote")
    header, lines = rows[0], rows[1:]
    if len(lines) != volumes:
        msg = f"{path} has {count(len(lines), 'line')} for {count(volumes, 'volume')}; "
        raise DataError(msg + "give the confounds of this very run.")
    names = dict.fromkeys(name for item in patterns for name in _matches(path, header, item))
    columns = [_column(path, lines, header.index(name), name) for name in names]
    return np.array(columns, dtype=np.float64).reshape(len(columns), volumes).T


def _matches(path: Path, header: Sequence[str], pattern: str) -> list[str]:
    prefix = pattern.removesuffix("*")
    if pattern.endswith("*"):
        found = [name for name in header if name.startswith(prefix)]
    else:
        found = [name for name in header if name == pattern]
    if not found and pattern not in OUTLIERS:
        msg = f"{path} has no column '{pattern}'; add it, or ask for a study without it."
        raise DataError(msg)
    return found


def _column(
    path: Path, lines: Sequence[Sequence[str]], index: int, name: str
) -> NDArray[np.float64]:
    values = np.array([_number(line[index]) if index < len(line) else np.nan for line in lines])
    if len(values) and np.isnan(values[0]):
        values[0] = 0.0
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        msg = f"{path} has no number in column '{name}' for volume {bad[0] + 1}; "
        raise DataError(msg + "complete the table or leave the column out of the study.")
    return values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan
