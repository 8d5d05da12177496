"""What a decomposition will release: a second moment, then a third, whitened or whole."""

from dataclasses import replace

import numpy as np

from consortium.algorithms.base import (
    MOST_SOLVED_FEATURES,
    Argument,
    Array,
    Form,
    PlannedRelease,
    Shape,
)
from consortium.algorithms.tensor.kernels.tensor import cubic_size
from consortium.algorithms.tensor.parameters import TensorParameters
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.privacy.bounds import Bound

CONSTANT = 0.5
"""Weight of the mean in a mixture's first release, over the bound."""
MOST_NOISE = 0.05
"""Noise of a site's mean vector, over the bound, beyond which it costs power that shows."""
_WHOLE = 4  # entries for each topic up to which a margin that clips few makes more noise
_MOST_WHOLE = 64


def plan_releases(
    parameters: TensorParameters, shape: Shape
) -> tuple[PlannedRelease, PlannedRelease]:
    """One release each, sharing the budget."""
    starts, size = vocabulary(parameters, shape)
    if not parameters.components <= size <= MOST_SOLVED_FEATURES:
        raise StudyError(
            f"field 'analysis.components': {parameters.components} can't be estimated from {size} "
            f"entries; have at least as many entries, and at most {MOST_SOLVED_FEATURES}."
        )
    share, (where, more) = parameters.share, fixed_arguments(parameters, shape)
    both = {**where, **more}
    forms: dict[str, Form] = {"whitening": (size, parameters.components)}
    bound, entries, kind = Bound(1.0, cone=True), packed_size(size), "topic"
    if not len(starts):
        count = moment_constants(parameters, shape)
        bound, entries, kind = _mixture_bound(parameters), packed_size(size + count), "mixture"
        if count > 1:
            forms["offsets"] = (count, size)
        else:  # nothing is taken from anybody
            where = {**where, "offsets": np.zeros((1, size))}
    cubic = PlannedRelease(
        *("third", f"{kind}_third", cubic_size(parameters.components), Bound(1.0)),
        *(1, 1 - share, forms),
        fixed=where,
    )
    if released_whole(parameters, size):
        cubic = replace(
            cubic,
            statistic="topic_cube",
            entries=cubic_size(size),
            bound=Bound(1.0, cone=True),
            arguments={},
            fixed=both,
        )
    second = PlannedRelease("second", f"{kind}_second", entries, bound, 1, share, fixed=both)
    return second, cubic


def fixed_arguments(
    parameters: TensorParameters, shape: Shape
) -> tuple[dict[str, Argument], dict[str, Argument]]:
    """What is the same in all queries, and what is beside it where nothing is whitened."""
    starts, size = vocabulary(parameters, shape)
    if len(starts):
        return {"starts": starts}, {"size": size}
    constant = CONSTANT * _bound(parameters)
    count = moment_constants(parameters, shape)
    return {"reach": _bound(parameters)}, {"constant": constant, "constants": count}


def moment_constants(parameters: TensorParameters, shape: Shape) -> int:
    """S, constants of a mixture's first release: one for each site, or one for all."""
    separate = parameters.words is None and parameters.site_constants
    return len(shape.units) if separate else 1


def means_noise(parameters: TensorParameters, shape: Shape) -> float:
    """Root mean square of the noise of a site's mean vector, over the bound; 0 if none is told.

    The mean of a site with a part π of the persons has the noise τ/(√2 c π) in each entry.
    """
    if moment_constants(parameters, shape) < 2:
        return 0.0
    sizes = np.array(shape.units, dtype=np.float64)
    sensitivity = _mixture_bound(parameters).sensitivity(int(sizes.sum()))
    deviation = shape.noise * sensitivity / np.sqrt(parameters.share)
    each = deviation / (np.sqrt(2.0) * CONSTANT * _bound(parameters)) * sizes.sum() / sizes
    squares = shape.features * np.square(each)
    return float(np.sqrt(np.average(squares, weights=sizes)) / _bound(parameters))


def _mixture_bound(parameters: TensorParameters) -> Bound:
    return Bound(_bound(parameters) ** 2 * (1 + CONSTANT**2), cone=True)


def _bound(parameters: TensorParameters) -> float:
    return float(parameters.bound or 0.0)


def released_whole(parameters: TensorParameters, size: int) -> bool:
    """Whether the third moment is released before it is whitened.

    Noise on whitened words is K^1.5 · 2 margin³ in every direction of the tensor; on words it is
    √2 D^1.5, for a flat spectrum, without clipping anybody: less where D is less than about
    1.3 margin² K. No data decide, so that the plan is known.
    """
    return parameters.words is not None and size <= min(_WHOLE * parameters.components, _MOST_WHOLE)


def vocabulary(parameters: TensorParameters, shape: Shape) -> tuple[Array, int]:
    """Where the three words begin (nowhere for a mixture), and entries of a vector."""
    if parameters.words is None:
        return np.zeros(0), shape.features
    found = [shape.view_slice(name, "analysis.words") for name in parameters.words]
    sizes = {each.stop - each.start for each in found}
    if len(sizes) > 1 or len(set(parameters.words)) < 3:
        raise StudyError(
            "field 'analysis.words': the words need three different views of one size; name these."
        )
    return np.array([each.start for each in found], dtype=np.float64), sizes.pop()
