"""A site's half of `network`: gradients of training participants, and counts of the held-out ones.

Sensitivity of the accuracy. Among n participants, h are held out, r of these are classified
correctly, and l of the n are of the largest class at the site. Replacing one participant moves l by
at most one. If both are held out, h stays and r moves by at most one. If only one of the two is
held out, h moves by one, and r by zero or by one in the same direction. So (√.75 h, r - h/2, l)
moves by √(1 + 1), by √(.75 + 1/4 + 1) or by 1: by at most √2 for any replacement, and its norm is
at most √2 n.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.network.kernels.classifier import predict, sum_clipped_gradients
from consortium.algorithms.site_constants import site_constants
from consortium.privacy.bounds import Bound

if TYPE_CHECKING:
    from consortium.algorithms.network.centre import NeuralNetwork

CONSTANT = 0.5
"""Input of a participant's own site; entries are between -1 and 1."""
HELD_WEIGHT = math.sqrt(0.75)


def mean_gradient(plan: NeuralNetwork, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean over all participants of clipped gradients of the training ones."""
    inputs, labels, trains = _persons(plan, data, query)
    parameters = query.arguments["parameters"]
    total: Array = sum_clipped_gradients(
        parameters=parameters,
        sizes=plan.sizes,
        inputs=inputs,
        labels=labels,
        bound=bound.norm,
        counted=trains,
    )
    total /= len(trains)
    return total


def accuracy_counts(plan: NeuralNetwork, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return (√.75 h, r - h/2, l) over all participants, scaled from √2 to the bound."""
    inputs, labels, trains = _persons(plan, data, query)
    with np.errstate(all="ignore"):
        outputs = predict(query.arguments["parameters"], plan.sizes, inputs)
    single = plan.classes == 1
    guessed = (outputs[0] > 0.5).astype(int) if single else outputs.argmax(axis=0)
    kinds = (labels[0] > 0.5).astype(int) if single else labels.argmax(axis=0)
    held = float(np.count_nonzero(~trains))
    right = float(np.count_nonzero((guessed == kinds) & ~trains))
    largest = float(np.bincount(kinds).max())
    counts = np.array([HELD_WEIGHT * held, right - held / 2.0, largest])
    return np.asarray(counts * min(bound.norm, bound.spread) / math.sqrt(2.0) / len(trains))


def _persons(
    plan: NeuralNetwork, data: SiteData, query: Query
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return inputs and labels of the participants, and which of them train."""
    raw = data.table()
    target = plan.target
    table = np.asarray(raw, dtype=np.float64)
    labels = table[target]
    if plan.classes == 1:
        labels = (labels + 1.0) / 2.0  # levels are -1 and +1
    constants = CONSTANT * site_constants(plan.places, query.site, raw.shape[1])
    inputs = np.vstack([np.delete(table, target, axis=0), constants])
    return inputs, np.clip(labels, 0.0, 1.0), who_trains(raw, plan.parameters.held_out)


def who_trains(table: Array, held_out: float) -> NDArray[np.bool_]:
    """Draw the training participants by a hash of the participant's own vector only.

    Other participants and their order don't affect the draw: replacing one participant moves one
    participant. The budget is charged for both statistics. So another vector may change between
    training and test.
    """
    persons = np.ascontiguousarray(table.T, dtype=np.float32)
    limit = int(held_out * 2.0**64)
    return np.array(
        [
            int.from_bytes(blake2b(each.tobytes(), digest_size=8).digest(), "big") >= limit
            for each in persons
        ],
        dtype=np.bool_,
    )
