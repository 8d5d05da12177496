"""Shrinkage of a noisy number towards its expected value."""

import numpy as np

from consortium.base.array import Array


def shrinkage_factor(variance: Array | float, noise: Array | float) -> Array:
    """Return v/(v + n), and 1 without noise.

    The factor is that of the posterior mean for a normal prior and normal noise. Without noise the
    number is exact, so it is not shrunk, even if the prior variance is zero.

    Parameters
    ----------
    variance : array or float
        v, variance of the number before it was released, at least 0.
    noise : array or float
        n, variance of the noise in it, at least 0.

    Examples
    --------
    >>> shrinkage_factor(np.array([1.0, 0.0, 0.0]), np.array([3.0, 3.0, 0.0])).tolist()
    [0.25, 0.0, 1.0]
    """
    total = np.asarray(variance, dtype=np.float64) + noise
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(np.equal(noise, 0), 1.0, variance / total))
