"""A classifier network that all sites train together, round by round.

Source: dissertation section 3.4. Each person's gradient is clipped to a public norm over all
layers together (Abadi et al. 2016), all persons take part in every round, and the centre descends
along the noisy mean with momentum. Replacing a person moves the mean by 2 B / n. What is returned
is the mean of the last rounds' parameters, in which their noise averages out at no cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from statistics import NormalDist
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from consortium.algorithms.base import (
    MOST_ENTRIES_A_ROUND,
    Argument,
    Array,
    Captions,
    Case,
    Form,
    Local,
    PlannedRelease,
    Query,
    Release,
    Result,
    Run,
    Shape,
    SiteData,
    Table,
    Takes,
    forms_of,
)
from consortium.algorithms.findings import Finding, State
from consortium.algorithms.query_arguments import (
    array_argument,
    index_argument,
    number_argument,
)
from consortium.errors import ProtocolError, StudyError
from consortium.formatting import percent
from consortium.frozen_model import FrozenModel
from consortium.kernels.classifier import (
    initial_parameters,
    layers,
    parameter_count,
    predict,
    sum_clipped_gradients,
)
from consortium.privacy.bounds import Bound

_UNKNOWN = 0.9  # width of an interval that tells nothing of an accuracy


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
    held_out: float = Field(
        default=0.2,
        ge=0,
        le=0.5,
        description="Part of the persons that train nothing, on whom the accuracy is measured.",
    )
    judging: float = Field(
        default=0.15,
        gt=0,
        lt=1,
        description="Part of the budget (of μ²) that measuring the accuracy takes.",
    )
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="Level of the interval.")
    seed: int = Field(
        default=0, ge=0, lt=2**32, description="Of the public first weights, and of who trains."
    )


def _gradient(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over all persons of the clipped gradients of those who train: one for each parameter."""
    parameters, sizes, inputs, labels, trains = _asked(data, query)
    total: Array = sum_clipped_gradients(parameters, sizes, inputs, labels, bound.norm, trains)
    total /= len(trains)
    return total


