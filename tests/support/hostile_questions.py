"""Questions of a centre that chooses its arguments against the data, and data against the clip.

Each is as far from an honest question of the same plan as its message's form allows.
"""

from dataclasses import replace

import numpy as np

from benchmarks.sensitivity_cases import Question
from consortium.privacy.bounds import Bound


def block(generator, features, volumes, dtype):
    """Return data of one participant, from harmless to hostile."""
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


def scaled(bound, norm):
    """Return the same bound with another norm, for statistics that are clipped to it."""
    influence = bound.influence and bound.influence * norm / bound.norm
    return replace(bound, norm=norm, influence=influence)


def hostile_question(attack, generator, dtype):
    """Return a question, and two sites of few participants that differ in one of them."""
    start, bound = attack.start, attack.start.bound
    if type(bound) is Bound and start.query.neighbour_answers is None:
        bound = scaled(bound, float(10.0 ** generator.uniform(-2, 1)))
    features, volumes = start.blocks[0].shape
    lengths = generator.integers(1, 2 if volumes == 1 else 6, int(generator.integers(1, 5)))
    blocks = tuple(block(generator, features, length, dtype) for length in lengths)
    other, unit = blocks[0].copy(), slice(None) if attack.unit == "subject" else slice(0, 1)
    other[:, unit] = block(generator, features, lengths[0], dtype)[:, unit]
    arguments = {n: _array(v.shape, generator) for n, v in start.query.arguments.items()}
    query, drawn = replace(start.query, arguments=arguments), generator.permutation(99).tolist()
    hashes, removed = tuple(drawn[: len(blocks)]), bool(generator.random() < 0.3)
    moved = drawn[-1] if generator.random() < 0.5 else None
    return Question(query, bound, blocks, other, removed, hashes, moved)


def _array(shape, generator):
    values = 10.0 ** generator.integers(-6, 13) * generator.standard_normal(shape)
    kind = generator.integers(6)
    if kind == 0:  # nearly parallel rows
        values = values[:1] + 1e-7 * values
    elif kind == 1:
        values = values[..., :1] + 1e-6 * values
    elif kind == 2:
        values = np.eye(*shape) if len(shape) == 2 else np.ones(shape)
    return values
