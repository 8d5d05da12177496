"""``python -m benchmarks.tensor_nulls STUDIES``: how often `tensor` finds nonexistent parts.

Participants of four sites are of one kind, or draw all words from one topic. The last columns of
the table are the fractions of studies that call components found, at an ε of 2 and of 8. A reviewer
wrote columns of six kinds and participants of different scale from the pages only.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.honesty.running import TableSite, answer
from benchmarks.timing import command, heading, line
from consortium.algorithms.base import Array

_PERSONS, _SITES = 1200, 4
_EPSILONS = 2.0, 8.0
_BOUND = 1.8
_VIEWS = "first", "second", "third"
_SCALES = 0.7, 1.0, 1.3, 1.6

Null = Callable[[np.random.Generator], tuple[Array, Sequence[tuple[str, int]], dict[str, Any]]]


def one_topic(
    words: int, rng: np.random.Generator
) -> tuple[Array, Sequence[tuple[str, int]], dict[str, Any]]:
    """Draw three words of every participant from one topic, whose k-th word has the part 1/k."""
    parts = 1 / np.arange(1.0, words + 1)
    drawn = rng.choice(words, size=(len(_VIEWS), _PERSONS), p=parts / parts.sum())
    table = (drawn[:, None] == np.arange(words)[:, None]).reshape(-1, _PERSONS)
    views = [(name, words) for name in _VIEWS]
    return table.astype(np.float64), views, {"model": "topics", "words": _VIEWS}


def one_kind(
    draw: Callable[[np.random.Generator], Array], rng: np.random.Generator
) -> tuple[Array, Sequence[tuple[str, int]], dict[str, Any]]:
    """Draw participants of one kind, whose entries are limited to -1 and 1."""
    table = np.clip(draw(rng), -1.0, 1.0)
    return table, [("x", len(table))], {"bound": _BOUND}


def lognormal(rng: np.random.Generator) -> Array:
    """Draw six entries, three of them lognormal."""
    table = 0.15 * rng.standard_normal((6, _PERSONS))
    table[:3] = 0.07 * (np.exp(rng.standard_normal((3, _PERSONS))) - np.exp(0.5))
    return table


def different_laws(rng: np.random.Generator) -> Array:
    """Draw two binary entries, an exponential, a t, an ordinal and a normal one."""
    shape = 1, _PERSONS
    return np.vstack(
        [
            np.where(rng.random(shape) < 0.3, 1.0, -1.0),
            np.where(rng.random(shape) < 0.5, 1.0, -1.0),
            0.5 * (rng.exponential(size=shape) - 1.0),
            0.3 * rng.standard_t(3, shape),
            0.4 * rng.integers(0, 3, shape),
            0.5 * rng.standard_normal(shape),
        ]
    )


def different_scales(rng: np.random.Generator) -> Array:
    """Draw uncorrelated entries of participants who differ in scale: t of 5 degrees of freedom."""
    scale = np.sqrt(rng.chisquare(5, _PERSONS) / 5)
    return 0.4 * rng.standard_normal((6, _PERSONS)) / scale


def unequal_sites(rng: np.random.Generator) -> Array:
    """Draw the entries of different laws at sites that differ in level and scale."""
    table = different_laws(rng)
    site = np.arange(_PERSONS) * _SITES // _PERSONS
    return table * np.take(_SCALES, site) + 0.3 * rng.standard_normal((6, _SITES))[:, site]


_NULLS: dict[str, Null] = {
    "one topic, 8 words": partial(one_topic, 8),
    "one topic, 20 words": partial(one_topic, 20),
    "three of six entries lognormal": partial(one_kind, lognormal),
    "six entries of different laws": partial(one_kind, different_laws),
    "the same, unequal sites": partial(one_kind, unequal_sites),
    "participants of different scale": partial(one_kind, different_scales),
}


def found(null: Null, components: int, epsilon: float, seed: int) -> bool:
    """Return whether a study of participants without parts calls components found."""
    rng = np.random.default_rng((seed, 61))
    table, views, asked = null(rng)
    sites = [TableSite(part, tuple(views)) for part in np.hsplit(table, _SITES)]
    asked |= {"components": components}
    return answer("tensor", asked, sites, epsilon, rng).numbers["found"] != 0


def main(studies: int = 60) -> None:
    """Print the table."""
    heading("participants | components | ε = 2 | ε = 8")
    for name, null in _NULLS.items():
        for components in (2, 3):
            parts = [
                np.mean([found(null, components, epsilon, seed) for seed in range(studies)])
                for epsilon in _EPSILONS
            ]
            line(name, str(components), *(f"{part:.3f}" for part in parts))


if __name__ == "__main__":
    command(main)
