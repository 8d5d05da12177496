"""Contrasts of a finished `glm` that released all coefficients, without further privacy loss."""

import re
from collections.abc import Sequence

import numpy as np
from scipy.special import fdtrc, stdtrit

from consortium.algorithms.base import Table
from consortium.algorithms.glm.kernels.contrast_regression import (
    Estimates,
    false_discovery,
    tested_effects,
)
from consortium.algorithms.glm.kernels.contrast_rows import moment_covariances
from consortium.base.array import Array
from consortium.errors import StudyError
from consortium.report.coefficients import ReleasedCoefficients

_TERM = re.compile(
    r"\s*(?:(?P<factor>\d{1,9}(?:\.\d{1,9})?)\s*\*\s*)?(?P<name>[A-Za-z0-9_.=:-]{1,259})\s*"
)
_SIGN = re.compile(r"(?:^|\s)([+-])\s")
_CONFIDENCE = 0.975
_LEAST_ANGLE = 1e-6
"""Smallest difference of distinct combinations: factors have nine digits after the point."""
_ROUNDING = 1e-12
_CLIPPED = 0.15
"""Relative error of the part that a coefficient takes over from removed columns: participants with
large values are clipped more. Measured as 0.01 to 0.17 (docs/replication/glm.md, "Several models
from one release"). Without noise nothing is clipped."""
_HEADINGS = ("view", "entry", "effect", "error", "t", "p", "q", "low", "high")


def compare_coefficients(released: ReleasedCoefficients, expression: str) -> Table:
    """Compute a contrast of coefficients for every outcome, and test it as a separate run would.

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
    released: ReleasedCoefficients,
    weights: Array,
    outcomes: Sequence[int] | None = None,
    restricted: Array | None = None,
) -> Estimates:
    """Test a contrast of a finished `glm`'s coefficients for every outcome, or for some.

    Raises StudyError if it has no error.

    Parameters
    ----------
    weights : array, length K
    outcomes : sequence of int, optional
        Places of outcomes (default: all).
    restricted : array, K x K, optional
        Turns coefficients into those of a smaller model (default: all columns).
    """
    chosen = slice(None) if outcomes is None else np.asarray(outcomes)
    values, chance, total = _with_covariances(released, weights[None, :], restricted)
    _told_apart(released, total)
    return tested_effects(
        effects=values[chosen, 0],
        sampling=chance[chosen, 0, 0],
        total=total[chosen, 0, 0],
        freedom=released.freedom,
        relative_divisor_variance=released.relative_divisor_variance,
        offset=0.0,
    )


def _with_covariances(
    released: ReleasedCoefficients, weights: Array, restricted: Array | None = None
) -> tuple[Array, Array, Array]:
    """Return combinations of coefficients, with their sampling and total covariances.

    Parameters
    ----------
    weights : array, J x K
    restricted : array, K x K, optional
        Turns coefficients into those of a smaller model (default: all columns).

    Returns
    -------
    tuple of array
        V x J, V x J x J and V x J x J.
    """
    turned = weights if restricted is None else weights @ restricted
    chance = turned @ released.chance @ turned.T * released.variances[:, None, None]
    total = chance + turned @ released.noise @ turned.T
    if released.inverse_moment is not None and released.moment_noise is not None:
        inverse = released.inverse_moment
        values = released.values
        if restricted is not None:
            inverse = restricted @ inverse
            values = values @ restricted.T
            if released.moment_noise.any():
                moved = released.values @ (turned - weights).T
                total = total + np.square(_CLIPPED * moved)[:, :, None] * np.eye(len(weights))
        total = total + moment_covariances(inverse.T, released.moment_noise, values, weights)
    return released.values @ turned.T, chance, total


def interval(found: Estimates) -> tuple[Array, Array]:
    """Return the ends of the 95 % intervals of a contrast's effects."""
    half = stdtrit(found.freedom, _CONFIDENCE) * found.widths
    return found.effects - half, found.effects + half


def worked_out(released: ReleasedCoefficients, expressions: Sequence[str]) -> Table:
    """Compute one combination as `compare_coefficients`, or several as `joint`."""
    one = len(expressions) == 1 and _levels_of(released, expressions[0]) == list(expressions)
    return compare_coefficients(released, expressions[0]) if one else joint(released, expressions)


def joint(released: ReleasedCoefficients, expressions: Sequence[str]) -> Table:
    """Test for every outcome whether any of several contrasts differs from 0.

    Raises StudyError if one is not such a sum, or they are linearly dependent.

    Parameters
    ----------
    expressions : sequence of str
        As for `compare_coefficients`, or a column's name for all its levels against the first.
    """
    wide = [each for text in expressions for each in _levels_of(released, text)]
    weights = _directions(released, wide)
    rank = len(wide)
    values, chance, total = _with_covariances(released, weights)
    inverse = np.linalg.inv(_told_apart(released, total))
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
            f"The contrasts must be independent, and only {rank} of {len(weights)} are: "
            f"{', '.join(expressions)}. Leave out those that follow from the others."
        )
    return np.asarray(found)


def _told_apart(released: ReleasedCoefficients, covariances: Array) -> Array:
    """Return covariances of every outcome's combinations, if each has a variance above 0."""
    sizes = np.linalg.eigvalsh(covariances)
    without = np.flatnonzero(~(sizes[:, 0] > _ROUNDING * sizes[:, -1]))
    if len(without):
        view, entry = released.labels[without[0]]
        raise StudyError(
            f"A combination has no standard error for '{entry}' of view '{view}', so it can't be "
            "tested. Test fewer contrasts at once."
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


def _weights(released: ReleasedCoefficients, expression: str) -> Array:
    parts = _SIGN.split(expression)
    terms = [("+", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]
    weights = np.zeros(released.values.shape[1])
    for sign, term in terms if parts[0].strip() else terms[1:]:
        match = _TERM.fullmatch(term)
        if match is None:
            raise StudyError(
                f"'{expression}' is not a sum of columns or levels. Write it as patients - "
                "controls, with spaces around + and -."
            )
        if match["name"] not in released.names:
            known = ", ".join(sorted(released.names))
            raise StudyError(
                f"contrast: a name must be one of {known}, got '{match['name']}'. Correct it."
            )
        if match["name"] in released.shared and len(parts) > 1:
            level = f"{released.shared[match['name']]}={match['name']}"
            raise StudyError(
                f"'{match['name']}' is the name of a coefficient and of a level. Write '{level}' "
                "for the level, or ask for the coefficient by itself."
            )
        place = released.names[match["name"]]
        if place is not None:
            weights[place] += float(match["factor"] or 1) * (1 if sign == "+" else -1)
    if not weights.any():
        raise StudyError(f"The contrast '{expression}' is zero. Compare two different levels.")
    return weights
