"""Every file that follows from the releases, made again and compared with the published one.

Differences are judged by their size, in any format, and by the effect of rounding. Information that
only the centre has, which is day, duration and versions, is taken from the folder.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from consortium.coordinator.evidence import digests_of
from consortium.coordinator.outputs import MachineFacts, Publisher
from consortium.engine.names import QUERY
from consortium.errors import ConsortiumError, ContradictionError, DataError
from consortium.opened_study import OpenedStudy
from consortium.report.dataset import CRATE
from consortium.report.legend import Legend
from consortium.report.privacy_report import read_privacy_report
from consortium.space.mesh import DAMAGED, open_gifti
from consortium.space.nifti import open_image
from consortium.space.templates import DENSE, read_dense
from consortium.verification.agreement import RunAgreement
from consortium.verification.record import evidence_path, round_file
from consortium.verification.replay import (
    SLACK,
    TRIES,
    Apart,
    Replayed,
    Spread,
    query_distance,
    replay,
)
from consortium.verification.rounds import Released
from consortium.verification.verdict import Verdict

_DRAWN = re.compile(r"[A-Za-z0-9+/=]{200,}|<svg.*?</svg>", re.DOTALL)
_LASTED = re.compile(r'(<th scope="row">Time</th><td>[^<]*</td><td>)[\dhmins ]{1,20}(</td>)')
_HERE = "on this machine, which says the same of itself as the centre's"
TURNED = "sign or order of maps"
"""A part that is endlessly far apart if maps agree but for these."""
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass
class Remake:
    """A finished folder, to be made again."""

    folder: Path
    opened: OpenedStudy
    """As it was signed, with all its sites."""
    agreement: RunAgreement
    legend: Legend
    rounds: Sequence[Released]
    again: Replayed
    """The analysis, as it is here."""
    elsewhere: str
    """Where the centre computed, in words; empty if it says that it was a machine like this one."""
    verdict: Verdict
    """Receives questions that can't be decided here."""

    def check(self, queries: Apart) -> tuple[set[str], list[ContradictionError]]:
        """Compare everything; returns the files made again, and the contradictions.

        Parameters
        ----------
        queries : Apart
            Queries that differ, by their files.
        """
        with TemporaryDirectory() as name:
            made = Path(name) / "made"
            self._publish(made, self.again, pages=True)
            files = sorted(digests_of(made))
            wrong: list[ContradictionError] = []
            found = dict(queries)
            for file in files:
                if not (self.folder / file).is_file():
                    wrong.append(_says(file, "is missing, though it follows from the releases"))
                elif is_numeric(file) and file != CRATE:
                    parts = relative_distance(self.folder / file, made / file)
                    found[file] = {part: far for part, far in parts.items() if far > SLACK}
            found = {file: parts for file, parts in found.items() if parts}
            wrong += self._judge(found, made, Path(name)) if found else []
            for file in files:
                if (self.folder / file).is_file() and (file == CRATE or not is_numeric(file)):
                    wrong += self._told(file, made, bool(found))
        return set(files), wrong

    # -- numbers ----------------------------------------------------------------------------

    def _judge(self, found: Apart, made: Path, scratch: Path) -> Iterator[ContradictionError]:
        """Separate differences that rounding can cause from others."""
        spread = Spread(found)
        for seed in range(TRIES):
            left = [name for name in found if spread.beyond(name, (TURNED,))]
            if not left:
                break
            self._try(seed, spread, made, scratch / str(seed))
        for name, parts in found.items():
            beyond = spread.beyond(name, (TURNED,))
            if beyond:
                most = max(moved for _, moved in beyond.values())
                how = _how({part: far for part, (far, _) in beyond.items()})
                yield _says(
                    name,
                    f"does not follow from the releases: it differs in {how}, where rounding "
                    f"makes {most:.1g}",
                )
            else:
                where = self.elsewhere or _HERE
                self.verdict.leave_open(
                    name,
                    f"differs from the file that is computed {where}: in {_how(parts)}, by no "
                    "more than rounding can make.",
                )

    def _try(self, seed: int, spread: Spread, made: Path, folder: Path) -> None:
        try:
            other = replay(self.agreement, self.rounds, seed)
            if other.result is None:
                raise ContradictionError("", "the analysis asks for more")
            self._publish(folder, other, pages=False)
        except ConsortiumError:  # rounding decides whether there is a result at all
            for name in spread.found:
                spread.see(name, dict.fromkeys(spread.found[name], math.inf))
            return
        asked = zip(self.rounds, self.again.queries, other.queries, strict=True)
        for done, first, second in asked:
            name = evidence_path(round_file(done.number, QUERY))
            if name in spread.found:
                spread.see(name, dict.fromkeys(spread.found[name], query_distance(first, second)))
        for name in spread.found:
            if is_numeric(name):
                exists = (folder / name).is_file()
                parts = (
                    relative_distance(folder / name, made / name)
                    if exists
                    else {"the whole": math.inf}
                )
                spread.see(name, parts)

    # -- pages ------------------------------------------------------------------------------

    def _told(self, name: str, made: Path, differs: bool) -> Iterator[ContradictionError]:
        """Hold a page, or what machines read of the folder, against the one that is made again."""
        try:
            first, second = (self._text(each, name) for each in (self.folder, made))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            yield _says(name, "can't be read")
            return
        if texts_apart(*(_DRAWN.sub("", text) for text in (first, second))) > SLACK:
            if differs or self.elsewhere:
                why = "its numbers differ" if differs else "it was made elsewhere"
                self.verdict.leave_open(name, f"is not compared word by word, as {why}.")
            else:
                yield _says(name, "has other contents than those that follow from the releases")
        elif _DRAWN.findall(first) != _DRAWN.findall(second):
            self.verdict.leave_open(
                name,
                "has pictures that can't be drawn again here. Look at "
                "the maps, which are compared.",
            )

    def _text(self, folder: Path, name: str) -> str:
        text = (folder / name).read_text(encoding="utf-8")
        if name == CRATE and folder != self.folder:  # a packed image has any size
            return json.dumps(_sized(json.loads(text), self.folder))
        if name == CRATE:
            return json.dumps(json.loads(text))
        return _LASTED.sub(r"\1\2", text)

    # -- both -------------------------------------------------------------------------------

    def _publish(self, folder: Path, done: Replayed, *, pages: bool) -> None:
        assert done.result is not None  # noqa: S101 - the caller has looked
        Publisher(
            folder,
            self.opened,
            legend=self.legend,
            pages=pages,
            machine=self._known(),
            seconds=0.0,
        ).publish(self.agreement.plan, done.rounds, done.result)

    def _known(self) -> MachineFacts | None:
        try:
            report = read_privacy_report(self.folder / "privacy_report.json")
            crate = json.loads((self.folder / CRATE).read_text(encoding="utf-8"))
            (day,) = {each["datePublished"] for each in crate["@graph"] if each["@id"] == "./"}
            return MachineFacts(date.fromisoformat(day), report)
        except (ConsortiumError, OSError, ValueError, KeyError, TypeError):
            return None  # an unreadable file is detected in the comparison


