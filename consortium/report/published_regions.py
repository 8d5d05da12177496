"""A name for a peak where a study names no atlas: the nearest of 160 published regions.

Centres of regions in MNI space and the network of each: N. U. F. Dosenbach et al., Prediction of
individual brain maturity using fMRI, Science 329 (2010), 1358-1361. nilearn carries them.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NEAR = 15.0
"""Millimetres beyond which no region is near."""
_WORDS = {
    "ACC": "anterior cingulate",
    "IPL": "inferior parietal lobule",
    "IPS": "intraparietal sulcus",
    "SMA": "supplementary motor area",
    "TPJ": "temporoparietal junction",
    "aPFC": "anterior prefrontal cortex",
    "ant": "anterior",
    "dACC": "dorsal anterior cingulate",
    "dFC": "dorsal frontal cortex",
    "dlPFC": "dorsolateral prefrontal cortex",
    "inf": "inferior",
    "lat": "lateral",
    "mFC": "medial frontal cortex",
    "mPFC": "medial prefrontal cortex",
    "med": "medial",
    "mid": "middle",
    "post": "posterior",
    "pre-SMA": "pre-supplementary motor area",
    "sup": "superior",
    "vFC": "ventral frontal cortex",
    "vPFC": "ventral prefrontal cortex",
    "vent": "ventral",
    "vlPFC": "ventrolateral prefrontal cortex",
    "vmPFC": "ventromedial prefrontal cortex",
}


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
    # A label ends in the region's number.
    names = (
        " ".join(_WORDS.get(word, word) for word in str(label).split()[:-1])
        for label in found.labels
    )
    regions = [Region(*pair) for pair in zip(names, map(str, found.networks), strict=True)]
    centres = np.column_stack([np.asarray(found.rois[axis]) for axis in "xyz"])
    return centres.astype(np.float64), regions
