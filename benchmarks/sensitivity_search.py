"""A search for questions that move a statistic further than its sensitivity.

It does not use the code's structure. Numbers of the query, of the data and of the bound are changed
at random, by scales from 1e-300 to 1e300, entry by entry, row by row and column by column. The
question that has moved a statistic the furthest so far is changed further.
"""

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.sensitivity_cases import Attack, Question, arguments_of, with_arguments
from consortium.algorithms.base import Array
from consortium.privacy.bounds import Bound

TOLERANCE = 1e-9
"""Tolerated excess of a ratio: rounding in float64 of a sum over few units. Plans add as much to a
sensitivity.
"""
_DECADES = 300
_LEAST_ASKED = 100  # questions, if none of them is answered
_KEPT = 8  # questions that are changed further, those that moved the most
_OTHER_KIND = 0.15  # part of the changes that are of the kind of neighbour
_CANCELLING = 0.1  # part of the changes that are `cancelling`
_MOST_UNITS = 70
_HUGE = 2.0**70
_CLIMBING = 0.6  # part of the questions that begin with one of these
_SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 5e-324, 1e-310, 1e-170, 1e-155, 1e-8, 1e8, 1e153, 1e155, 1.7e308, -1e308]
)
_WRONG = np.array([np.nan, np.inf, -np.inf])


@dataclass
class Outcome:
    """What became of the questions about one statistic."""

    name: str
    trials: int = 0
    answered: int = 0
    """Questions, and those that both sites answered."""
    moves: dict[str, float] = field(default_factory=dict)
    """Largest move over the sensitivity, of the whole and of every block."""
    differ: int = 0
    """Questions that one of two neighbours answered."""
    example: Question | None = None
    """One that did either, the last one that broke something."""

    @property
    def worst(self) -> float:
        """Largest move of all."""
        return max(self.moves.values(), default=0.0)

    @property
    def broken(self) -> bool:
        """Whether a move exceeded the sensitivity, or a refusal revealed one unit."""
        return self.worst > 1 + TOLERANCE or self.differ > 0

    def note(self, ratios: dict[str, float] | None, question: Question) -> None:
        """Count a question."""
        self.trials += 1
        if ratios is None:
            return
        if math.isinf(max(ratios.values())):
            self.differ += 1
        else:
            self.answered += 1
            for name, ratio in ratios.items():
                self.moves[name] = max(self.moves.get(name, 0.0), ratio)
        if max(ratios.values()) > 1 + TOLERANCE:
            self.example = question


def together(outcomes: Iterable[Outcome]) -> Outcome:
    """Combine several outcomes about the same statistic into one."""
    each = list(outcomes)
    total = Outcome(each[0].name)
    for name in ("trials", "answered", "differ"):
        setattr(total, name, sum(getattr(one, name) for one in each))
    names = {name for one in each for name in one.moves}
    total.moves = {name: max(one.moves.get(name, 0.0) for one in each) for name in sorted(names)}
    total.example = next((one.example for one in each if one.broken), None)
    return total


def search(
    case: Attack, seconds: float, generator: np.random.Generator, *, until_broken: bool = False
) -> Outcome:
    """Attack one statistic for so long, beginning with its honest question.

    What moved any one of its blocks the furthest is changed further. On a busy machine the search
    goes on until a question is answered.
    """
    found, stop = Outcome(case.name), time.perf_counter() + seconds
    best: dict[str, list[tuple[float, Question]]] = {}
    with np.errstate(all="ignore"):
        while not (until_broken and found.broken):
            if time.perf_counter() >= stop and (found.answered or found.trials >= _LEAST_ASKED):
                break
            question = case.start
            if best and generator.random() < _CLIMBING:
                of_block = best[str(generator.choice(sorted(best)))]
                question = of_block[int(generator.integers(len(of_block)))][1]
            for _ in range(int(generator.integers(1, 5))):
                question = mutated(question, case, generator)
            ratios = case.ratios(question)
            found.note(ratios, question)
            for name, ratio in ({} if ratios is None else ratios).items():
                if math.isfinite(ratio):
                    tried = [*best.get(name, ()), (ratio, question)]
                    best[name] = sorted(tried, key=lambda pair: -pair[0])[:_KEPT]
    return found


