"""Whether a published file holds the numbers that it should, in whatever format it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import nibabel
import numpy as np

from consortium.space.nifti import UNREADABLE
from consortium.verification.agreement import alike
from consortium.verification.replay import SLACK, relative

_APART = "versions"
"""Of `privacy_report.json`: what tells of the machine that wrote it."""
_OTHER = "cross_check"
"""Of the same: what another library says, comparable only within one version of it."""


def difference(published: Path, again: Path) -> str | None:
    """Say how a published file differs from one that was computed anew; None if it does not.

    Pictures and pages are not compared: what they show stands in the other files.
    """
    compare = next((act for end, act in _COMPARED.items() if again.name.endswith(end)), None)
    if compare is None:
        return None
    if not published.is_file():
        return "is missing, though it follows from what was released"
    try:
        same = compare(published, again)
    except (*UNREADABLE, KeyError, TypeError, AttributeError, RecursionError):
        return "can't be read"
    return None if same else "does not follow from what was released"


def _same_image(one: Path, other: Path) -> bool:
    first, second = nibabel.load(one), nibabel.load(other)
    numbers = (np.asarray(image.dataobj, dtype=np.float64) for image in (first, second))
    return np.allclose(first.affine, second.affine) and relative(*numbers) <= SLACK


def _same_json(one: Path, other: Path) -> bool:
    first, second = (json.loads(path.read_text(encoding="utf-8")) for path in (one, other))
    apart = [_APART]
    if isinstance(second.get(_OTHER), dict):
        apart += [_OTHER] if first[_OTHER]["version"] != second[_OTHER]["version"] else []
    for each in (first, second):
        for name in apart:
            each.pop(name, None)
    return alike(first, second, SLACK)


def _same_table(one: Path, other: Path) -> bool:
    first, second = (path.read_text(encoding="utf-8").splitlines() for path in (one, other))
    pairs = zip(first, second, strict=False)
    return len(first) == len(second) and all(_same_row(a, b) for a, b in pairs)


def _same_row(one: str, other: str) -> bool:
    first, second = one.split("\t"), other.split("\t")
    return len(first) == len(second) and all(map(_same_cell, first, second))


def _same_cell(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        first, second = float(one), float(other)
    except ValueError:
        return False
    return abs(first - second) <= SLACK * max(abs(first), abs(second))


_COMPARED: Mapping[str, Callable[[Path, Path], bool]] = {
    ".nii.gz": _same_image,
    ".nii": _same_image,
    ".json": _same_json,
    ".tsv": _same_table,
}
