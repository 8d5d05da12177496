"""What rounding can make of a result, measured by computing it again from releases that are off.

Another number of threads, another BLAS or processor rounds otherwise. What factorizations and sums
of size n return is exact for an input that is off by about n·u of its norm, u being half of the
machine's epsilon (Higham 2002, chapters 3, 10 and 19). So the analysis is done again with such a
step in what was released: where it is well conditioned its result stays, where it is not, or turns
on a decision, the result moves as far as another machine's may.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from consortium.algorithms.base import Array

SLACK = 1e-6
"""Of the largest value: what files of single precision differ by when nothing does."""
Apart = Mapping[str, Mapping[str, float]]
"""How far each file's parts are from what is due."""
TRIES = 16
TAILS = 10.0
"""What was seen in so many tries is not the most that may be."""


def perturb_release(values: Array, size: int, generator: np.random.Generator) -> Array:
    """Return released numbers that are off by what an analysis of ``size`` features rounds."""
    step = generator.standard_normal(np.shape(values))
    scale = size * np.finfo(np.float64).eps * float(np.linalg.norm(values))
    return np.asarray(values + step * (scale / max(float(np.linalg.norm(step)), 1.0)))


@dataclass
class Spread:
    """How far parts of each file are from what was published, and how far rounding moves them."""

    found: Apart
    """By str to mapping of str. Of each file that differs, its parts."""
    moved: dict[str, dict[str, float]] = field(default_factory=dict)

    def see(self, name: str, apart: Mapping[str, float]) -> None:
        """Count what one more try made of a file."""
        known = self.moved.setdefault(name, {})
        whole = max((far for part, far in apart.items() if part not in self.found[name]), default=0)
        for part in self.found[name]:
            far = apart.get(part, np.inf if np.isinf(whole) else 0.0)
            known[part] = max(known.get(part, 0.0), far)

    def beyond(self, name: str, ever: Sequence[str] = ()) -> dict[str, tuple[float, float]]:
        """Parts that rounding doesn't explain, with how far they are and how far it moved them."""
        moved = self.moved.get(name, {})
        moves = {part: (far, moved.get(part, 0.0)) for part, far in self.found[name].items()}
        return {
            part: (far, most)
            for part, (far, most) in moves.items()
            if part not in ever and far > max(SLACK, TAILS * most)
        }
