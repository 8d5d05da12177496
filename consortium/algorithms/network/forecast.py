"""Forecast of a network's accuracy, from public numbers and an assumed effect.

Assumptions: classes are equally frequent in all hospitals. Entries are normal with standard
deviation 0.4, or in a view of more than six entries with one over the root of their number, as in
views of norm 1. The best rule has the accuracy that the study assumes.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.assumed_persons import (
    Classes,
    class_means,
    expected_accuracy,
    sizes_drawn,
    usual_spread,
)
from consortium.algorithms.base import Array, Expectation, Release
from consortium.algorithms.findings import Finding
from consortium.algorithms.network.kernels.classifier import predict
from consortium.algorithms.network.result import measured_accuracy
from consortium.algorithms.network.site import HELD_WEIGHT
from consortium.algorithms.simulated_run import NO_EFFECT, train_on_assumed

if TYPE_CHECKING:
    from consortium.algorithms.network.centre import NeuralNetwork


def expect(plan: NeuralNetwork) -> tuple[Expectation, ...]:
    """Forecast the accuracy on new participants for an assumed effect, and the detectable one.

    The range is that of half of the draws. If there are too many participants to draw, fewer are
    drawn, which overstates the sampling error.
    """
    parameters = plan.parameters
    likely = list[Expectation]()
    if is_assumed(plan):
        likely = _foretold(plan)
    if parameters.held_out:
        least = _least_advantage(plan)
        likely.append(
            Expectation("least advantage over the largest class that is seen", least, rises=False)
        )
    noise = plan.releases[0].round_deviation(plan.shape) * math.sqrt(plan.count) / parameters.bound
    return *likely, Expectation(
        "norm of a round's noise over the clipping bound", noise, rises=False
    )


def why_withheld(plan: NeuralNetwork) -> str:
    """Return why there is no forecast of the accuracy; empty if there is one."""
    if is_assumed(plan):
        return ""
    if plan.parameters.detect is not None:
        return "No accuracy is forecast: with more classes than entries none can be assumed."
    return NO_EFFECT


def is_assumed(plan: NeuralNetwork) -> bool:
    """Return whether the study assumes an effect that its entries can have."""
    return plan.parameters.detect is not None and _kinds(plan) <= _entries(plan) + 1


def assumed_classes(plan: NeuralNetwork, generator: np.random.Generator) -> Classes:
    """Draw participants in classes as a study of `network` assumes them."""
    accuracy = float(plan.parameters.detect or 0.0)
    return Classes(class_means(accuracy, _kinds(plan), _entries(plan), generator), _spread(plan))


def with_target(plan: NeuralNetwork, entries: Array, kinds: Array) -> Array:
    """Return a site's table of participants with the class in its place, for a forecast."""
    if plan.classes == 1:
        target = np.where(kinds > 0, 1.0, -1.0)[None]
    else:
        target = np.eye(plan.classes)[:, kinds]
    inside = np.clip(entries, -1.0, 1.0)
    at = plan.target.start
    return np.vstack([inside[:at], target, inside[at:]])


def _foretold(plan: NeuralNetwork) -> list[Expectation]:
    right = []
    found = []
    sizes = sizes_drawn(plan.shape, plan.count, plan.parameters.rounds)
    law = partial(assumed_classes, plan)
    table = partial(with_target, plan)
    for result, entries, kinds in train_on_assumed(plan, sizes, law, table):
        units = tuple(int(size) for size in result.arrays["units"])
        chances = predict(result.arrays["parameters"], units, np.clip(entries, -1.0, 1.0))
        guessed = chances.argmax(axis=0) if len(chances) > 1 else chances[0] > 0.5
        right.append(float(np.mean(guessed == kinds)))
        measured = result.tables["accuracy"].rows[0][1]
        found.append(isinstance(measured, Finding) and measured.state == "found")
    accuracy = expected_accuracy(right)
    chance = Expectation(
        "chance that it is found to be above the largest class", float(np.mean(found))
    )
    return [accuracy, chance] if plan.parameters.held_out else [accuracy]


def _least_advantage(plan: NeuralNetwork) -> float:
    """Return the detectable accuracy above the largest of equal classes; 1 if none is."""
    persons = sum(plan.shape.units)
    part = plan.parameters.held_out
    value = 1.0 / _kinds(plan)
    level = plan.releases[1].round_deviation(plan.shape)
    values = np.array([HELD_WEIGHT * part, (value - 0.5) * part, value])
    _, above = measured_accuracy(Release(values, level), persons, plan.parameters)
    return float(above.high - above.value) if above.reported else 1.0


def _kinds(plan: NeuralNetwork) -> int:
    return max(plan.classes, 2)


def _entries(plan: NeuralNetwork) -> int:
    return plan.shape.features - plan.classes


def _spread(plan: NeuralNetwork) -> Array:
    sizes = [size for name, size in plan.shape.views if name != plan.parameters.target]
    return np.repeat([usual_spread(size) for size in sizes], sizes)
