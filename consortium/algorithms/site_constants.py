"""A constant of a model for each site, and what becomes public with it."""

import numpy as np

from consortium.algorithms.base import Array

SITE_MEANS = (
    "Every site has a constant of its own: noisy means of its participants' entries become public."
)


def site_constants(places: int, site: int, persons: int) -> Array:
    """Return a one for each participant's own site, and zeros for the others.

    Returns
    -------
    array, places x participants
        A single place is common to all participants; there may be none.
    """
    rows = np.zeros((places, persons))
    rows[site if places > 1 else slice(None)] = 1.0
    return rows
