"""From the released moment of a regression to what least squares are asked."""

from functools import partial

import numpy as np

from consortium.algorithms.base import (
    Release,
    Shape,
)
from consortium.algorithms.linear import LeastSquaresQuestion
from consortium.algorithms.regression.models import model_of
from consortium.algorithms.regression.parameters import RegressionParameters
from consortium.algorithms.regression.plan import (
    constants,
    kept_places,
    parts_of,
    release_weights,
    target_entry,
)
from consortium.kernels.moments import unpack_symmetric
from consortium.kernels.noisy_moment import NoisyMoment, noisy_moment

_SMALLER = (
    " They are those of the published polynomial, which are smaller than the logistic model's."
)


def present_sites(release: Release, shape: Shape) -> tuple[int, ...]:
    """Sites that a release is of."""
    return release.sites or tuple(range(len(shape.units)))


def read_moment(release: Release, parameters: RegressionParameters, shape: Shape) -> NoisyMoment:
    """Undo the packing, and leave out constants of sites that did not answer."""
    present = present_sites(release, shape)
    parts, kept = parts_of(parameters, shape, present), kept_places(parameters, shape, present)
    matrix = unpack_symmetric(release.values)[np.ix_(kept, kept)]
    weights = release_weights(parameters, shape)[kept]
    units = sum(shape.units[site] for site in present)
    still = shape.still_directions(target_entry(parameters, shape), parameters.intercept)
    return noisy_moment(matrix, weights, parts[parts > 0], release.deviation, units, still)


def regression_question(parameters: RegressionParameters, shape: Shape) -> LeastSquaresQuestion:
    """What the study asks of least squares."""
    published = parameters.model == "logistic" and parameters.approximation == "taylor"
    return LeastSquaresQuestion(
        parameters.target,
        target_entry(parameters, shape),
        parameters.confidence,
        parameters.intercept,
        constants(parameters, shape) > 1,
        partial(model_of, parameters),
        _SMALLER if published else "",
    )
