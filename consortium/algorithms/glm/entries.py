"""Positions of the formula's columns and of the outcomes in a vector, with their units."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from consortium.algorithms.base import Shape
from consortium.algorithms.glm.formula import factors
from consortium.algorithms.glm.kernels.contrast_regression import TOTAL_DEVIATION
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.algorithms.glm.rows import Table
from consortium.base.array import Array
from consortium.errors import StudyError
from consortium.views import View
from consortium.views.column import Column

_SHOWN = 20  # names in a sentence
_OF_LIMITS = (0.0, 0.25)
_OF_LEVELS = (0.5, 0.25)
"""Middle and an eighth of the width of values from -1 to 1; for levels from 0 to 1, a quarter."""

MOST_MISSING = 0.2
"""Fraction of the outcomes that a participant may lack in memory, if no view states another."""
_SQUARE_SPREAD = 2.1
"""Divisor of squares of standardized values, so none up to the limit is clipped."""
COVARIATE_LIMIT = 2.5
OUTCOME_LIMIT = 16.0
"""Limits of covariates and outcomes, in standard deviations."""
UNCUT = 1e3
"""The same limits without noise, larger than any value."""


@dataclass(frozen=True)
class GlmEntry:
    """Column of the formula or an outcome in a vector: (value in its unit - middle) / half."""

    row: int
    """Its index in the vector."""
    label: str
    middle: float = 0.0
    half: float = 1.0
    level: int = 0
    levels: int = 0
    """Index of its level and number of levels; 0 of 0 for a column with limits."""
    compared: tuple[str, str] = ("", "")
    """Name of that level and of the first; empty if levels have no names."""
    limited: bool = False
    """Whether values are clipped to public limits, which are -1 and 1."""
    start: tuple[float, float] = (0.0, 1.0)
    """Initial location and standard deviation if none are stated, in the vector's unit."""
    product: bool = False
    """Whether it is a product of two entries or a square, which is not part of the vector."""


@dataclass(frozen=True, eq=False)
class Products:
    """Entries that are not part of a vector: products of two of its entries, and squares."""

    rows: Array
    """Indices of the two factors, k x 2."""
    means: Array
    deviations: Array
    """Public means and standard deviations that standardize the factors, k x 2."""
    limit: float = COVARIATE_LIMIT
    """Limit of the factors, in public standard deviations."""

    def take(self, table: Table, rows: Array) -> Array:
        """Return rows of the vectors (D x n) with the products appended below: len(rows) x n."""
        taken = table[np.minimum(rows, len(table) - 1)].astype(np.float64)
        for place in np.flatnonzero(rows >= len(table)):
            own = rows[place] - len(table)
            values = table[self.rows[own]] - self.means[own][:, None]
            values = values / self.deviations[own][:, None]
            taken[place] = np.clip(values, -self.limit, self.limit).prod(axis=0)
        return taken


class Numbers(Sequence[str]):
    """Outcomes' names of a prefix and a number from 1, made on access to save memory."""

    def __init__(self, prefix: str, many: int) -> None:
        self._prefix = prefix
        self._numbers = range(1, many + 1)

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self._numbers)

    def __getitem__(self, place: Any) -> Any:
        """Return one name, or a tuple of several."""
        chosen = self._numbers[place]
        if isinstance(chosen, range):
            return tuple(f"{self._prefix}{number}" for number in chosen)
        return f"{self._prefix}{chosen}"


