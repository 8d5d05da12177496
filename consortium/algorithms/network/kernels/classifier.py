"""A fully connected classifier: its outputs, and gradients clipped by participant.

The gradient of a participant's loss in a layer is the outer product δ (a; 1)ᵀ of the backward
signal and the input. So its norm is ‖δ‖ √(‖a‖² + 1) (Goodfellow 2015), and the clipped sum is one
product of matrices: no participant's gradient is formed.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from scipy.special import expit, softmax

from consortium.base.array import Array
from consortium.kernels.tiles import filled_up, product_of_columns
from consortium.privacy.clipping import clip_products

_CHUNK = 2048  # participants whose activations fit into the processor's cache


def parameter_count(sizes: Sequence[int]) -> int:
    """Return the number of a classifier's weights and biases, for its layers' units."""
    return sum((before + 1) * units for before, units in pairwise(sizes))


def layers(parameters: Array, sizes: Sequence[int]) -> list[Array]:
    """Return views of a classifier's flat vector, a matrix (bias | weights) for each layer."""
    found = []
    start = 0
    for before, units in pairwise(sizes):
        stop = start + (before + 1) * units
        found.append(parameters[start:stop].reshape(units, before + 1))
        start = stop
    return found


def initial_parameters(sizes: Sequence[int], seed: int) -> Array:
    """Return public random weights of a classifier (He et al. 2015: 2/D_{l-1}) and zero biases."""
    generator = np.random.default_rng(seed)
    parts = []
    for before, units in pairwise(sizes):
        weights = generator.standard_normal((units, before)) * np.sqrt(2.0 / before)
        parts.append(np.hstack([np.zeros((units, 1)), weights]).ravel())
    return np.concatenate(parts)


def predict(parameters: Array, sizes: Sequence[int], inputs: Array) -> Array:
    """Return a classifier's probabilities, D_L x N, or of the second of two classes if D_L is 1.

    Parameters
    ----------
    parameters : array
        Flat, as from `initial_parameters`.
    sizes : sequence of int
        D_0, ..., D_L.
    inputs : array, D_0 x N
    """
    return _forward(layers(parameters, sizes), filled_up(inputs))[-1][:, : inputs.shape[1]]


def sum_clipped_gradients(
    parameters: Array,
    sizes: Sequence[int],
    inputs: Array,
    labels: Array,
    bound: float,
    counted: Array | None = None,
) -> Array:
    """Sum the gradients of cross-entropy over participants, each clipped to norm ``bound``.

    Every product gives a participant the same result for any others (`consortium.kernels.tiles`):
    hostile parameters can make rounding arbitrarily large, and one participant more or fewer must
    not change the gradients of all others.

    A participant whose gradient overflowed counts as zero: an error would reveal the size of the
    data.

    Parameters
    ----------
    parameters, sizes
        As in `predict`.
    inputs : array, D_0 x N, float64
    labels : array, D_L x N
        From 0 to 1.
    counted : array of bool, shape (N,), optional
        Participants whose gradients are added (default: all).

    Returns
    -------
    array
        Flat, as the parameters.
    """
    weights = np.ones(inputs.shape[1]) if counted is None else counted.astype(np.float64)
    matrices = layers(parameters, sizes)
    totals = [np.zeros(matrix.shape) for matrix in matrices]
    for start in range(0, inputs.shape[1], _CHUNK):
        part = slice(start, start + _CHUNK)
        columns = filled_up(inputs[:, part])
        wanted = filled_up(labels[:, part])
        count = inputs[:, part].shape[1]
        with np.errstate(over="ignore", invalid="ignore"):
            pairs = [
                (back[:, :count], ahead[:, :count])
                for back, ahead in _backward(matrices, columns, wanted)
            ]
        for total, (back, ahead) in zip(totals, clip_products(pairs, bound), strict=True):
            total += (back * weights[part]) @ ahead.T
    return np.concatenate([total.ravel() for total in totals])


def _forward(matrices: Sequence[Array], inputs: Array) -> list[Array]:
    """Return the input of each layer, and the output of the last."""
    values = [inputs]
    for matrix in matrices:
        sums = product_of_columns(matrix[:, 1:], values[-1]) + matrix[:, :1]
        values.append(np.maximum(sums, 0.0))
    values[-1] = expit(sums) if len(sums) == 1 else softmax(sums, axis=0)
    return values


def _backward(
    matrices: Sequence[Array], inputs: Array, labels: Array
) -> Iterator[tuple[Array, Array]]:
    """Return per layer, first to last: δ (D_l x N) and one above the input ((1 + D_{l-1}) x N)."""
    values = _forward(matrices, inputs)
    back = values[-1] - labels
    found = []
    for index in reversed(range(len(matrices))):
        found.append((back, np.vstack([np.ones((1, values[index].shape[1])), values[index]])))
        if index:
            back = product_of_columns(matrices[index][:, 1:].T, back) * (values[index] > 0)
    yield from reversed(found)