def _says(name: str, what: str) -> ContradictionError:
    return ContradictionError(name, f"{what}.")


def _how(parts: Mapping[str, float]) -> str:
    """State which parts differ, and by how much."""
    every = list(parts)
    sizes = [far for far in parts.values() if math.isfinite(far)]
    names = ", ".join(every[:3]) + (f" and {len(every) - 3} more" if len(every) > 3 else "")
    return f"{names} (by up to {max(sizes):.1g} of the largest value)" if sizes else names


def _sized(crate: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the catalogue with the sizes of a folder's files."""
    for each in crate["@graph"]:
        path = folder / unquote(each["@id"])
        if "contentSize" in each and path.is_file():
            each["contentSize"] = str(path.stat().st_size)
    return crate


def is_numeric(name: str) -> bool:
    """Return whether a remade file has numbers for programs, and is not a page for people."""
    return name.endswith(tuple(_COMPARED))


def relative_distance(one: Path, other: Path) -> dict[str, float]:
    """Return differences of two remade files' numbers over the largest, by map or column.

    Infinite where words, shapes or whole numbers differ, or a file can't be read. Rows that are
    missing are missing from every column.
    """
    compare = next(act for end, act in _COMPARED.items() if other.name.endswith(end))
    try:
        found = compare(one, other)
    except (*DAMAGED, DataError, RecursionError):
        return {"the whole": np.inf}
    return {part: far if np.isfinite(far) else np.inf for part, far in found.items()}


def texts_apart(one: str, other: str) -> float:
    """Return the largest relative difference of numbers in two remade texts; inf if words differ.

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
        first = Decimal(one)
        second = Decimal(other)
        last = max(Decimal(1).scaleb(int(each.as_tuple().exponent)) for each in (first, second))
        off = abs(first - second) - last
        size = max(abs(first), abs(second))
        return float(off / size) if off > 0 else 0.0
    except ArithmeticError:  # a number may have any length
        return np.inf


# -- images -----------------------------------------------------------------------------------


def _images(one: Path, other: Path) -> dict[str, float]:
    first = open_image(one)
    second = open_image(other)
    a, b = (np.asarray(image.dataobj, dtype=np.float64) for image in (first, second))
    if a.shape != b.shape or not np.allclose(first.affine, second.affine):
        return {"shape or place": np.inf}
    return _turned_apart(*(e.reshape(-1, e.shape[3] if e.ndim > 3 else 1).T for e in (a, b)))


def _dense(one: Path, other: Path) -> dict[str, float]:
    """Compare maps of CIFTI."""
    first, a = read_dense(one)
    second, b = read_dense(other)
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
    """Return the difference of maps, K x V each, except for signs and order."""
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
    """Match maps of the first with the most similar of the second, with their signs."""
    sizes = np.linalg.norm(other, axis=1)[:, None] * np.linalg.norm(one, axis=1)
    similarity = np.nan_to_num(other @ one.T / np.where(sizes > 0, sizes, 1.0))
    rows, order = linear_sum_assignment(-np.abs(similarity))
    return order, np.where(similarity[rows, order] < 0, -1.0, 1.0)


def _largest(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the largest difference over the largest value."""
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
        differing = [pair for pair in pairs if pair[0] != pair[1]]  # infinities are also equal
        if differing:
            size = max(abs(each) for pair in pairs for each in pair)
            found[name] = max(found[name], *(abs(a - b) / size for a, b in differing))
    return dict(found)


def _records(one: Path, other: Path) -> dict[str, float]:
    read = (json.loads(path.read_text(encoding="utf-8")) for path in (one, other))
    first, second = (list(_fields("", each)) for each in read)
    return _leaves(first, second)


def _fields(name: str, value: object) -> Iterator[_Leaf]:
    """Yield values of a record, with items of a list under one name."""
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