def mutated(question: Question, case: Attack, generator: np.random.Generator) -> Question:
    """Change one thing: an argument, a unit, the numbers' type, the bound or the neighbour.

    The changed unit is the attacked or another one. The neighbour lacks a unit, or has another in
    its place, or another with another hash.
    """
    arguments = arguments_of(question)
    if generator.random() < _OTHER_KIND:
        return _other_kind(question, generator)
    if arguments and generator.random() < _CANCELLING:
        return cancelling(question, case, generator)
    kind = generator.random()
    if kind < 0.5 and arguments:
        name = str(generator.choice(sorted(arguments)))
        arguments[name] = _values(arguments[name], generator)
        return with_arguments(question, arguments)
    if kind < 0.55 and type(question.bound) is Bound and question.bound.influence is None:
        norm = case.start.bound.norm * 10.0 ** generator.choice(
            [0, 0, -3, -12, -60, -170, -280, 60]
        )
        return replace(question, bound=replace(question.bound, norm=float(norm)))
    if kind < 0.9:
        unit = slice(None) if case.unit == "subject" else slice(0, 1)
        new = question.other.copy()
        new[:, unit] = _values(new[:, unit], generator)
        if generator.random() < 0.1:
            new = question.blocks[0].copy()
        if case.unit == "subject" and new.shape[1] > 1 and generator.random() < 0.1:
            new = new[:, 1:]  # a shorter scan
        if generator.random() < 0.3:  # the other way round
            return replace(question, other=question.blocks[0], blocks=(new, *question.blocks[1:]))
        return replace(question, other=new)
    if kind < 0.96:
        place = int(generator.integers(len(question.blocks)))
        blocks = list(question.blocks)
        blocks[place] = _values(blocks[place], generator)
        return _neighbours(question, blocks, case)
    kinds = {np.dtype(np.float32): np.float64, np.dtype(np.float64): np.float32}
    change = kinds[question.other.dtype]
    blocks = [block.astype(change) for block in question.blocks]
    return replace(question, blocks=tuple(blocks), other=question.other.astype(change))


def cancelling(question: Question, case: Attack, generator: np.random.Generator) -> Question:
    """Ask up to 70 units for huge products that cancel, and remove one unit from any place.

    Only the rounding of such a product is left. If the rounding of one unit's product depends on
    how many other units there are, or on its place, the sum over all units moves too far.
    """
    count, blocks = int(generator.integers(1, _MOST_UNITS + 1)), question.blocks
    if case.unit == "subject":
        blocks = tuple(blocks[n] for n in generator.integers(len(blocks), size=count))
        many = tuple(_alike(block, generator) for block in blocks)
    else:
        columns = np.hstack(blocks)
        first = columns[:, generator.integers(columns.shape[1], size=count)]
        many = (_alike(first, generator), *blocks[1:])
    arguments = {
        name: _cancelled(value, generator) for name, value in arguments_of(question).items()
    }
    place = int(generator.integers(_MOST_UNITS))
    hashes = tuple(generator.permutation(2 * len(many)).tolist()[: len(many)])
    asked = replace(question, blocks=many, other=many[0].copy(), hashes=hashes, other_hash=None)
    return with_arguments(replace(asked, removed=True, place=place), arguments)


def _alike(block: Array, generator: np.random.Generator) -> Array:
    """Give all entries of a column one value, or none or some of the entries."""
    kind, found = generator.random(), np.array(block)
    rows = generator.random(len(found)) < (1.0 if kind < 0.5 else 0.0 if kind < 0.7 else 0.6)
    size = found.shape[1:]
    found[rows] = generator.uniform(0.1, 1.0, size) if kind < 0.8 else generator.choice([-1, 1])
    return found


def _cancelled(values: Array, generator: np.random.Generator) -> Array:
    """Fill an array with terms whose sum along an axis cancels, or with ones, or keep it."""
    kind = generator.random()
    if kind < 0.15 or not values.ndim:
        return values
    if kind < 0.3:
        return np.ones_like(values)
    axis = int(generator.integers(values.ndim))
    turned = np.moveaxis(np.empty(values.shape), axis, 0)
    for index in np.ndindex(turned.shape[1:]):
        terms = generator.standard_normal(len(turned)) * 2.0 ** generator.choice([0, 20, 40])
        pairs = (len(turned) - int(generator.integers(3))) // 2
        if pairs > 0:
            huge = _HUGE * generator.standard_normal(pairs)
            terms[: 2 * pairs] = np.concatenate([huge, -huge])
        turned[(slice(None), *index)] = generator.permutation(terms)
    return np.moveaxis(turned, 0, axis) * 2.0 ** generator.choice([-70, -30, 0])


