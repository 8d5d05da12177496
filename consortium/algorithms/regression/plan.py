"""What a regression will release: one moment with public weights, and then squared influences."""

import math
from collections.abc import Sequence

import numpy as np

from consortium.algorithms.base import (
    MOST_SOLVED_FEATURES,
    Argument,
    Array,
    Form,
    PlannedRelease,
    Shape,
)
from consortium.algorithms.linear import check_identified
from consortium.algorithms.regression.parameters import RegressionParameters
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.privacy.bounds import Bound

INFLUENCE_SHARE = 0.05
"""Part of the budget (of μ²) for the squared influences."""


def plan_releases(
    parameters: RegressionParameters, shape: Shape
) -> tuple[PlannedRelease, PlannedRelease]:
    """The moment, and what persons' residuals do to each coefficient."""
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
    size = shape.features + constants(parameters, shape)
    fixed = query_arguments(parameters, shape)
    forms: dict[str, Form] = {"influence": (size - 1, size - 1), "residual": (size,)}
    return (
        PlannedRelease(
            *("regression", "regression_moment", packed_size(size), bound, 1),
            1.0 - INFLUENCE_SHARE,
            fixed=fixed,
        ),
        PlannedRelease(
            *("influence", "regression_influence", size - 1, influence_bound(shape), 1),
            *(INFLUENCE_SHARE, forms),
            fixed=fixed,
        ),
    )


def influence_bound(shape: Shape) -> Bound:
    """Largest norm of a person's squared influences, each of which is about 1 on average.

    Those of a Gaussian person have a norm of about 3 √P. Few who are alike have a larger one, n
    over their number: of n persons up to √n are let through as they are, and the noise of the mean
    still falls with n.
    """
    return Bound(3.0 * math.sqrt(shape.features) + 2.0 * math.sqrt(sum(shape.units)), cone=True)


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


def kept_places(parameters: RegressionParameters, shape: Shape, sites: Sequence[int]) -> Array:
    """Places in z of entries, of constants of the sites that answered, and of the target."""
    parts, first = parts_of(parameters, shape, sites), shape.features - 1
    return np.asarray(np.r_[:first, first + np.flatnonzero(parts), first + len(parts)])


def query_arguments(parameters: RegressionParameters, shape: Shape) -> dict[str, Argument]:
    """What sites are to compute with, all of it decided by study and sizes."""
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
