"""A participant's vector in views, each of which may lose less than the whole participant.

Every view is clipped by itself and scaled by a public weight before the noise. So changing only one
view moves the release less than changing the participant: coordinate differential privacy
(Aliakbarpour et al. 2024, Definition 3, for Gaussian noise). Clipping all views together would
break it, since a change of one would then scale the others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from consortium.privacy.bounds import Bound

SQUARES_NORM = math.sqrt(1.5)
"""Largest norm of (z, z²/(√2 P)), over P, the largest norm of z."""


@dataclass(frozen=True)
class Part:
    """One view's part of a participant's clipped vector."""

    entries: int
    """Numbers in the part, each within -1 and 1."""
    weight: float
    """a > 0, factor of the entries before the release."""
    radius: float
    """R, Euclidean norm that the part is clipped to before it is weighted."""

    @property
    def norm(self) -> float:
        """Largest norm of the weighted part."""
        return self.weight * self.radius


@dataclass(frozen=True)
class PartsBound(Bound):
    """A clipping bound that holds for every part of the vector by itself.

    The statistic is the mean of the weighted vectors z. With ``cone`` it is the mean of z zᵀ, and
    ``norm`` is at most ‖z‖².

    With ``squares`` the mean of (z, z²/(√2 P)) is released, P being the norm of each entry's view.
    ``norm`` is then at most √1.5 ‖z‖, and the influence is stated. The squares add no privacy loss,
    neither for a participant nor for a change of only one view or entry: see the page of
    `coordinate`.
    """

    parts: tuple[Part, ...] = ()
    """In the order of the vector."""
    constant: float = 0.0
    """c, a constant put behind the parts; 0 for none."""
    places: int = 1
    """Number of entries for the constant: one for each site, with zeros at the other sites, or one
    for all. Its position changes no norm, and it belongs to no participant."""

    squares: bool = False
    """Whether the squares of the entries are released with them."""

    @property
    def reach(self) -> float:
        """Largest norm of a weighted vector z; with ``cone`` of z zᵀ."""
        return self.norm / SQUARES_NORM if self.squares else self.norm

    def part_spread(self, index: int, *, single: bool = False) -> float:
        """Return the largest distance of contributions that differ in one view, times its weight.

        Parameters
        ----------
        single : bool
            Only in one entry of the view. With ``cone`` for views in which no one is clipped.

        Notes
        -----
        The mean moves by at most 2P for a view of norm P. For z zᵀ with z = (p, r), ‖p‖ <= P and
        ‖r‖² <= norm - P², the squared distance ‖p pᵀ - q qᵀ‖² + 2 ‖r‖² ‖p - q‖² is largest for
        ‖p‖ = ‖q‖ = P with cosine -‖r‖²/P², or -1: it is 8 P² (norm - P²) while P² is less than
        half of the norm, and otherwise the distance of two whole participants.
        """
        part = self.parts[index]
        reach = part.weight * (min(1.0, part.radius) if single else part.radius)
        if not self.cone:
            plain = 2.0 * reach
        elif 2.0 * reach**2 <= self.norm:
            plain = math.sqrt(8.0) * reach * math.sqrt(self.norm - reach**2)
        else:
            plain = Bound(self.norm, cone=True).spread
        return plain * self.spread / Bound(self.reach, self.cone).spread


def choose_weights(
    costs: Sequence[float], radii: Sequence[float], limits: Sequence[float]
) -> tuple[float, ...]:
    """Choose weights a of views with the least noise: minimal Σ cost/a², Σ (R a)² <= 1.

    The noise of an entry after the release is divided by its weight again. Without limits a is
    proportional to (cost/R²)^¼, from the Lagrangian. Views that would exceed their limits are set
    to them, which leaves more to the others.

    Parameters
    ----------
    costs, radii : sequence of float
        Positive numbers, one for each part.
    limits : sequence of float
        Positive; infinity for none.
    """
    shapes = [(cost / radius**2) ** 0.25 for cost, radius in zip(costs, radii, strict=True)]
    waiting = sorted(range(len(shapes)), key=lambda k: limits[k] / shapes[k], reverse=True)
    weights = list(limits)
    left = 1.0
    while waiting:
        level = math.sqrt(left / math.fsum((radii[k] * shapes[k]) ** 2 for k in waiting))
        first = waiting[-1]
        if limits[first] > level * shapes[first]:  # and so do all the others
            for k in waiting:
                weights[k] = level * shapes[k]
            break
        left = max(left - (radii[first] * limits[first]) ** 2, 0.0)
        waiting.pop()
    return tuple(weights)