def _other_kind(question: Question, generator: np.random.Generator) -> Question:
    """Remove the unit or bring it back, or draw new hashes, one of them for the other unit."""
    if generator.random() < 0.5:
        return replace(question, removed=not question.removed)
    drawn = generator.permutation(2 * len(question.blocks)).tolist()
    hashes = tuple(drawn[: len(question.blocks)])
    other = drawn[-1] if generator.random() < 0.5 else None
    return replace(question, hashes=hashes, other_hash=other)


def _neighbours(question: Question, blocks: list[Array], case: Attack) -> Question:
    """Return two sites with the same blocks, except for the unit in which they differ."""
    other = question.other
    if case.unit != "subject":
        other = blocks[0].copy()
        other[:, :1] = question.other[:, :1]
    return replace(question, blocks=tuple(blocks), other=other)


def _values(values: Array, generator: np.random.Generator) -> Array:
    """Change some of the numbers of an array."""
    flat = np.array(values, dtype=np.float64).reshape(-1, values.shape[-1] if values.ndim else 1)
    if not flat.size:
        return values
    for _ in range(int(generator.integers(1, 4))):
        _CHANGES[int(generator.integers(len(_CHANGES)))](flat, generator)
    return flat.astype(values.dtype).reshape(values.shape)


def _part(flat: Array, generator: np.random.Generator) -> Any:
    """Select a row, a column, an entry, a random few or all."""
    row, column = (int(generator.integers(size)) for size in flat.shape)
    some = generator.random(flat.shape) < generator.choice([0.2, 0.5, 0.8])
    options = [(row, slice(None)), (slice(None), column), (row, column), some.nonzero(), (..., ...)]
    chosen = options[int(generator.integers(len(options)))]
    return (slice(None), slice(None)) if chosen[0] is ... else chosen


def _scale(flat: Array, generator: np.random.Generator) -> None:
    wide = _DECADES if generator.random() < 0.6 else 3
    flat[_part(flat, generator)] *= 10.0 ** generator.uniform(-wide, wide)


def _scale_rows(flat: Array, generator: np.random.Generator) -> None:
    flat *= 10.0 ** generator.uniform(-_DECADES, _DECADES, (len(flat), 1))


def _set_scales(flat: Array, generator: np.random.Generator) -> None:
    """Draw random signs, and a scale for every row, which bring extreme values into range again."""
    scales = 10.0 ** generator.uniform(-_DECADES, _DECADES, (len(flat), 1))
    flat[:] = generator.choice([-1.0, 1.0], flat.shape) * scales


def _special(flat: Array, generator: np.random.Generator) -> None:
    flat[_part(flat, generator)] = generator.choice(_SPECIAL)


def _zeros(flat: Array, generator: np.random.Generator) -> None:
    flat[generator.random(flat.shape) < generator.random()] = 0.0


def _ones(flat: Array, generator: np.random.Generator) -> None:
    """Set a single one in every column, or in every few rows, as in counts or labels."""
    flat[:] = 0.0
    step = int(generator.integers(1, len(flat) + 1))
    for start in range(0, len(flat), step):
        flat[start + generator.integers(min(step, len(flat) - start)), :] = 1.0


def _wrong(flat: Array, generator: np.random.Generator) -> None:
    if generator.random() < 0.3:
        flat[_part(flat, generator)] = generator.choice(_WRONG)


def _signs(flat: Array, generator: np.random.Generator) -> None:
    flat[_part(flat, generator)] *= -1.0


def _normal(flat: Array, generator: np.random.Generator) -> None:
    flat[:] = generator.standard_normal(flat.shape)


def _nudge(flat: Array, generator: np.random.Generator) -> None:
    flat *= 1.0 + 10.0 ** generator.uniform(-12, 0) * generator.standard_normal(flat.shape)


def _copy(flat: Array, generator: np.random.Generator) -> None:
    first, second = generator.integers(len(flat), size=2)
    flat[first] = flat[second]


_CHANGES = (
    *(_scale, _scale_rows, _set_scales, _special, _zeros, _ones),
    *(_wrong, _signs, _normal, _nudge, _copy),
)
