"""What a regression will release: one moment with public weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from consortium.algorithms.base import (
    MOST_SOLVED_FEATURES,
    Argument,
    Array,
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
    check_identified(shape, target_entry(parameters, shape), parameters.intercept)
    bound = Bound(
        parameters.bound**2
        + (intercept_weight(parameters) ** 2 if parameters.intercept else 0.0)
        + target_weight(parameters) ** 2,
        cone=True,
    )
    entries = packed_size(shape.features + constants(parameters, shape))
    fixed = query_arguments(parameters, shape)
    return (
        PlannedRelease(
            *("regression", "regression_moment", entries, bound, 1, 1.0, forms_of(fixed)),
            fixed=fixed,
        ),
    )


def check_identified(shape: Shape, target: int, constant: bool) -> None:
    """Refuse a model of which no persons could tell anything.

    Raises
    ------
    StudyError
        If nobody differs in what is there to explain the target.
    """
    still = shape.still_directions(target, constant).shape[1]
    if shape.features - 1 == still:
        raise StudyError(
            "field 'features': all persons are alike in what is left to explain the target, as it "
            "adds up to the same for everybody; add a view, or don't centre one of a single number."
        )


def constants(parameters: RegressionParameters, shape: Shape) -> int:
    """S, constants of the model: one for each site, one for all, or none."""
    if not parameters.intercept:
        return 0
    return len(shape.units) if parameters.site_constants else 1


def intercept_weight(parameters: RegressionParameters) -> float:
    """Weight c of a person's constant in the release."""
    return parameters.intercept_weight * parameters.bound


def target_weight(parameters: RegressionParameters) -> float:
    """Weight α of the target in the release."""
    return parameters.target_weight * parameters.bound


def release_weights(parameters: RegressionParameters, shape: Shape) -> Array:
    """Weights of explaining entries, constants and target in the release."""
    levels = constants(parameters, shape)
    weights = np.ones(shape.features + levels)
    weights[shape.features - 1 : -1] = intercept_weight(parameters)
    weights[-1] = target_weight(parameters)
    return weights


def parts_of(parameters: RegressionParameters, shape: Shape, present: Sequence[int]) -> Array:
    """Parts of the persons that each constant is one for; of a site that is missing, none."""
    levels = constants(parameters, shape)
    sizes = np.zeros(len(shape.units))
    sizes[list(present)] = [shape.units[site] for site in present]
    return sizes / sizes.sum() if levels > 1 else np.ones(levels)


def query_arguments(parameters: RegressionParameters, shape: Shape) -> dict[str, Argument]:
    """What is the same in all queries: all of it."""
    return {
        "target": target_entry(parameters, shape),
        "reach": float(parameters.bound),
        "intercept": intercept_weight(parameters),
        "weight": target_weight(parameters),
        "constants": constants(parameters, shape),
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
