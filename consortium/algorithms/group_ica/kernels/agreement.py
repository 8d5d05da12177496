"""Expected correlation of a map with the truth, from its correlation with its replays.

A replay has a noisy truth and additional noise. So weak maps agree better with the real truth than
with their replays. Strong maps agree less, since the truth is not a sum of a few directions. The
line between Fisher's z of the two was fitted to all components, whether they are found or not, of
real and simulated participants with known truth
(`python -m benchmarks.networks halves`, `calibration` and `smooth`).
"""

import numpy as np

from consortium.base.array import Array

_REPLAYED = 0.0, 0.32, 0.55, 0.87, 1.5, 5.0
"""Fisher's z of the correlation with replays."""
_TRUE = 0.0, 0.40, 0.88, 1.17, 1.59, 4.34
"""Fisher's z of the expected correlation with the truth."""
REACH = 0.6
"""Of Fisher's z: about 97 of 100 maps lie within it, and 90 in the hardest benchmark."""
REACH_AT_HOME = 0.75
"""The same of a hospital's own maps, whose direction of error is the hospital's own."""
REACH_WITH_OPEN = 0.9
"""The same of maps that an open cohort draws, whose population may differ from the hospitals'."""
_MOST = 0.9999


def of_replays(correlations: Array) -> Array:
    """Return the expected correlation with the truth of maps whose replays correlate so."""
    replayed = np.arctanh(np.clip(correlations, 0.0, _MOST))
    return np.asarray(np.tanh(np.interp(replayed, _REPLAYED, _TRUE)))


def expected_range(expected: Array, reach: float = REACH) -> tuple[Array, Array]:
    """Return the range of an expected correlation."""
    middle = np.arctanh(np.clip(expected, 0.0, _MOST))
    return np.asarray(np.tanh(np.maximum(middle - reach, 0.0))), np.asarray(np.tanh(middle + reach))
