"""What a model makes of the coefficients of least squares."""

import numpy as np

from consortium.algorithms.linear import Model
from consortium.algorithms.regression.kernels.logistic_from_moments import TAYLOR, logistic_factor
from consortium.algorithms.regression.parameters import RegressionParameters
from consortium.kernels.noisy_least_squares import ExplainedShare, Fit
from consortium.kernels.noisy_moment import NoisyMoment

_MOST_VARIANCE = 0.999  # of what explains labels of -1 and +1


def model_of(parameters: RegressionParameters, fit: Fit, share: ExplainedShare | None) -> Model:
    """Turn least squares into the model.

    Minimizing c20 s² + c11 s y + c10 s over b and w gives w = -c11 / (2 c20) times least squares,
    and constants that are moved by -c10 / (2 c20).
    """
    if parameters.cost is not None:
        (_, (linear, mixed), (square,)) = parameters.cost
        factor = -mixed / (2 * square)
        return Model(factor, factor, factor, -linear / (2 * square))
    if parameters.model == "linear":
        return Model()
    if parameters.approximation == "taylor":
        return Model(TAYLOR, TAYLOR, TAYLOR)
    return _logistic(fit.moment, share)


def _logistic(moment: NoisyMoment, share: ExplainedShare | None) -> Model:
    """Range of the factor over the interval of what is explained, with sites' means or the whole's.

    Means of small sites are mostly noise, and their mean is not; the truth is between.
    """
    at, parts = moment.constants, moment.parts
    own = moment.matrix[at, -1] / (np.where(parts > 0, parts, 1.0) * moment.weights[at])
    means = own / moment.weights[-1]
    groups = [(means.tolist(), parts.tolist())]
    if len(parts) > 1:
        groups.append(([float(parts @ means)], [1.0]))
    low, high = (share.low * share.variance, share.high * share.variance) if share else (0.0, 1.0)
    ends = [
        logistic_factor(min(max(variance, 0.0), _MOST_VARIANCE), *group)
        for variance in (low, high)
        for group in groups
    ]
    likely = share.value * share.variance if share else 0.0
    factor = logistic_factor(min(max(likely, 0.0), _MOST_VARIANCE), *groups[0])
    return Model(factor, min(ends), max(ends), least_squares=False)