class Labels(Sequence[tuple[str, str]]):
    """Pairs (view, entry) of all outcomes, one view after another.

    Parameters
    ----------
    views : sequence of (str, sequence of str)
        Each view's name, and the names of its entries.
    """

    def __init__(self, views: Sequence[tuple[str, Sequence[str]]]) -> None:
        self._views = views
        self._starts = np.cumsum([0, *(len(names) for _, names in views)])

    def __len__(self) -> int:
        """Return V."""
        return int(self._starts[-1])

    def __getitem__(self, place: Any) -> Any:
        """Return one pair, or a tuple of several."""
        if isinstance(place, slice):
            return tuple(self[each] for each in range(*place.indices(len(self))))
        if not 0 <= place < len(self):
            raise IndexError(place)
        view = int(np.searchsorted(self._starts, place, side="right")) - 1
        name, names = self._views[view]
        return name, names[place - int(self._starts[view])]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yield every pair."""
        return ((view, name) for view, names in self._views for name in names)

    def of(self, view: str) -> Array:
        """Return which outcomes belong to a view: array of bool, length V."""
        return np.concatenate([np.full(len(n), name == view) for name, n in self._views])


@dataclass(frozen=True, eq=False)
class Columns:
    """Entries of a participant's vector that the study uses."""

    outcomes: Array
    """Rows of the outcomes, integers, length V."""
    location: Array
    deviation: Array
    """Initial location and scale of the outcomes, in the vector's unit: stated, or derived from the
    limits. Length V."""
    middles: Array
    units: Array
    """Value of 0 and size of 1 of the vector's unit, in the outcome's own unit. Length V."""
    means: Array
    deviations: Array
    """Means and standard deviations of the covariates, length p."""
    group: GlmEntry
    """Column of the contrast."""
    labels: Labels
    """View and entry of every outcome."""
    covariates_of: tuple[GlmEntry, ...]
    group_norm: tuple[float, float]
    """Mean and standard deviation of the contrast's column, for a slope."""
    averages: Array
    """Weights of the outcomes in the groups of `averages`, G x V."""
    limited: Array
    """Which outcomes have limits, boolean, length V."""
    products: Products

    @property
    def slope(self) -> bool:
        """Whether the contrast is of a column with limits."""
        return self.group.levels == 0

    def own(self, values: Array) -> Array:
        """Return values of the outcomes in their own units."""
        return np.asarray(self.middles + self.units * values)

    @property
    def threshold(self) -> float:
        """Value of the group's entry above which a participant belongs to the second group."""
        return 0.5 if self.group.levels > 2 else 0.0


class _Outcomes(NamedTuple):
    """Names of a view's outcomes, and the fields of `GlmEntry` that are needed as numbers.

    The rows of ``numbers`` are row, middle, half, initial location, initial standard deviation and
    limited.
    """

    names: Sequence[str]
    numbers: Array


def resolve(parameters: GlmParameters, shape: Shape) -> Columns:
    """Return the columns of the formula and the outcomes as indices into the vector.

    Raises StudyError if a name is not in the study, or the contrast's column does not have two
    groups or limits.
    """
    explained = parameters.outcome_views
    for view in explained:
        shape.view_slice(view, "analysis.outcomes")
    outcomes = [_outcomes(parameters, shape, view) for view in explained]
    found, factored = _terms(parameters, shape)
    group = _group(parameters, found)
    covariates = [e for entries in found for e in entries if e.row != group.row]
    scales = [_covariate_norm(parameters, entry) for entry in covariates]
    numbers = np.concatenate([each.numbers for each in outcomes], axis=1)
    rows, middles, halves, location, deviation, limited = numbers
    names = (each.names for each in outcomes)
    labels = Labels(tuple(zip(explained, names, strict=True)))
    norms = parameters.norms
    if norms.location is not None:
        location = (_each(norms.location, len(rows), "location") - middles) / halves
    if norms.deviation is not None:
        stated = _each(norms.deviation, len(rows), "deviation")
        deviation = TOTAL_DEVIATION * stated / halves
    return Columns(
        outcomes=rows.astype(np.int64),
        location=location,
        deviation=deviation,
        middles=middles,
        units=halves,
        means=np.array([mean for mean, _ in scales]),
        deviations=np.array([spread for _, spread in scales]),
        group=group,
        labels=labels,
        covariates_of=tuple(covariates),
        group_norm=_covariate_norm(parameters, group),
        averages=_averages(parameters, labels),
        limited=limited > 0,
        products=_products(parameters, factored, COVARIATE_LIMIT if shape.noise > 0 else UNCUT),
    )


def _terms(
    parameters: GlmParameters, shape: Shape
) -> tuple[list[list[GlmEntry]], list[tuple[GlmEntry, GlmEntry]]]:
    """Return the entries of every term, and the pairs of entries whose products are among them."""
    others = [
        entry
        for view, _ in shape.views
        if view not in parameters.outcome_views
        for entry in _entries(parameters, shape, view)
    ]
    found = list[list[GlmEntry]]()
    factored = list[tuple[GlmEntry, GlmEntry]]()
    for term in parameters.terms:
        parts = [_named(name, others) for name in factors(term)]
        if len(parts) == 1:
            found += parts
            continue
        pairs = _pairs(term, *parts)
        first = shape.features + len(factored)
        found.append([_product(first + n, term, pair) for n, pair in enumerate(pairs)])
        factored += pairs
    return found, factored


