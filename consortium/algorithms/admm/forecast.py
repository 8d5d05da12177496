"""How well the neighbours' model is expected to tell persons, from an assumed effect.

Assumed: both labels are equally frequent and alike in all hospitals, entries vary as a normal law
does, are as large as each other and fill half of the bound's square; the best rule tells the share
rightly that the study assumes.
"""

import math
from collections.abc import Mapping
from functools import partial

import numpy as np

from consortium.algorithms.admm.plan import AdmmPlan
from consortium.algorithms.admm.result import gathered_floor
from consortium.algorithms.assumed import round_deviation
from consortium.algorithms.assumed_persons import (
    Classes,
    class_means,
    expected_accuracy,
    sizes_drawn,
)
from consortium.algorithms.base import Array, Expectation
from consortium.algorithms.simulated_run import trained

FILLED = 0.5
"""Assumed part of the bound's square that a person's entries fill."""


def expect(plan: AdmmPlan) -> tuple[Expectation, ...]:
    """Accuracy on new persons, if an effect is assumed, and what a coefficient must pass.

    The range is that of half of the draws. Where persons are too many to be drawn, fewer stand for
    them, and chance is counted larger than it is.
    """
    noise = round_deviation(plan.releases[0], plan.shape)
    floor = gathered_floor(plan, plan.broadcasts, noise)
    told = () if plan.parameters.detect is None else (_accuracy(plan),)
    return *told, Expectation("least coefficient that is found", floor, rises=False)


def assumed_labels(plan: AdmmPlan, generator: np.random.Generator) -> Classes:
    """Persons as the study assumes them."""
    entries = plan.shape.features - 1
    means = class_means(float(plan.parameters.detect or 0.5), 2, entries, generator)
    spread = plan.parameters.bound * math.sqrt(FILLED / entries)
    return Classes(means, np.full(entries, spread))


def with_label(plan: AdmmPlan, entries: Array, kinds: Array) -> Array:
    """A site's table, with the label in its place."""
    return np.insert(entries, plan.target, np.where(kinds > 0, 1.0, -1.0), axis=0)


def _accuracy(plan: AdmmPlan) -> Expectation:
    sizes = sizes_drawn(plan.shape, plan.entries, plan.broadcasts)
    law, table = partial(assumed_labels, plan), partial(with_label, plan)
    return expected_accuracy(
        [
            told_rightly(result.arrays, plan.target, entries, kinds)
            for result, entries, kinds in trained(plan, sizes, law, table)
        ]
    )


def told_rightly(arrays: Mapping[str, Array], target: int, entries: Array, kinds: Array) -> float:
    """Share of persons whose label the sites' mean model names."""
    weights = np.delete(arrays["coefficients"][:, 0], target)
    odds = weights @ entries + float(np.sum(arrays["intercept"]))
    return float(np.mean((odds > 0) == (kinds > 0)))
