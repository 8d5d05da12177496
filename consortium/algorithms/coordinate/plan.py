"""Levels of a study's views, and the weights and noise with which they are kept."""

import math
from collections.abc import Sequence

import numpy as np

from consortium.algorithms.base import MOST_SOLVED_FEATURES, PlannedRelease, Released, Shape
from consortium.algorithms.coordinate.parameters import CoordinateParameters
from consortium.algorithms.linear import check_identified
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.privacy.bounds import Bound
from consortium.privacy.gdp import mu_of
from consortium.privacy.view_bounds import Part, PartsBound, choose_weights

MOST_ROUNDING = 1e-3
"""Of the whole sensitivity: what a lattice may add to that of a view too."""
_SHARES = tuple(0.85**step for step in range(48))
"""Parts of the budget that are tried, the whole one first."""
MOST_OF_DELTA = 1e-3
"""What a graph of masks may take of the study's δ, and of a level's."""


def part_of_loss(parameters: CoordinateParameters, view: str) -> float:
    """Largest part of the person's μ that a view may cost, in the real numbers of the plan.

    What rounding to the grid and a graph of masks add at the most is taken off.

    Raises
    ------
    StudyError
        If the level is too small for that.
    """
    epsilon, delta = parameters.promise()
    if view not in parameters.levels:
        return 1.0
    part = mu_of(parameters.level(view), (1 - MOST_OF_DELTA) * delta) / mu_of(epsilon, delta)
    part = min(part, 1.0) * (1 + MOST_ROUNDING) - MOST_ROUNDING
    if part <= 0:
        raise StudyError(
            f"field 'analysis.levels': {parameters.levels[view]:g} for '{view}' is too small "
            f"beside the participant's {epsilon:g}; raise it, or leave the view out of the study."
        )
    return part


def plan_bound(parameters: CoordinateParameters, shape: Shape) -> PartsBound:
    """Weights of all views, with the least noise that their levels allow.

    Raises
    ------
    StudyError
        If the study has no such views, or a level can't be kept.
    """
    _check(parameters, shape)
    squares = parameters.target is not None
    radii = [parameters.radii.get(view, math.sqrt(size)) for view, size in shape.views]
    weights = _weights(parameters, shape, radii, budget_share(parameters, shape, radii))
    parts = tuple(
        Part(size, weight, radius)
        for (_, size), weight, radius in zip(shape.views, weights, radii, strict=False)
    )
    constant = weights[-1] if squares else 0.0
    square = math.fsum(part.norm**2 for part in parts) + constant**2
    norm = square if squares else math.sqrt(square)
    influence = None
    if parameters.randomize == "record":  # a mean of n noisy vectors has 1/n of their variance
        influence = Bound(norm, squares).spread * math.sqrt(max(shape.units))
    return PartsBound(norm, squares, influence, parts, constant, _places(parameters, shape))


def _places(parameters: CoordinateParameters, shape: Shape) -> int:
    """Constants of least squares: one for each site, or one for all."""
    separate = parameters.target is not None and parameters.site_constants
    return len(shape.units) if separate else 1


def budget_share(parameters: CoordinateParameters, shape: Shape, radii: Sequence[float]) -> float:
    """Part of the person's budget (of μ²) with which least squares are told best.

    A view with a level has the less weight the larger the part is, and an entry's product with
    another of its own view has the noise over that weight squared: with the whole budget it may
    hide the view, and with it the coefficients of all others. Least is taken the sum of noise
    variances over the products that explain; no data decide.
    """
    if parameters.target is None or not parameters.levels:
        return 1.0
    scores = [
        _products_noise(shape, _weights(parameters, shape, radii, share), parameters) / share
        for share in _SHARES
    ]
    return _SHARES[int(np.argmin(np.round(np.array(scores) / min(scores), 9)))]


def _products_noise(
    shape: Shape, weights: Sequence[float], parameters: CoordinateParameters
) -> float:
    """Variance of the noise over all products of two entries, but for the target's own square."""
    own = math.fsum(
        size / weight**2
        for (view, size), weight in zip(shape.views, weights, strict=False)
        if view != parameters.target
    )
    target = [view for view, _ in shape.views].index(str(parameters.target))
    return own * (own / 2.0 + 1.0 / weights[target] ** 2 + 1.0 / weights[-1] ** 2)


def _weights(
    parameters: CoordinateParameters, shape: Shape, radii: Sequence[float], share: float
) -> Sequence[float]:
    """Weight of every view, and with a target that of the constant, which is nobody's.

    With a part of the budget a level is a larger part of what is left.
    """
    squares, explaining = parameters.target is not None, shape.features - 1
    costs: list[float] = []
    limits: list[float] = []
    for (view, size), radius in zip(shape.views, radii, strict=True):
        # Target and constant are in a product with each of the entries that explain.
        costs.append(explaining if view == parameters.target else size)
        reach = radius if parameters.protects == "view" else min(1.0, radius)
        part = part_of_loss(parameters, view) / math.sqrt(share)
        limits.append(_largest_norm(part, squares) / reach)
    if not squares:
        return choose_weights(costs, radii, limits)
    return choose_weights([*costs, explaining], [*radii, 1.0], [*limits, math.inf])


def _largest_norm(part: float, squares: bool) -> float:
    """Norm P of a weighted view that costs ``part`` of a person whose norm is 1; infinite for all.

    The inverse of `PartsBound.part_spread`: P for a mean, 2 P √(1 - P²) for products.
    """
    if part >= 1:
        return math.inf
    if not squares:
        return part
    return part / math.sqrt(2 * (1 + math.sqrt(1 - part**2)))  # no difference of near numbers


def plan_release(parameters: CoordinateParameters, shape: Shape) -> PlannedRelease:
    """The only release, with the part of the budget that the levels leave room for.

    Raises
    ------
    StudyError
        As `plan_bound`.
    """
    bound = plan_bound(parameters, shape)
    radii = [part.radius for part in bound.parts]
    released: Released = "sum" if parameters.randomize == "mean" else "each"
    if parameters.target is not None:
        entries = packed_size(shape.features + bound.places)
        return PlannedRelease(
            *("coordinate", "coordinate_moment", entries, bound, 1),
            budget_share(parameters, shape, radii),
            released=released,
        )
    share = min(1.0, bound.norm**2)  # noise of a vector of norm 1 for one that may be shorter
    return PlannedRelease(
        "coordinate", "coordinate_mean", shape.features, bound, 1, share, released=released
    )


def _check(parameters: CoordinateParameters, shape: Shape) -> None:
    for field in ("levels", "radii"):
        for view in getattr(parameters, field):
            shape.view_slice(view, f"analysis.{field}")
    if parameters.target is None:
        return
    shape.single_entry(parameters.target, "analysis.target", "name a view of one number")
    if not 2 <= shape.features <= MOST_SOLVED_FEATURES:
        raise StudyError(
            f"field 'features': least squares needs 1 to {MOST_SOLVED_FEATURES - 1} entries "
            "beside the target; add a view, or use fewer or coarser ones."
        )
    target = shape.view_slice(parameters.target, "analysis.target").start
    check_identified(shape, target, constant=True)