def _pairs(
    term: str, one: list[GlmEntry], other: list[GlmEntry]
) -> list[tuple[GlmEntry, GlmEntry]]:
    """Return the pairs of factors of all columns of a product.

    Raises StudyError if it is the square of a column of levels.
    """
    if one == other:
        if one[0].levels:
            raise StudyError(
                f"field 'analysis.formula': {term} is the square of a column of levels, which is "
                "collinear with that column. Remove it."
            )
        return [(one[0], one[0])]
    return [(first, second) for first in one for second in other]


def _product(row: int, term: str, pair: tuple[GlmEntry, GlmEntry]) -> GlmEntry:
    """Return the entry of a product. The usual mean of a square is 1."""
    one, other = pair
    if one == other:
        return GlmEntry(row, term, start=(1.0, _SQUARE_SPREAD), product=True)
    spread = 1.0 if one.levels or other.levels else COVARIATE_LIMIT
    return GlmEntry(row, f"{one.label}:{other.label}", start=(0.0, spread), product=True)


def _products(
    parameters: GlmParameters, pairs: list[tuple[GlmEntry, GlmEntry]], limit: float
) -> Products:
    norms = np.array([[_covariate_norm(parameters, e) for e in pair] for pair in pairs])
    rows = np.array([[entry.row for entry in pair] for pair in pairs], dtype=np.int64)
    norms = norms.reshape(-1, 2, 2)
    return Products(rows.reshape(-1, 2), norms[:, :, 0], norms[:, :, 1], limit)


def _averages(parameters: GlmParameters, outcomes: Labels) -> Array:
    """Return the weights of each group's outcomes, which sum to 1."""
    if not parameters.averages:
        return np.zeros((0, len(outcomes)))
    labels = [label for _, label in outcomes]
    found = np.zeros((len(parameters.averages), len(labels)))
    for row, (name, patterns) in zip(found, parameters.averages.items(), strict=True):
        for pattern in patterns:
            chosen = [fnmatchcase(label, pattern) for label in labels]
            if not any(chosen):
                raise StudyError(
                    f"field 'analysis.averages': no outcome matches '{pattern}' of '{name}'. "
                    f"Outcomes are {', '.join(labels[:5])} and so on."
                )
            row[chosen] = 1.0
        row /= row.sum()
    return found


def _entries(parameters: GlmParameters, shape: Shape, name: str) -> Iterator[GlmEntry]:
    """Yield the entries of a view, with names from the study or numbered."""
    part = shape.view_slice(name, "features")
    view = next((v for v in parameters.views if v.name == name), None)
    columns = view.single_columns if view else ()
    if not columns:
        labels, start = _plain(view, name, part.stop - part.start)
        for row, label in enumerate(labels, int(part.start)):
            yield GlmEntry(row, label, start=start)
        return
    row = int(part.start)
    for label, column in columns:
        for entry in _of_column(row, label, column):
            yield entry
            row += 1


def _plain(view: View | None, name: str, many: int) -> tuple[Sequence[str], tuple[float, float]]:
    """Return entry names and the common initial location and scale of a view without columns."""
    if view is None:
        return Numbers(name, many), (0.0, 1.0)
    return view.names_of(many) or Numbers("", many), view.usual(many)


def _outcomes(parameters: GlmParameters, shape: Shape, name: str) -> _Outcomes:
    """Return the outcomes of a view without creating one object for each."""
    part = shape.view_slice(name, "features")
    view = next((v for v in parameters.views if v.name == name), None)
    if view is not None and view.single_columns:
        entries = list(_entries(parameters, shape, name))
        numbers = [(e.row, e.middle, e.half, *e.start, e.limited) for e in entries]
        return _Outcomes([e.label for e in entries], np.array(numbers, dtype=np.float64).T)
    names, start = _plain(view, name, part.stop - part.start)
    rows = np.arange(part.start, part.stop, dtype=np.float64)
    same = np.array([0.0, 1.0, *start, 0.0])[:, None].repeat(len(rows), axis=1)
    return _Outcomes(names, np.vstack([rows, same]))