def _accuracy(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over all persons of a one in one of 2 C places: told rightly or not, and class.

    Those who train have none. Ones are scaled to the bound and are not negative, so that two
    persons are √2·B apart at the most, and B if one of them trains.
    """
    parameters, sizes, inputs, labels, trains = _asked(data, query)
    with np.errstate(all="ignore"):
        outputs = predict(parameters, sizes, inputs)
    single = len(labels) == 1
    guessed = (outputs[0] > 0.5).astype(int) if single else outputs.argmax(axis=0)
    kinds = (labels[0] > 0.5).astype(int) if single else labels.argmax(axis=0)
    classes = np.eye(max(len(labels), 2))[:, kinds]
    right = guessed == kinds
    told = np.vstack([classes * right, classes * ~right])[:, ~trains]
    mean: Array = told.sum(axis=1) * bound.norm / len(trains)
    return mean


def _asked(
    data: SiteData, query: Query
) -> tuple[Array, tuple[int, ...], Array, Array, NDArray[np.bool_]]:
    """Parameters and units of the query; inputs, labels, and who trains, of the persons."""
    target = index_argument(query, "target", data.features)
    parameters = array_argument(query, "parameters", 1).astype(np.float64)
    sizes = _checked_sizes(query, data.features - target, data.features, len(parameters))
    classes = sizes[-1]
    raw = data.table()
    trains = _who_trains(raw, number_argument(query, "held_out"))
    table = np.asarray(raw, dtype=np.float64)
    labels = table[target : target + classes]
    if classes == 1:
        labels = (labels + 1.0) / 2.0  # levels are -1 and +1
    inputs = np.delete(table, slice(target, target + classes), axis=0)
    return parameters, sizes, inputs, np.clip(labels, 0.0, 1.0), trains


def _who_trains(table: Array, held_out: float) -> NDArray[np.bool_]:
    """Draw who trains by a hash of the person's own vector, and of nothing else.

    Whoever else is there, and in which place, changes nobody's part: replacing one person moves
    one person. The budget is charged for both statistics, so that it does not matter that another
    vector may change sides.
    """
    persons = np.ascontiguousarray(table.T, dtype=np.float32)
    limit = int(min(held_out, 1.0) * 2.0**64)
    return np.array(
        [
            int.from_bytes(blake2b(each.tobytes(), digest_size=8).digest(), "big") >= limit
            for each in persons
        ],
        dtype=np.bool_,
    )


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
    """As many releases as rounds, of one number for each weight and bias, and one of accuracy."""

    name = "network"
    title = "jointly trained network"
    takes: Takes = "features"
    needs_means = False
    Parameters = NetworkParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        "network_gradient": _gradient,
        "network_accuracy": _accuracy,
    }
    cases: ClassVar[Sequence[Case]] = (
        Case({"target": "y", "hidden": [3], "rounds": 3, "bound": 0.3}, views=(("x", 4), ("y", 1))),
        Case({"target": "kind", "hidden": [3, 2], "rounds": 2}, views=(("kind", 3), ("x", 4))),
    )

    def releases(self, parameters: NetworkParameters, shape: Shape) -> tuple[PlannedRelease, ...]:
        """Equal rounds, and the accuracy of what they end with."""
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
        judging = parameters.judging if parameters.held_out else 0.0
        training = PlannedRelease(
            "network", "network_gradient", count, bound, rounds, 1.0 - judging, forms, fixed=fixed
        )
        if not judging:
            return (training,)
        entries, once = 2 * max(sizes[-1], 2), Bound(1.0, cone=True)
        return (
            training,
            PlannedRelease(
                "accuracy", "network_accuracy", entries, once, 1, judging, forms, fixed=fixed
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
        trained = total / last
        told = (Finding(state="not told"), Finding(state="not told"))
        if parameters.held_out:
            query = {**fixed, "parameters": trained}
            release = yield Query("accuracy", "network_accuracy", query)
            present = release.sites or range(len(shape.subjects))
            told = judged(release, sum(shape.subjects[site] for site in present), parameters)
        return _result(trained, sizes, target, norms, noise, told)


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
    return {
        "units": np.array(sizes[1:], dtype=np.float64),
        "target": target.start,
        "held_out": float(parameters.held_out),
    }


def judged(
    release: Release, persons: int, parameters: NetworkParameters
) -> tuple[Finding, Finding]:
    """Accuracy on persons who trained nothing, and how far it is above the largest class's share.

    The part of those persons is measured where its noise is below the chance of drawing them, and
    otherwise taken as planned. The second one counts the chance that the two differ in as many as
    either gets wrong.
    """
    rights, wrongs = release.values.reshape(2, -1)
    right, classes = float(rights.sum()), [float(each) for each in rights + wrongs]
    noise, part = len(classes) * release.deviation**2, parameters.held_out
    drawn = part * (1.0 - part) / persons
    measured = 2.0 * noise < drawn
    held = sum(classes) if measured else part
    width = -NormalDist().inv_cdf((1.0 - parameters.confidence) / 2.0)
    if held <= 0:
        return Finding(state="not told"), Finding(state="not told")
    value = min(max(right / held, 0.0), 1.0)
    likely = min(max(value, 1.0 / persons), 1.0 - 1.0 / persons)
    if measured:
        spread = noise * (1.0 + 2.0 * value**2) + held * likely * (1 - likely) / persons
    else:
        spread = noise + held * likely * (1.0 - held * likely) / persons
    half = width * float(np.sqrt(spread)) / held
    low, high = max(value - half, 0.0), min(value + half, 1.0)
    largest = min(max(classes) / held, 1.0)
    above = (right - max(classes)) / held
    apart = noise + held * max(2.0 - value - largest, 1.0 / persons) / persons
    margin = width * float(np.sqrt(apart)) / held
    if high - low >= _UNKNOWN:
        return Finding(state="not told"), Finding(state="not told")
    state: State = "found" if above > margin else "not found"
    return Finding(value, low, high, state), Finding(above, above - margin, above + margin, state)


def _result(
    trained: Array,
    sizes: tuple[int, ...],
    target: slice,
    norms: list[float],
    noise: float,
    told: tuple[Finding, Finding],
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
    found = told[0].state == "found"
    accuracy = Table(
        "Measured on persons who trained nothing, with intervals that count the noise of privacy "
        "and chance.",
        ("of those persons", "share"),
        (("told rightly", told[0]), ("above the largest class", told[1])),
    )
    words = Captions(
        "unit",
        _headline(*told),
        "Weight of each entry in a unit of the first layer; no weight has an interval.",
        found=found,
    )
    tables = {"accuracy": accuracy, "gradients": table}
    return Result(arrays, numbers, loadings="first_layer", tables=tables, captions=words)


def _headline(accuracy: Finding, above: Finding) -> str:
    if not accuracy.told:
        return "Nothing can be told of the network's accuracy: the noise leaves none."
    if accuracy.state != "found":
        return (
            "The network was not found to tell persons better than the largest class does; at this "
            f"ε and number of persons an advantage below {percent(above.high - above.value)} of "
            "them would not be seen."
        )
    return (
        f"The network tells {percent(accuracy.value)} of persons who trained nothing rightly, more "
        "than the largest class has."
    )
