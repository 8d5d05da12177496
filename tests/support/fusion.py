"""Linked images and EEG of many participants, after the dissertation's section 7.3, as arrays.

K sources have an image and an event-related potential each. A participant's two signals are their
sums, weighted by modulation profiles: profiles of one modality are independent of each other, and
source by source correlated across the modalities. Those correlations are the truth that a canonical
correlation analysis estimates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.support.chapter import chapter_maps

Array = NDArray[np.float64]

CORRELATIONS = (0.9, 0.75, 0.6, 0.45, 0.3)
"""Correlations of the five sources' profiles across modalities."""
SIDE = 50
"""Pixels along an image's edge."""
TIMES = 106
"""Samples of a potential on one channel; 60 channels make the 6360 of section 7.3."""
CHANNELS = 60
PEAKS = ((0.10, 0.020, 1.0), (0.17, 0.025, -1.0), (0.23, 0.035, 0.8), (0.33, 0.06, 1.0))
"""Latency and width in s, and sign, of P1, N1, P2 and P3."""


@dataclass(frozen=True, eq=False)
class Fusion:
    """Two views of M participants, with their truth.

    Parameters
    ----------
    images : array, shape (D1, M)
    potentials : array, shape (D2, M)
    image_sources : array, shape (D1, K)
        Columns of norm 1.
    potential_sources : array, shape (D2, K)
        Columns of norm 1.
    image_profiles, potential_profiles : array, shape (K, M)
        Mean 0 and variance 1 in the population.
    correlations : array, shape (K,)
        Correlations of the two profiles of each source, in the population.
    """

    images: Array
    potentials: Array
    image_sources: Array
    potential_sources: Array
    image_profiles: Array
    potential_profiles: Array
    correlations: Array

    @property
    def views(self) -> tuple[Array, Array]:
        """The two views."""
        return self.images, self.potentials


def fusion_arrays(
    generator: np.random.Generator,
    *,
    subjects: int,
    correlations: Sequence[float] = CORRELATIONS,
    side: int = SIDE,
    channels: int = CHANNELS,
    times: int = TIMES,
    noise: float = 0.1,
) -> Fusion:
    """Draw the two views.

    Parameters
    ----------
    generator : numpy.random.Generator
    subjects : int
        M.
    correlations : sequence of float
        One for each of the K sources, from -1 to 1.
    side, channels, times : int
        Pixels along an image's edge, channels, and samples of each; D1 = side² and
        D2 = channels * times.
    noise : float
        Root of the white noise's energy over the signal's, both over a whole vector.

    Raises
    ------
    ValueError
        If a correlation is beyond -1 and 1, or there is none.
    """
    rank = len(correlations)
    image_sources = chapter_maps(generator, rank, side).astype(np.float64)
    image_sources /= np.linalg.norm(image_sources, axis=0)
    topographies = generator.standard_normal((channels, rank))
    potential_sources = event_related(topographies, np.linspace(-0.1, 0.6, times))
    first, second = linked_profiles(generator, correlations, subjects)
    images, potentials = image_sources @ first, potential_sources @ second
    for view in (images, potentials):
        level = noise * np.sqrt(rank / len(view))
        view += level * generator.standard_normal(view.shape)
    rho = np.asarray(correlations, dtype=np.float64)
    return Fusion(images, potentials, image_sources, potential_sources, first, second, rho)


def linked_profiles(
    generator: np.random.Generator, correlations: Sequence[float], subjects: int
) -> tuple[Array, Array]:
    """Draw the modulation profiles of two modalities, each of shape (K, M), standard normal.

    Raises
    ------
    ValueError
        If a correlation is beyond -1 and 1, or there is none.
    """
    rho = np.asarray(correlations, dtype=np.float64)[:, None]
    if not rho.size or not (np.abs(rho) <= 1).all():
        raise ValueError("give one correlation between -1 and 1 for each source")
    first, other = generator.standard_normal((2, rho.size, subjects))
    return first, rho * first + np.sqrt(1 - rho**2) * other


def waves(times: Array, count: int) -> Array:
    """Return the sources' time series, shape (K, T), of largest absolute value about 1.

    The sources have the peaks in turn. Later rounds are a little later, so all series differ.
    """
    courses = []
    for number in range(count):
        turn, place = divmod(number, len(PEAKS))
        latency, width, sign = PEAKS[place]
        centre = latency + 0.09 * turn + 0.02 * turn * place
        bump = np.exp(-0.5 * ((times - centre) / width) ** 2)
        back = 0.4 * np.exp(-0.5 * ((times - centre - 3 * width) / (1.5 * width)) ** 2)
        courses.append(sign * (bump - back))
    return np.array(courses)


def event_related(topographies: Array, times: Array) -> Array:
    """Return the sources' potentials on all channels, channel by channel.

    Parameters
    ----------
    topographies : array, shape (C, K)
    times : array, shape (T,)
        Times in s.

    Returns
    -------
    array, shape (C * T, K)
        Columns of norm 1.
    """
    courses = waves(times, topographies.shape[1])
    sources = np.einsum("ck,kt->ctk", topographies, courses).reshape(-1, topographies.shape[1])
    return np.asarray(sources / np.linalg.norm(sources, axis=0))
