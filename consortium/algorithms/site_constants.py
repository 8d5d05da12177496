"""A constant of a model for each site, and what becomes public with it."""

import numpy as np

from consortium.algorithms.base import Array

SITE_MEANS = (
    "Every site has a constant of its own: noisy means of its participants' entries become public."
)


def site_constants(places: int, site: int, persons: int) -> Array:
    """Give every person a one in the place of the own site, and zeros in the others.

    Returns
    -------
    array, places x persons
        Where there is one place, it is everybody's; there may be none.
    """
    rows = np.zeros((places, persons))
    rows[site if places > 1 else slice(None)] = 1.0
    return rows
