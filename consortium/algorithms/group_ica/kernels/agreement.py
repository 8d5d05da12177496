"""What a replay's correlation says of the truth.

Replays have a noisy truth and its noise again, so that weak maps agree better with the real truth
than with their replays; strong ones do worse, since the truth is no sum of a few directions. The
line between Fisher's z of the two, and how far maps lie from it, were measured where the truth is
known (`python -m benchmarks.networks calibration`, `smooth` and `halves`).
"""

import numpy as np

from consortium.base.array import Array

_START, _SLOPE = 0.78, 0.56
_LEAST = 0.7
"""Below, maps were too few and too different for a line: a straight part from nothing."""
REACH = 0.6
"""Of Fisher's z: about 97 of 100 maps lie within it, on the least kind bench 90."""
REACH_AT_HOME = 0.75
"""The same of a hospital's own maps, whose direction of error is the hospital's own."""
_MOST = 0.9999


def of_replays(correlations: Array) -> Array:
    """Expected correlation with the truth of maps whose replays agree with them so well."""
    return np.asarray(
        np.where(
            correlations < _LEAST,
            correlations / _LEAST * _line(np.array(_LEAST)),
            _line(np.maximum(correlations, _LEAST)),
        )
    )


def expected_range(expected: Array, reach: float = REACH) -> tuple[Array, Array]:
    """Ends of the range of an expected correlation."""
    middle = np.arctanh(np.clip(expected, 0.0, _MOST))
    return np.asarray(np.tanh(np.maximum(middle - reach, 0.0))), np.asarray(np.tanh(middle + reach))


def _line(correlations: Array) -> Array:
    return np.asarray(np.tanh(_START + _SLOPE * np.arctanh(np.minimum(correlations, _MOST))))
