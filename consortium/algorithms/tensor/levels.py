"""Levels of sites, as a mixture's first release tells them, and the moment without them."""

from dataclasses import dataclass

import numpy as np

from consortium.algorithms.base import Array, Release, Shape
from consortium.kernels.moments import unpack_symmetric


@dataclass(frozen=True, eq=False)
class Levels:
    """The second moment of persons whose sites' levels are taken away, and what these are.

    Parameters
    ----------
    square : array, D x D
        E[(x - o)(x - o)ᵀ], too small by ``error`` on its diagonal.
    mean : array, length D
        Of all persons; taking the offsets away leaves it.
    offsets : array, S x D
        o: each site's mean less the mean of all; zero for a site that did not answer, and where
        all sites have one constant.
    error : float
        Noise variance of sites' means in an entry, each as often as the site has persons.
    """

    square: Array
    mean: Array
    offsets: Array
    error: float


def read_levels(release: Release, constant: float, shape: Shape, places: int) -> Levels:
    """Read the second moment of (x, c e), e being one for the person's site, or for all.

    Parameters
    ----------
    constant : float
        c.
    places : int
        Entries of e.
    """
    matrix, size = unpack_symmetric(release.values), shape.features
    square, products = matrix[:size, :size], matrix[:size, size:] / constant
    if places == 1:
        return Levels(square, products[:, 0], np.zeros((1, size)), 0.0)
    present = list(release.sites or range(places))
    parts = np.array([shape.units[site] for site in present], dtype=np.float64)
    parts /= parts.sum()
    kept = products[:, present]
    mean, levels = kept.sum(axis=1), kept / parts
    offsets = np.zeros((places, size))
    offsets[present] = (levels - mean[:, None]).T
    between = (levels * parts) @ levels.T - np.outer(mean, mean)
    noise = release.deviation**2 / (2.0 * constant**2)
    return Levels(square - between, mean, offsets, float(noise * (1.0 / parts - 1.0).sum()))
