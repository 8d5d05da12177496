"""A classifier network that all sites train together, round by round.

Source: dissertation section 3.4. Each person's gradient is clipped to a public norm over all
layers together (Abadi et al. 2016), all persons take part in every round, and the centre descends
along the noisy mean with momentum. Replacing a person moves the mean by 2 B / n. What is returned
is the mean of the last rounds' parameters, in which their noise averages out at no cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from consortium.algorithms.base import (
    MOST_ENTRIES_A_ROUND,
    Argument,
    Array,
    Case,
    Form,
    Local,
    PlannedRelease,
    Query,
    Result,
    Run,
    Shape,
    SiteData,
    Table,
    Takes,
    forms_of,
)
from consortium.algorithms.query_arguments import array_argument, index_argument
from consortium.errors import ProtocolError, StudyError
from consortium.frozen_model import FrozenModel
from consortium.kernels.classifier import (
    initial_parameters,
    layers,
    parameter_count,
    sum_clipped_gradients,
)
from consortium.privacy.bounds import Bound


class NetworkParameters(FrozenModel):
    """Parameters of `network`."""

    target: str = Field(
        description="View that is told from all others: a column of two levels, or of more, with "
        "one entry each."
    )
    hidden: tuple[int, ...] = Field(
        default=(16,), max_length=8, description="Units of the hidden layers, inputs first."
    )
    rounds: int = Field(
        default=60, ge=1, le=2000, description="Rounds, each with an equal part of the budget."
    )
    bound: float = Field(
        default=1.0, gt=0, description="Clipping bound of a person's gradient (Euclidean norm)."
    )
    learning_rate: float = Field(
        default=1.0,
        gt=0,
        description="Step over the gradient where there is no noise; smaller where there is.",
    )
    momentum: float = Field(
        default=0.8, ge=0, lt=1, description="Part of the last step that goes on."
    )
    averaged: float = Field(
        default=0.3,
        gt=0,
        le=1,
        description="Part of the rounds, the last ones, whose parameters are averaged.",
    )
    seed: int = Field(default=0, ge=0, lt=2**32, description="Of the public first weights.")


def _gradient(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of their clipped gradients, as many entries as parameters."""
    target = index_argument(query, "target", data.features)
    parameters = array_argument(query, "parameters", 1).astype(np.float64)
    sizes = _checked_sizes(query, data.features - target, data.features, len(parameters))
    classes = sizes[-1]
    table = np.asarray(data.table(), dtype=np.float64)
    labels = table[target : target + classes]
    if classes == 1:
        labels = (labels + 1.0) / 2.0  # levels are -1 and +1
    inputs = np.delete(table, slice(target, target + classes), axis=0)
    total: Array = sum_clipped_gradients(
        parameters, sizes, inputs, np.clip(labels, 0.0, 1.0), bound.norm
    )
    total /= table.shape[1]
    return total


def _checked_sizes(query: Query, most: int, features: int, count: int) -> tuple[int, ...]:
    """Units of all layers, from the query's hidden layers and classes."""
    units = array_argument(query, "units", 1)
    whole = len(units) and bool(np.all((units >= 1) & (units < 2**31) & (units % 1 == 0)))
    if not whole or units[-1] > most:
        raise ProtocolError("The query's 'units' don't fit the data; discard it.")
    sizes = (features - int(units[-1]), *map(int, units))
    if sizes[0] < 1 or parameter_count(sizes) != count:
        raise ProtocolError("The query's 'parameters' don't fit its 'units'; discard it.")
    return sizes


