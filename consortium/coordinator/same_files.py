"""How far two files of an output folder are apart, in whatever format they are."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from consortium.errors import DataError
from consortium.space.mesh import DAMAGED, open_gifti
from consortium.space.nifti import open_image
from consortium.space.surface_templates import DENSE, read_dense
from consortium.verification.replay import SLACK

TURNED = "sign or order of maps"
"""A part that is endlessly far apart if maps agree but for these."""
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def is_numeric(name: str) -> bool:
    """Whether a file holds numbers for machines, and no page for people."""
    return name.endswith(tuple(_COMPARED))


def relative_distance(one: Path, other: Path) -> dict[str, float]:
    """How far numbers of two files are apart, over the largest: for each map or column.

    Infinite where words, shapes or whole numbers differ, or a file can't be read; rows that are
    missing are missing from every column.
    """
    compare = next(act for end, act in _COMPARED.items() if other.name.endswith(end))
    try:
        found = compare(one, other)
    except (*DAMAGED, DataError, RecursionError):
        return {"the whole": np.inf}
    return {part: far if np.isfinite(far) else np.inf for part, far in found.items()}


def texts_apart(one: str, other: str) -> float:
    """How far two texts are apart: infinite in words, else the largest relative step in a number.

    Numbers that differ by one in their last digit are equal.
    """
    if one == other:
        return 0.0
    if _NUMBER.split(one) != _NUMBER.split(other):
        return np.inf
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    return max((_printed_apart(a, b) for a, b in pairs if a != b), default=0.0)


def _printed_apart(one: str, other: str) -> float:
    if one.lstrip("+-").isdigit() and other.lstrip("+-").isdigit():
        return np.inf  # a count, and no rounded number
    try:
        first, second = Decimal(one), Decimal(other)
        last = max(Decimal(1).scaleb(int(each.as_tuple().exponent)) for each in (first, second))
        off, size = abs(first - second) - last, max(abs(first), abs(second))
        return float(off / size) if off > 0 else 0.0
    except ArithmeticError:  # a number of any length may stand there
        return np.inf


# -- images -----------------------------------------------------------------------------------


def _images(one: Path, other: Path) -> dict[str, float]:
    first, second = open_image(one), open_image(other)
    a, b = (np.asarray(image.dataobj, dtype=np.float64) for image in (first, second))
    if a.shape != b.shape or not np.allclose(first.affine, second.affine):
        return {"shape or place": np.inf}
    return _turned_apart(*(e.reshape(-1, e.shape[3] if e.ndim > 3 else 1).T for e in (a, b)))


def _dense(one: Path, other: Path) -> dict[str, float]:
    """Compare maps of CIFTI."""
    (first, a), (second, b) = read_dense(one), read_dense(other)
    if a.shape != b.shape or first.header.get_axis(1) != second.header.get_axis(1):
        return {"shape or place": np.inf}
    return _turned_apart(a.astype(np.float64), b.astype(np.float64))


def _halves(one: Path, other: Path) -> dict[str, float]:
    """Compare maps of GIFTI, which have no number in the medial wall."""
    images = (open_gifti(path) for path in (one, other))
    a, b = (np.array([e.data for e in image.darrays], dtype=np.float64) for image in images)
    if a.shape != b.shape or not np.array_equal(np.isnan(a), np.isnan(b)):
        return {"shape or place": np.inf}
    return _turned_apart(np.nan_to_num(a), np.nan_to_num(b))


def _turned_apart(a: NDArray[np.float64], b: NDArray[np.float64]) -> dict[str, float]:
    """How far maps are apart, K x V each, but for signs and order."""
    plain = _maps_apart(a, b)
    if max(plain.values(), default=0.0) <= SLACK:
        return plain
    order, signs = _match(a, b)
    turned = bool(np.any(order != np.arange(len(order))) or np.any(signs < 0))
    return {**_maps_apart(a[order] * signs[:, None], b), **({TURNED: np.inf} if turned else {})}


def _maps_apart(one: NDArray[np.float64], other: NDArray[np.float64]) -> dict[str, float]:
    return {f"map {n}": _largest(a, b) for n, (a, b) in enumerate(zip(one, other, strict=True), 1)}


def _match(
    one: NDArray[np.float64], other: NDArray[np.float64]
) -> tuple[NDArray[np.int_], NDArray[np.float64]]:
    """Which maps of the first are most like those of the second, and with which sign."""
    sizes = np.linalg.norm(other, axis=1)[:, None] * np.linalg.norm(one, axis=1)
    likeness = np.nan_to_num(other @ one.T / np.where(sizes > 0, sizes, 1.0))
    rows, order = linear_sum_assignment(-np.abs(likeness))
    return order, np.where(likeness[rows, order] < 0, -1.0, 1.0)


def _largest(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Largest difference over the largest value."""
    size = max(np.abs(one).max(initial=0.0), np.abs(other).max(initial=0.0))
    return float(np.abs(one - other).max(initial=0.0) / size) if size else 0.0


# -- columns of tables and fields of records ----------------------------------------------------

_Leaf = tuple[str, Any]


def _leaves(one: Sequence[_Leaf], other: Sequence[_Leaf]) -> dict[str, float]:
    """Compare values under the same names, in order."""
    if [name for name, _ in one] != [name for name, _ in other]:
        return {"fields": np.inf}
    found: dict[str, float] = defaultdict(float)
    numbers: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for (name, a), (_, b) in zip(one, other, strict=True):
        if isinstance(a, float) and isinstance(b, float):
            numbers[name].append((a, b))
        elif isinstance(a, str) and isinstance(b, str):
            found[name] = max(found[name], texts_apart(a, b))
        else:
            found[name] = max(found[name], 0.0 if type(a) is type(b) and a == b else np.inf)
    for name, pairs in numbers.items():
        differing = [pair for pair in pairs if pair[0] != pair[1]]  # infinities are equal, too
        if differing:
            size = max(abs(each) for pair in pairs for each in pair)
            found[name] = max(found[name], *(abs(a - b) / size for a, b in differing))
    return dict(found)


def _records(one: Path, other: Path) -> dict[str, float]:
    read = (json.loads(path.read_text(encoding="utf-8")) for path in (one, other))
    first, second = (list(_fields("", each)) for each in read)
    return _leaves(first, second)


def _fields(name: str, value: object) -> Iterator[_Leaf]:
    """Values of a record, with items of a list under one name."""
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _fields(f"{name}.{key}" if name else str(key), value[key])
    elif isinstance(value, list):
        yield f"{name}, items", len(value)
        for item in value:
            yield from _fields(name, item)
    else:
        yield name, value


def _tables(one: Path, other: Path) -> dict[str, float]:
    first, second = (list(_cells(path)) for path in (one, other))
    return _leaves(first, second)


def _cells(path: Path) -> Iterator[_Leaf]:
    head, *rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    yield "columns", "\t".join(head)
    for row in rows:
        for name, cell in zip(head, row, strict=True):
            yield name, _cell(cell)


def _cell(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


_COMPARED: Mapping[str, Callable[[Path, Path], dict[str, float]]] = {
    ".nii.gz": _images,
    DENSE: _dense,
    ".nii": _images,
    ".gii": _halves,
    ".json": _records,
    ".tsv": _tables,
}
