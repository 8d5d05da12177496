"""Contrasts of a finished `glm` that released all coefficients, without further privacy loss."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import fdtrc, stdtrit

from consortium.algorithms.base import Table
from consortium.base.array import Array
from consortium.base.atomic import DAMAGED
from consortium.base.tables import read_rows
from consortium.errors import OutputError, StudyError
from consortium.kernels.contrast_regression import Estimates, false_discovery, tested_effects

_TERM = re.compile(
    r"\s*(?:(?P<factor>\d{1,9}(?:\.\d{1,9})?)\s*\*\s*)?(?P<name>[A-Za-z0-9_.=:-]{1,259})\s*"
)
_SIGN = re.compile(r"(?:^|\s)([+-])\s")
_CONFIDENCE = 0.975
_WITHHELD = "n/a"
_LEAST_ANGLE = 1e-6
"""Smallest difference of distinct combinations: factors have nine digits after the point."""
_ROUNDING = 1e-12
_HEADINGS = ("view", "entry", "effect", "error", "t", "p", "q", "low", "high")


@dataclass(frozen=True)
class CoefficientEntry:
    """Name of a coefficient, and for a level its name and that of its reference."""

    name: str
    level: str
    reference: str


@dataclass(frozen=True, eq=False)
class ReleasedCoefficients:
    """Coefficients in a run folder."""

    labels: tuple[tuple[str, str], ...]
    """View and entry of every outcome."""
    values: Array
    """V x K."""
    variances: Array
    """Length V. Degrees of freedom of the first coefficient's sampling variance."""
    chance: Array
    noise: Array
    """K x K. Covariances, the first over ``variances``."""
    design: Array | None
    """Inverse second moment of the columns within sites, K x K, over its first entry; None if it
    was not released."""
    entries: tuple[CoefficientEntry, ...]
    """Length K."""
    freedom: float
    """Degrees of freedom of ``variances``."""
    doubt: float
    """Variance of what all coefficients were divided by, over its square."""
    names: dict[str, int | None]
    """Coefficient of each name; a reference level has none."""
    shared: dict[str, str]
    """Columns by their levels whose name denotes another coefficient."""


def read_released(folder: Path) -> ReleasedCoefficients:
    """Read the tables of coefficients of a run.

    Raises OutputError if there are none, or they are damaged.
    """
    single, errors = (_rows(folder, name) for name in ("coefficients", "coefficientserrors"))
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
    return ReleasedCoefficients(
        labels=tuple((row["view"], row["entry"]) for row in single),
        values=_matrix(single, coefficients),
        variances=_matrix(single, ["chance"])[:, 0],
        chance=_matrix(errors, [f"chance {name}" for name in coefficients]),
        noise=_matrix(errors, [f"noise {name}" for name in coefficients]),
        design=_design(errors, coefficients),
        entries=tuple(
            CoefficientEntry(row["coefficient"], row["level"] or "", row["reference"] or "")
            for row in errors
        ),
        freedom=float(errors[0]["freedom"]),
        doubt=float(errors[0]["doubt"]),
        names=names,
        shared=shared,
    )


def compare_coefficients(released: ReleasedCoefficients, expression: str) -> Table:
    """Compute a combination of coefficients for every outcome, and test it as a separate run would.

    Raises StudyError if it is not such a sum, has an unknown name, or is empty.

    Parameters
    ----------
    expression : str
        Names of columns or levels with + and - between them, as ``patients - controls`` or
        ``0.5 * ward=b + 0.5 * ward=c - ward=a``.
    """
    found = effects_along(released, _weights(released, expression))
    low, high = interval(found)
    columns = (found.effects, found.errors, found.statistics, found.p, found.q, low, high)
    rows = zip(released.labels, np.column_stack(columns).tolist(), strict=True)
    return Table(
        f"{expression.strip()}: effect on every outcome that is not withheld, in standard "
        "deviations within groups and sites, with 95 % intervals; errors count chance and noise.",
        _HEADINGS,
        tuple((*label, *numbers) for label, numbers in rows),
    )


def effects_along(
    released: ReleasedCoefficients, weights: Array, outcomes: Sequence[int] | None = None
) -> Estimates:
    """Test a combination of coefficients for every outcome, or for some.

    Raises StudyError if it has no error.

    Parameters
    ----------
    weights : array, length K
    outcomes : sequence of int, optional
        Places of outcomes (default: all).
    """
    chosen = slice(None) if outcomes is None else np.asarray(outcomes)
    chance = released.variances[chosen] * (weights @ released.chance @ weights)
    total = chance + weights @ released.noise @ weights
    _told_apart(released, total[:, None, None])
    return tested_effects(
        effects=released.values[chosen] @ weights,
        sampling=chance,
        total=total,
        freedom=released.freedom,
        doubt=released.doubt,
        offset=0.0,
    )


def interval(found: Estimates) -> tuple[Array, Array]:
    """Return the ends of the 95 % intervals."""
    half = stdtrit(found.freedom, _CONFIDENCE) * found.widths
    return found.effects - half, found.effects + half


def worked_out(released: ReleasedCoefficients, expressions: Sequence[str]) -> Table:
    """Compute one combination as `compare_coefficients`, or several as `joint`."""
    one = len(expressions) == 1 and _levels_of(released, expressions[0]) == list(expressions)
    return compare_coefficients(released, expressions[0]) if one else joint(released, expressions)


