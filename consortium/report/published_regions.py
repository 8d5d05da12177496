"""A name for a peak where a study names no atlas: the nearest of 160 published regions.

Centres of regions in MNI space and the network of each: N. U. F. Dosenbach et al., Prediction of
individual brain maturity using fMRI, Science 329 (2010), 1358-1361. nilearn carries them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NEAR = 15.0
"""Millimetres beyond which no region is near."""


class Region(NamedTuple):
    """A region's name, and the network that it was found in."""

    name: str
    network: str


def nearest_region(peak: NDArray[np.floating]) -> Region | None:
    """The region whose centre is nearest to a place in mm of MNI space; None beyond `NEAR`."""
    centres, regions = _published()
    distances = np.linalg.norm(centres - peak, axis=1)
    place = int(distances.argmin())
    return regions[place] if distances[place] <= NEAR else None


@lru_cache(maxsize=1)
def _published() -> tuple[NDArray[np.float64], list[Region]]:
    from nilearn.datasets import fetch_coords_dosenbach_2010

    found = fetch_coords_dosenbach_2010()
    names = (str(label).rpartition(" ")[0] for label in found.labels)  # without their numbers
    regions = [Region(*pair) for pair in zip(names, map(str, found.networks), strict=True)]
    centres = np.column_stack([np.asarray(found.rois[axis]) for axis in "xyz"])
    return centres.astype(np.float64), regions
