"""Whether we are ever worse than the published method at the same true ε."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from consortium.algorithms.base import Array


@dataclass(frozen=True)
class Point:
    """One point of a figure."""

    where: str
    """Panel and abscissa."""
    ours: Sequence[float] | Array
    published: Sequence[float] | Array
    """Errors of runs on the same data, at the same true ε; smaller is better."""

    @property
    def ratio(self) -> float:
        """Our mean error over the published one's."""
        return float(np.mean(self.ours) / np.mean(self.published))

    @property
    def by_chance(self) -> bool:
        """Whether ours is larger by less than two standard errors of the runs' differences."""
        worse = np.subtract(self.ours, self.published)
        return bool(worse.mean() <= 2 * worse.std(ddof=1) / math.sqrt(len(worse)))


Found = Mapping[str, Array]
"""For every method, a number for each run."""


@dataclass(frozen=True)
class Panel:
    """What methods come to along an axis."""

    title: str
    axis: str
    points: Sequence[tuple[float, Found]]

    def curves(self) -> tuple[str, str, dict[str, tuple[Array, Array]]]:
        """Return title, axis, and means over runs, as `drawing.panels` takes them."""
        x, found = np.array([value for value, _ in self.points]), [f for _, f in self.points]
        means = {key: (x, np.array([f[key].mean() for f in found])) for key in found[0]}
        return self.title, self.axis, means

    def compared(
        self,
        rival: str = "published",
        error: Callable[[Found, str], Array] = lambda found, key: found[key],
    ) -> list[Point]:
        """Return our points compared with a rival's, where it was tried."""
        return [
            Point(f"{self.title}, {self.axis} = {value:g}", error(f, "cape"), error(f, rival))
            for value, f in self.points
            if rival in f
        ]


def verdict(points: Iterable[Point]) -> str:
    """State in a line whether our error is at most the published one at every point."""
    ranked = sorted(points, key=lambda point: -point.ratio)
    worst = ranked[0]
    found = f"worst ratio {worst.ratio:.3f}, {worst.where}; {len(ranked)} points"
    above = [point for point in ranked if point.ratio > 1]
    if not above:
        return f"never worse than published: yes ({found})"
    certain = [point for point in above if not point.by_chance]
    named = "".join(f"\n  {p.ratio:.3f}  {p.where}{' (chance)' * p.by_chance}" for p in above)
    answer = "no" if certain else "yes, but for chance"
    return (
        f"never worse than published: {answer} ({found}; above 1 at {len(above)}, "
        f"{len(certain)} of them by more than two standard errors){named}"
    )