def _of_column(row: int, name: str, column: Column) -> Iterator[GlmEntry]:
    if column.low is not None and column.high is not None:
        middle = (column.high + column.low) / 2
        half = (column.high - column.low) / 2
        yield GlmEntry(row, name, middle, half, limited=True, start=_OF_LIMITS)
    elif len(column.levels) == 2:
        compared = column.levels[1], column.levels[0]
        yield GlmEntry(row, name, level=1, levels=2, compared=compared, start=_OF_LIMITS)
    else:
        first = column.levels[0]
        for number, label in enumerate(column.labels(name)):
            compared = column.levels[number], first
            count = len(column.levels)
            yield GlmEntry(
                row=row + number,
                label=label,
                middle=0.0,
                half=1.0,
                level=number,
                levels=count,
                compared=compared,
                start=_OF_LEVELS,
            )


def _named(term: str, entries: list[GlmEntry]) -> list[GlmEntry]:
    """Return the entries of a term, without the first of a column with more than two levels."""
    found = [entry for entry in entries if entry.label.partition("=")[0] == term]
    if not found:
        names = list(dict.fromkeys(e.label.partition("=")[0] for e in entries))
        known = ", ".join(names[:_SHOWN]) + (" and so on" if len(names) > _SHOWN else "") or "none"
        raise StudyError(
            f"field 'analysis.formula': '{term}' is not a column outside the outcomes. Columns "
            f"are {known}."
        )
    return found[1:] if found[0].levels > 2 else found


def _group(parameters: GlmParameters, found: list[list[GlmEntry]]) -> GlmEntry:
    term = parameters.contrasted
    for entries in found:
        for entry in entries:
            if entry.label == term or (parameters.importance and entry is found[0][0]):
                return _checked(parameters, entry)
    raise StudyError(
        f"field 'analysis.contrasts': '{term}' must be a column of two levels, a column with "
        "limits, or 'column=level' for a column with more levels (except the first level, with "
        "which others are compared)."
    )


def _checked(parameters: GlmParameters, entry: GlmEntry) -> GlmEntry:
    given = len(next(iter(parameters.groups.values()), ()))
    levels = entry.levels if parameters.views else given
    column = entry.label.partition("=")[0]
    if parameters.shares is not None:
        return _counted(parameters, entry, column)
    if levels == 0 and given:
        raise StudyError(
            f"field 'analysis.groups': column '{column}' has limits and no levels, so the contrast "
            "is its slope. Remove 'groups', or contrast a column of levels."
        )
    if levels and not given:
        raise StudyError(
            f"field 'analysis.groups': the contrast is of column '{column}', which has {levels} "
            "levels. Give 'groups', the nominal number of participants of each level at each "
            "site, or 'shares'."
        )
    if given != levels:
        raise StudyError(
            f"field 'analysis.groups': each site must have one number for each of the {levels} "
            f"levels of column '{column}', got {given}. Correct the list."
        )
    if parameters.views or not levels:
        return entry
    return GlmEntry(entry.row, entry.label, level=1, levels=levels)


def _counted(parameters: GlmParameters, entry: GlmEntry, column: str) -> GlmEntry:
    """Return the contrast's entry if the numbers of participants of its level are released."""
    if parameters.views and not entry.levels:
        raise StudyError(
            f"field 'analysis.shares': column '{column}' has limits and no levels whose "
            "participants could be counted. Remove 'shares'."
        )
    return entry if parameters.views else GlmEntry(entry.row, entry.label, level=1, levels=2)


def _covariate_norm(parameters: GlmParameters, entry: GlmEntry) -> tuple[float, float]:
    """Return mean and standard deviation of a covariate in the vector's unit, levels being ±1."""
    if entry.levels > 2:
        return 0.5, 0.5
    if entry.levels == 2:
        return 0.0, 1.0
    if entry.product:
        return entry.start
    norm = parameters.covariates.get(entry.label)
    if norm is None:
        return 0.0, 0.5
    return (norm.mean - entry.middle) / entry.half, norm.deviation / entry.half


def _each(value: float | tuple[float, ...], outcomes: int, name: str) -> Array:
    if isinstance(value, tuple) and len(value) != outcomes:
        raise StudyError(
            f"field 'analysis.norms.{name}': must be one number, or one for each of {outcomes} "
            f"outcomes, got {len(value)}. Correct the list."
        )
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (outcomes,)).copy()
