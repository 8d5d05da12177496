"""The studies on which every analysis is tried, and the outcome of one of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from consortium.algorithms.findings import Finding
from consortium.base.array import Array

Data = Literal["no effect", "sparse effect", "sites", "too few"]
DATA: tuple[Data, ...] = ("no effect", "sparse effect", "sites", "too few")
EPSILONS = (1.0, 4.0, 8.0)
PERSONS = (200, 800, 4000)
FEW = 25
"""Participants of a site in "too few"."""
UNEQUAL = (0.45, 0.3, 0.15, 0.1)


@dataclass(frozen=True)
class Cell:
    """A study."""

    data: Data
    """Of "sites": offsets between scanners, scales, t5 tails, unequal sizes, and no effect within
    sites; of "too few": the sparse effect, with `FEW` participants a site or fewer."""
    epsilon: float
    """ε of the whole study, against the centre with one colluding site."""
    persons: int
    """Of all sites together."""
    sites: int = 4

    @property
    def sizes(self) -> tuple[int, ...]:
        """Participants of each site."""
        persons = min(self.persons, FEW * self.sites) if self.data == "too few" else self.persons
        shares = np.full(self.sites, 1.0 / self.sites)
        if self.data == "sites":
            shares = np.resize(UNEQUAL, self.sites) / np.resize(UNEQUAL, self.sites).sum()
        ends = np.rint(np.cumsum(shares) * persons).astype(int)
        return tuple(int(size) for size in np.diff(ends, prepend=0))

    @property
    def effect(self) -> bool:
        """Whether there is anything to be found."""
        return self.data in ("sparse effect", "too few")


@dataclass(frozen=True)
class Outcome:
    """Statements of an analysis about a study, compared with the truth."""

    covered: tuple[bool, ...]
    """For each reported interval, whether it contains the truth."""
    false: bool
    """Whether anything without effect was announced as found."""
    found: int
    """Number of true effects that were reported."""
    true: int
    """True effects."""
    found_pooled: int
    """Those that the same method finds without noise."""


def outcome_of(
    private: Sequence[Finding], pooled: Sequence[Finding], truth: Sequence[float] | Array
) -> Outcome:
    """Compare findings with the truth; a number whose truth is 0 has no effect."""
    both = list(zip(private, truth, strict=True))
    return Outcome(
        tuple(bool(f.low <= r <= f.high) for f, r in both if f.bounded),
        any(f.state == "found" and not r for f, r in both),
        sum(f.state == "found" for f, r in both if r),
        int(np.count_nonzero(truth)),
        sum(f.state == "found" for f, r in zip(pooled, truth, strict=True) if r),
    )


Group = tuple[Cell, ...]


def every_group() -> tuple[Group, ...]:
    """Return all cells, grouped if they differ only in ε."""
    kinds: list[tuple[Data, int]] = [*product(DATA[:3], PERSONS), ("too few", FEW * 4)]
    return tuple(
        tuple(Cell(data, epsilon, persons) for epsilon in EPSILONS) for data, persons in kinds
    )


def short_groups() -> tuple[Group, ...]:
    """Return one cell of each kind, at the middle of the budgets."""
    return tuple((Cell(data, 4.0, FEW * 4 if data == "too few" else 800),) for data in DATA)
