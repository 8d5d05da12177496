"""What a regression will release: one moment with public weights."""

from __future__ import annotations

from consortium.algorithms.base import (
    MOST_SOLVED_FEATURES,
    Argument,
    PlannedRelease,
    Shape,
    forms_of,
)
from consortium.algorithms.regression.parameters import RegressionParameters
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.privacy.bounds import Bound


def plan_releases(parameters: RegressionParameters, shape: Shape) -> tuple[PlannedRelease]:
    """One release with the whole budget."""
    target_entry(parameters, shape)
    if shape.features > MOST_SOLVED_FEATURES:
        raise StudyError(
            f"field 'features': {shape.features} entries are more than the {MOST_SOLVED_FEATURES} "
            "that a regression can hold the moments of; use fewer or coarser views."
        )
    scales = release_weights(parameters)
    bound = Bound(parameters.bound**2 + scales[0] ** 2 + scales[1] ** 2, cone=True)
    entries = packed_size(shape.features + 1)
    fixed = query_arguments(parameters, shape)
    return (
        PlannedRelease(
            *("regression", "regression_moment", entries, bound, 1, 1.0, forms_of(fixed)),
            fixed=fixed,
        ),
    )


def release_weights(parameters: RegressionParameters) -> tuple[float, float]:
    """Weights c (0 without intercept) and α in the release."""
    constant = parameters.intercept_weight * parameters.bound if parameters.intercept else 0.0
    return constant, parameters.target_weight * parameters.bound


def query_arguments(parameters: RegressionParameters, shape: Shape) -> dict[str, Argument]:
    """What is the same in all queries: all of it."""
    constant, weight = release_weights(parameters)
    return {
        "target": target_entry(parameters, shape),
        "reach": float(parameters.bound),
        "intercept": constant,
        "weight": weight,
    }


def target_entry(parameters: RegressionParameters, shape: Shape) -> int:
    """Place of the target within a person's vector.

    Raises
    ------
    StudyError
        If there is no such view of one entry, or no other.
    """
    found = shape.single_entry(parameters.target, "analysis.target", "name a view of one number")
    if shape.features < 2:
        raise StudyError("field 'features': nothing is left to explain the target; add a view.")
    return found