class Network:
    """As many releases as rounds, of one number for each weight and bias."""

    name = "network"
    title = "jointly trained network"
    takes: Takes = "features"
    needs_means = False
    Parameters = NetworkParameters
    statistics: ClassVar[Mapping[str, Local]] = {"network_gradient": _gradient}
    cases: ClassVar[Sequence[Case]] = (
        Case({"target": "y", "hidden": [3], "rounds": 3, "bound": 0.3}, views=(("x", 4), ("y", 1))),
        Case({"target": "kind", "hidden": [3, 2], "rounds": 2}, views=(("kind", 3), ("x", 4))),
    )

    def releases(self, parameters: NetworkParameters, shape: Shape) -> tuple[PlannedRelease]:
        """Equal rounds with the whole budget."""
        _, sizes = _sizes(parameters, shape)
        count = parameter_count(sizes)
        if count > MOST_ENTRIES_A_ROUND:
            raise StudyError(
                f"field 'analysis.hidden': the network has {count:,} parameters, more than "
                f"{MOST_ENTRIES_A_ROUND:,}; use fewer units."
            )
        fixed = _fixed(parameters, shape)
        forms: dict[str, Form] = {"parameters": (count,), **forms_of(fixed)}
        bound, rounds = Bound(parameters.bound), parameters.rounds
        return (
            PlannedRelease(
                "network", "network_gradient", count, bound, rounds, 1.0, forms, fixed=fixed
            ),
        )

    def run(self, parameters: NetworkParameters, shape: Shape) -> Run:
        """Descend, and average the last parameters."""
        target, sizes = _sizes(parameters, shape)
        fixed = _fixed(parameters, shape)
        current = initial_parameters(sizes, parameters.seed)
        step, total = np.zeros_like(current), np.zeros_like(current)
        last = max(1, round(parameters.averaged * parameters.rounds))
        norms = []
        for left in reversed(range(parameters.rounds)):
            query = {**fixed, "parameters": current}
            release = yield Query("network", "network_gradient", query)
            norms.append(float(np.linalg.norm(release.values)))
            rate = _learning_rate(parameters, release.deviation, len(current))
            step = parameters.momentum * step - rate * release.values
            current = current + step
            total += current if left < last else 0.0
        noise = release.deviation * float(np.sqrt(len(current)))
        return _result(total / last, sizes, target, norms, noise)


def _learning_rate(parameters: NetworkParameters, deviation: float, count: int) -> float:
    """Step over the gradient: divided by √(1 + 4 ν²/B²), ν = σ √P the norm of a round's noise.

    The best step of stochastic descent falls as the whole gradient's root mean square grows; with
    twice ν over the bound it is within a point of the best accuracy from ν = 0 to B.
    """
    noise = deviation * float(np.sqrt(count))
    return parameters.learning_rate / float(np.hypot(1.0, 2.0 * noise / parameters.bound))


def _sizes(parameters: NetworkParameters, shape: Shape) -> tuple[slice, tuple[int, ...]]:
    """Entries of the target, and units of all layers."""
    target = shape.view_slice(parameters.target, "analysis.target")
    classes = target.stop - target.start
    if classes >= shape.features:
        raise StudyError("field 'features': nothing is left to tell the target from; add a view.")
    if any(units < 1 for units in parameters.hidden):
        raise StudyError("field 'analysis.hidden': a layer needs one unit at least; correct it.")
    return target, (shape.features - classes, *parameters.hidden, classes)


def _fixed(parameters: NetworkParameters, shape: Shape) -> dict[str, Argument]:
    """What is the same in all queries."""
    target, sizes = _sizes(parameters, shape)
    return {"units": np.array(sizes[1:], dtype=np.float64), "target": target.start}


def _result(
    trained: Array,
    sizes: tuple[int, ...],
    target: slice,
    norms: list[float],
    noise: float,
) -> Result:
    first = layers(trained, sizes)[0][:, 1:]
    loadings = np.insert(first.T, [target.start] * (target.stop - target.start), 0.0, axis=0)
    rows = tuple((number, norm) for number, norm in enumerate(norms, 1))
    table = Table(
        f"Norm of the mean clipped gradient with its noise, round by round; noise alone has "
        f"{noise:.3g}.",
        ("round", "norm"),
        rows,
    )
    numbers = {"parameters": len(trained), "rounds": len(norms), "gradient_noise": noise}
    arrays = {
        "parameters": trained,
        "units": np.array(sizes, dtype=np.float64),
        "first_layer": loadings,
    }
    return Result(arrays, numbers, loadings="first_layer", tables={"gradients": table})
