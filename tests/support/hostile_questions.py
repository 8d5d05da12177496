"""Questions of a centre that picks its arguments against the data, and data against the clip.

By statistic, and each as far from an honest question as its form allows. A statistic that has
none here is attacked by `benchmarks.sensitivity_search`, which knows nothing of the code.
"""

import numpy as np

from consortium.algorithms.base import Query
from consortium.algorithms.network.kernels.classifier import parameter_count


def block(generator, features, volumes, dtype):
    """Data of one person, from harmless to hostile."""
    size = 10.0 ** generator.integers(-4, 13)
    values = size * generator.standard_normal((features, volumes))
    kind = generator.integers(7)
    if kind == 0:
        values[:] = 0
    elif kind == 1:
        values[:] = values[:1]  # all features alike
    elif kind == 2:
        values[:, 1:] = values[:, :1]  # all volumes alike
    elif kind == 3:
        values[1:] *= 1e-9
    elif kind == 4:
        values = np.sign(values)  # the far end of a view's limits
    return values.astype(dtype)


def _scale(generator, least=-4.0, most=9.0):
    return float(10.0 ** generator.uniform(least, most))


def no_arguments(generator, features):
    return {}


def unmixing(generator, features):
    size = int(generator.integers(2, 6))
    scales = 10.0 ** generator.integers(-4, 9, 3)
    turn = scales[0] * generator.standard_normal((size, size))
    whitening = scales[1] * generator.standard_normal((features, size))
    kind = generator.integers(4)
    if kind == 0:  # nearly parallel rows
        turn = turn[:1] + 1e-7 * scales[0] * turn
    elif kind == 1:
        whitening = whitening[:, :1] + scales[2] * 1e-6 * generator.standard_normal(whitening.shape)
    elif kind == 2:
        turn[:] = np.eye(size)
    return {
        "unmixing": turn,
        "whitening": whitening,
        "basis": whitening,
        "bias": scales[2] * generator.standard_normal(size),
    }


def geometry(generator, features):
    """Centre, norms and factors of any size and sign, and a basis that may not be orthonormal."""
    size, scales = int(generator.integers(2, 6)), 10.0 ** generator.integers(-6, 13, 4)
    arguments = {
        "centre": scales[0] * generator.standard_normal(features),
        "norms": scales[1] * generator.standard_normal(2),
        "factors": scales[2] * generator.standard_normal(2),
        "constant": float(scales[3] * abs(generator.standard_normal())),
        "constants": int(generator.integers(4)),
        "view": 1,
        "basis": scales[0] * generator.standard_normal((features - 1, size)),
    }
    if generator.integers(2):
        arguments["norms"] = np.full(2, 10.0 ** generator.integers(-2, 13))
        arguments["factors"] = 1.0 / arguments["norms"]
    if generator.integers(2):
        arguments["basis-rest"] = scales[1] * generator.standard_normal((features - 1, size))
    return arguments


def regression(generator, features):
    return {
        "target": int(generator.integers(features)),
        "reach": _scale(generator, -3, 3),
        "intercept": _scale(generator, -3, 3) * int(generator.integers(2)),
        "weight": _scale(generator, -3, 3),
        "constants": int(generator.integers(4)),
    }


def influence(generator, features):
    asked = regression(generator, features)
    size = features + asked["constants"]
    matrix = _scale(generator) * generator.standard_normal((size - 1, size - 1))
    return {**asked, "influence": matrix, "residual": generator.standard_normal(size)}


def network(generator, features):
    classes = int(generator.integers(1, features - 1))
    units = [int(n) for n in generator.integers(1, 4, int(generator.integers(0, 3)))] + [classes]
    constants = int(generator.integers(4))
    count = parameter_count([features - classes + constants, *units])
    return {
        "parameters": _scale(generator) * generator.standard_normal(count),
        "units": np.array(units, dtype=np.float64),
        "target": int(generator.integers(features - classes + 1)),
        "held_out": float(generator.uniform()),
        "constants": constants,
    }


def mixture(generator, features):
    size = int(generator.integers(1, 5))
    return {
        "reach": _scale(generator, -3, 3),
        "constant": _scale(generator, -3, 3),
        "constants": int(generator.integers(0, 3)),
        "whitening": _scale(generator) * generator.standard_normal((features, size)),
        "offsets": _scale(generator) * generator.standard_normal((2, features)),
    }


def embedding(generator, features):
    shape = (features, int(generator.integers(1, 9)))
    return {"frequencies": _scale(generator) * generator.standard_normal(shape)}


def topics(generator, features):
    size, components = int(generator.integers(1, features + 1)), int(generator.integers(1, 5))
    return {
        "size": size,
        "starts": generator.integers(0, features - size + 1, 3).astype(float),
        "whitening": _scale(generator) * generator.standard_normal((size, components)),
    }


_ARGUMENTS = {
    "coordinate_mean": no_arguments,
    "coordinate_moment": no_arguments,
    "fixed_point": unmixing,
    "infomax": unmixing,
    "maps": unmixing,
    "mean_embedding": embedding,
    "mean_squares": no_arguments,
    "mean_volume": no_arguments,
    "mixture_second": mixture,
    "mixture_third": mixture,
    "network_accuracy": network,
    "network_gradient": network,
    "power": unmixing,
    "regression_influence": influence,
    "regression_moment": regression,
    "rotation": unmixing,
    "second_moment": no_arguments,
    "stacked_location": geometry,
    "stacked_moment": geometry,
    "topic_cube": topics,
    "topic_second": topics,
    "topic_third": topics,
    "variances": unmixing,
    "view_moment": geometry,
    "view_product": geometry,
}
STATISTICS = tuple(_ARGUMENTS)
"""Those that have questions here."""


def hostile_question(name, generator, features):
    """A question about a statistic, for data of at least so many features."""
    return Query("stage", name, _ARGUMENTS[name](generator, features))
