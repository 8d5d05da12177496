"""Forecast of the networks in a mean of participants' projectors, from public numbers.

The eigenvalues of noise of d x d packed numbers with standard deviation τ end at τ√(2d). A
direction that a fraction θ of all participants' projectors have in common is detectable if θ
exceeds half of that, and its agreement with the truth is cos² = 1 − edge²/(4θ²). A finer basis
loses less of a network and has more noise.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import gammainc

from consortium.base.array import Array
from consortium.kernels.noise_law import SymmetricNoise

STRENGTHS = (0.85, 0.25)
"""Assumed fraction of the participants' projectors in the strongest of K directions and in the
last, linear between: about that of simulated participants with strong and with weak networks."""
NETWORK = 9.0
"""Assumed size of a network's regions: standard deviation of a Gaussian, mm."""
_DENSITY = 0.25
_WEIGHTS = (0.3, 1.0)
_WEAKEST = 0.5
"""Fraction of the dimensions in a simulated network, range of their weights, and the size of the
smallest network relative to the largest."""


def expected_cosines(count: int, size: int, deviation: float) -> Array:
    """Return the expected cosine of each of K directions with the truth; 0 if noise hides it.

    Parameters
    ----------
    count : int
        K.
    size : int
        d, dimensions of the basis.
    deviation : float
        τ, standard deviation of the noise in every packed number.
    """
    law = SymmetricNoise(size, deviation)
    strengths = np.linspace(*STRENGTHS, count) - count / size
    # A direction of strength θ has the released eigenvalue θ + edge²/(4θ), beyond the edge.
    visible = strengths > 1.05 * law.edge / 2.0
    return np.asarray(np.where(visible, np.sqrt(law.overlaps(strengths)), 0.0))


def usual_projector(count: int, size: int, generator: np.random.Generator) -> Array:
    """Simulate the mean of projectors of participants with usual networks, d x d.

    Networks are sparse and random, of unequal sizes, and overlap. The strengths of their directions
    fall geometrically, as those of 20 directions of real participants in 200 regions, and so do
    those beyond ``count``.

    Parameters
    ----------
    count : int
        K.
    size : int
        d, more than K.
    """
    networks = generator.uniform(*_WEIGHTS, (size, count))
    networks *= generator.random((size, count)) < _DENSITY
    networks *= np.geomspace(1.0, _WEAKEST, count)
    directions, _, _ = np.linalg.svd(networks, full_matrices=True)
    strengths = np.geomspace(*STRENGTHS, count)
    left = count - strengths.sum()
    rest = np.exp(-np.arange(1, size - count + 1) * STRENGTHS[1] / left)
    rest = np.minimum(rest * left / rest.sum(), STRENGTHS[1])
    return np.asarray((directions * np.concatenate([strengths, rest])) @ directions.T)


@dataclass(frozen=True)
class MapExtent:
    """Size of the domain of smooth maps: a brain's volume, or the area of its cortex.

    Examples
    --------
    >>> cortex = Room(160_000.0, 2)
    >>> round(cortex.size(28.0)), round(cortex.cutoff(cortex.size(28.0)), 6)
    (641, 28.0)
    """

    content: float
    """Volume in mm³, or area in mm²."""
    dimensions: Literal[2, 3] = 3

    def size(self, cutoff: float) -> float:
        """Return the approximate number of maps with waves longer than ``cutoff`` mm.

        They are blobs of a body-centred cubic lattice, or modes by Weyl's law.
        """
        if self.dimensions == 2:
            return math.pi * self.content / cutoff**2
        return 2.0 * self.content * (math.sqrt(2.0) / cutoff) ** 3

    def cutoff(self, size: float) -> float:
        """Return the inverse of `size`."""
        if self.dimensions == 2:
            return math.sqrt(math.pi * self.content / size)
        return float(math.sqrt(2.0) * (2.0 * self.content / size) ** (1.0 / 3.0))

    def resolved(self, cutoff: float) -> float:
        """Return the correlation of a usual network with its waves longer than ``cutoff`` mm."""
        # A Gaussian's energy over wave numbers is also Gaussian, in the same dimensions.
        reach = (2.0 * math.pi / cutoff * NETWORK) ** 2
        return math.sqrt(float(gammainc(self.dimensions / 2.0, reach)))


def best_cutoff(cutoffs: Array, room: MapExtent, count: int, deviation: float) -> float:
    """Return the cut-off whose maps have the largest expected correlation with usual networks.

    Parameters
    ----------
    cutoffs : array
        Candidates in mm.
    count : int
        K.
    deviation : float
        τ.
    """
    expected = []
    for cutoff in map(float, cutoffs):
        size = max(round(room.size(cutoff)), count + 1)
        expected.append(room.resolved(cutoff) * expected_cosines(count, size, deviation).mean())
    return float(cutoffs[int(np.argmax(expected))])