def joint(released: ReleasedCoefficients, expressions: Sequence[str]) -> Table:
    """Test for every outcome whether any of several combinations differs from 0.

    Raises StudyError if one is not such a sum, or they are linearly dependent.

    Parameters
    ----------
    expressions : sequence of str
        As for `compare_coefficients`, or a column's name for all its levels against the first.
    """
    wide = [each for text in expressions for each in _levels_of(released, text)]
    weights = _directions(released, wide)
    rank = len(wide)
    values = released.values @ weights.T
    chance = weights @ released.chance @ weights.T * released.variances[:, None, None]
    inverse = np.linalg.inv(_told_apart(released, chance + weights @ released.noise @ weights.T))
    statistics = np.einsum("vi,vij,vj->v", values, inverse, values) / rank
    by_chance = np.einsum("vij,vji->v", inverse, chance) / rank
    freedom = released.freedom / np.square(by_chance)
    p = fdtrc(rank, freedom, statistics)
    numbers = np.column_stack([statistics, np.full(len(p), rank), freedom, p, false_discovery(p)])
    return Table(
        f"{', '.join(wide)}: whether any is apart from 0, for every outcome; errors count chance "
        "and noise.",
        ("view", "entry", "F", "df1", "df2", "p", "q"),
        tuple((*label, *row) for label, row in zip(released.labels, numbers.tolist(), strict=True)),
    )


def _directions(released: ReleasedCoefficients, expressions: Sequence[str]) -> Array:
    """Return orthogonal combinations that span those of the expressions.

    The test is the same for both; the factors of these have similar sizes.
    """
    weights = np.array([_weights(released, each) for each in expressions])
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    _, sizes, found = np.linalg.svd(weights, full_matrices=False)
    rank = int(np.count_nonzero(sizes > _LEAST_ANGLE))
    if rank < len(weights):
        raise StudyError(
            f"{', '.join(expressions)} are {rank} independent comparisons and not {len(weights)}; "
            "leave out those that follow from the others."
        )
    return np.asarray(found)


def _told_apart(released: ReleasedCoefficients, covariances: Array) -> Array:
    """Return covariances of every outcome's combinations, if each has a variance above 0."""
    sizes = np.linalg.eigvalsh(covariances)
    without = np.flatnonzero(~(sizes[:, 0] > _ROUNDING * sizes[:, -1]))
    if len(without):
        view, entry = released.labels[without[0]]
        raise StudyError(
            f"A combination has no error for '{entry}' of view '{view}', so nothing can be "
            "tested; ask for fewer at once."
        )
    return covariances


def _levels_of(released: ReleasedCoefficients, text: str) -> list[str]:
    """Return a column's levels but the first, if the text is the name of a column with several."""
    own = [
        name
        for name, place in released.names.items()
        if place is not None
        if name.startswith(f"{text.strip()}=")
    ]
    return [text] if text.strip() in released.names or not own else own


def _rows(folder: Path, name: str) -> list[dict[str, str]]:
    found = sorted((folder / "tables").glob(f"desc-*glm{name}_results.tsv"))
    if len(found) != 1:
        raise OutputError(
            f"{folder} has no table of all coefficients; run a 'glm' with contrasts: all."
        )
    rows = read_rows(found[0])
    if not rows:
        raise OutputError(f"{found[0]} has no lines; ask for the run's folder again.")
    return rows


def _check_numbers(found: ReleasedCoefficients) -> None:
    """Raise a ValueError for what no run writes."""
    scales = found.freedom, found.doubt
    design = () if found.design is None else (found.design,)
    for each in (found.values, found.variances, found.chance, found.noise, scales, *design):
        if not np.isfinite(each).all():
            raise ValueError("a number is not finite")
    if not (found.variances.min() > 0 and found.freedom > 0 <= found.doubt):
        raise ValueError("a variance is none")


def _design(errors: Sequence[Mapping[str, Any]], coefficients: Sequence[str]) -> Array | None:
    names = [f"design {name}" for name in coefficients]
    return _matrix(errors, names) if names[0] in errors[0] else None


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


def _weights(released: ReleasedCoefficients, expression: str) -> Array:
    parts = _SIGN.split(expression)
    terms = [("+", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]
    weights = np.zeros(released.values.shape[1])
    for sign, term in terms if parts[0].strip() else terms[1:]:
        match = _TERM.fullmatch(term)
        if match is None:
            raise StudyError(
                f"'{expression}' is not a sum of columns or levels; write it as patients - "
                "controls, with spaces around + and -."
            )
        if match["name"] not in released.names:
            known = ", ".join(sorted(released.names))
            raise StudyError(f"There is no '{match['name']}' in the study; there are {known}.")
        if match["name"] in released.shared and len(parts) > 1:
            level = f"{released.shared[match['name']]}={match['name']}"
            raise StudyError(
                f"'{match['name']}' is the name of a coefficient and of a level; write '{level}' "
                "for the level. Ask for the coefficient by itself."
            )
        place = released.names[match["name"]]
        if place is not None:
            weights[place] += float(match["factor"] or 1) * (1 if sign == "+" else -1)
    if not weights.any():
        raise StudyError(f"'{expression}' compares nothing with nothing; name two that differ.")
    return weights
