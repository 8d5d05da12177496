"""A trained network, and its accuracy on held-out participants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from consortium.algorithms.base import Array, Captions, Release, Result, Table
from consortium.algorithms.findings import Finding, State
from consortium.algorithms.network.kernels.classifier import layers
from consortium.algorithms.network.parameters import NetworkParameters
from consortium.algorithms.network.site import CONSTANT, HELD_WEIGHT
from consortium.base.formatting import percent

if TYPE_CHECKING:
    from consortium.algorithms.network.centre import NeuralNetwork

_UNKNOWN = 0.9  # width of an interval without information about an accuracy
_NOTHING = (Finding(state="withheld"), Finding(state="withheld"))


def measured_accuracy(
    release: Release, persons: int, parameters: NetworkParameters
) -> tuple[Finding, Finding]:
    """Estimate the accuracy on held-out participants, and its excess over prediction by site only.

    The latter is the share of each site's largest class. The fraction of held-out participants is
    estimated from the release and from their drawing, each with its own variance.
    """
    measured, right, largest = release.values / np.array([HELD_WEIGHT, 1.0, 1.0])
    noise = release.deviation**2
    part = parameters.held_out
    held, held_variance = _pooled(
        measured, noise / HELD_WEIGHT**2, part, part * (1.0 - part) / persons
    )
    if held <= 0:
        return _NOTHING
    value, top = (float(np.clip(each, 0.0, 1.0)) for each in (0.5 + right / held, largest))
    unsure = (noise + (value - 0.5) ** 2 * held_variance) / held**2
    chance = _binomial(value, persons) / held
    width = -float(ndtri((1.0 - parameters.confidence) / 2.0))
    low, high = _interval(value, unsure, held * persons, width)
    if high - low >= _UNKNOWN:
        return _NOTHING
    # The held-out participants are among those whose largest class is released.
    shared = 2.0 * np.sqrt(min(held, 1.0) * chance * _binomial(top, persons))
    apart = unsure + noise + chance + _binomial(top, persons) + shared
    above = value - largest
    margin = width * float(np.sqrt(apart))
    state: State = "found" if above > margin else "not found"
    return Finding(value, low, high, state), Finding(above, above - margin, above + margin, state)


def _interval(value: float, noise: float, many: float, width: float) -> tuple[float, float]:
    """Return limits of p with (value - p)² ≤ width² (noise + p (1 - p) / many) (Wilson)."""
    ratio = width**2 / many
    middle = value + ratio / 2.0
    square = value**2 - width**2 * noise
    half = float(np.sqrt(max(middle**2 - (1.0 + ratio) * square, 0.0)))
    ends = (middle - half) / (1.0 + ratio), (middle + half) / (1.0 + ratio)
    return max(ends[0], 0.0), min(ends[1], 1.0)


def _binomial(share: float, persons: int) -> float:
    """Return the sampling variance of a share of participants."""
    likely = min(max(share, 1.0 / persons), 1.0 - 1.0 / persons)
    return likely * (1.0 - likely) / persons


def _pooled(
    first: float, first_variance: float, second: float, second_variance: float
) -> tuple[float, float]:
    """Return the precision-weighted mean of two estimates, and its variance."""
    weight = second_variance / (first_variance + second_variance)
    return weight * first + (1.0 - weight) * second, first_variance * weight


def network_result(
    plan: NeuralNetwork,
    trained: Array,
    norms: Sequence[float],
    noise: float,
    accuracy: tuple[Finding, Finding] = _NOTHING,
) -> Result:
    """Put the parameters, their accuracy and the rounds into arrays and tables."""
    target = plan.target
    places = plan.places
    sizes = plan.sizes
    first, *rest = layers(trained, sizes)
    entries = first.shape[1] - 1 - places
    sites = CONSTANT * first[:, 1 + entries :]
    middle = first[:, : 1 + entries].copy()
    if places:
        middle[:, 0] += sites @ (np.array(plan.shape.units) / sum(plan.shape.units))
    loadings = np.insert(middle[:, 1:].T, [target.start] * plan.classes, 0.0, axis=0)
    arrays = {
        "parameters": np.concatenate([each.ravel() for each in (middle, *rest)]),
        "units": np.array((entries, *sizes[1:]), dtype=np.float64),
        "first_layer": loadings,
    }
    if places:
        arrays["site_biases"] = first[:, :1] + sites
    numbers = {
        "parameters": len(trained),
        "rounds": len(norms),
        "gradient_noise": noise,
        "site_constants": places,
    }
    words = Captions(
        "unit",
        _headline(*accuracy),
        "Weight of each entry in a unit of the first layer; no weight has an interval.",
        found=accuracy[0].state == "found",
    )
    tables = {"accuracy": _accuracy(accuracy, places), "gradients": _gradients(norms, noise)}
    return Result(arrays, numbers, loadings="first_layer", tables=tables, captions=words)


def _accuracy(accuracy: tuple[Finding, Finding], places: int) -> Table:
    known = "is given" if places else "is not given"
    return Table(
        "Measured on participants who trained nothing, with intervals that count the noise of "
        f"privacy and chance. The site by itself predicts its largest class; the network {known} "
        "the site. No weight has an interval.",
        ("persons", "share"),
        (
            ("classified correctly", accuracy[0]),
            ("above the largest class of each site", accuracy[1]),
        ),
    )


def _gradients(norms: Sequence[float], noise: float) -> Table:
    return Table(
        "Norm of the mean clipped gradient with its noise, round by round; noise by itself has "
        f"{noise:.3g}.",
        ("round", "norm"),
        tuple(enumerate(norms, 1)),
    )


def _headline(accuracy: Finding, above: Finding) -> str:
    if not accuracy.reported:
        return "Nothing can be reported of the network's accuracy: the noise leaves none."
    if accuracy.state != "found":
        return (
            "The network was not found to classify participants better than the largest class of "
            "their site does; at this ε and number of participants an advantage below "
            f"{percent(above.high - above.value)} of them would not be seen."
        )
    return (
        f"The network classifies {percent(accuracy.value)} of held-out participants correctly, "
        "more than the largest class of each site has."
    )
