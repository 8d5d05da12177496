"""What a site does to its statistic before anything leaves it.

One `Mechanism` describes a planned release fully and knows no data: the grid,
every site's noise in whole grid steps, and through `losses` its exact price.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from consortium.base.array import Array
from consortium.errors import PrivacyError, RangeError
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_vector, vector_norm
from consortium.privacy.lattice import FINENESS, Lattice, plan_lattice
from consortium.privacy.loss import (
    Boost,
    Floats,
    Scheme,
    SiteNoise,
    calibrate,
    coalition_losses,
    outsider_losses,
)
from consortium.privacy.noise import GaussianSampler

_CLIPPED = 1e-9
HEADROOM = 2
"""Largest number of units over the nominal number. The sums of more are projected on a ball, which
moves no two sums further apart."""
_ODDS = 8.0  # λ: 2e-14


@dataclass(frozen=True)
class ProtectedStatistic:
    """A site's protected contribution, in the ring."""

    masked: Array
    """Goes into the secure sum (empty for the schemes ``local`` and ``none``)."""
    opened: Array
    """Goes to the centre as it is (empty if the correlated noise is exact)."""


@dataclass(frozen=True)
class Sharing:
    """How sites share the noise of every release of a study, and what it has to stand."""

    scheme: Scheme
    colluding: int
    """Sites that side with the centre."""
    dropouts: int = 0
    hidden: int = 0
    """Sites that may be missing, and those that may be so without anybody's noticing."""
    boost: Boost = "exact"
    """See `calibrate`."""
    public: bool = False
    """Whether everybody may read the sites' open vectors; there are some if boost is a number."""

    @property
    def exact(self) -> bool:
        """Whether the correlated noise is uniform on the ring."""
        return self.scheme == "cape" and self.boost == "exact"

    @property
    def missing(self) -> int:
        """Sites without which the noise must still be enough."""
        return max(self.dropouts, self.hidden)

    def noise(self, sensitivities: Sequence[float], target: float) -> SiteNoise:
        """Noise with which no site loses more than a target; raises as `calibrate`."""
        return calibrate(
            self.scheme,
            sensitivities,
            [target] * len(sensitivities),
            colluding=self.colluding,
            dropouts=self.missing,
            boost=self.boost,
        )


@dataclass(frozen=True)
class Mechanism:
    """A noisy sum of the sites' weighted statistics."""

    scheme: Scheme
    entries: int
    bound: Bound
    weights: tuple[float, ...]
    """w_s, adding up to one: nominal numbers of units over that of all sites."""
    lattice: Lattice
    sensitivities: tuple[float, ...]
    """Δ_s of w_s·f_s as computed and rounded, in the aggregator's units."""
    correlated: tuple[int, ...]
    local: tuple[int, ...]
    """σ_s and γ_s of the draws, in fine steps of the grid."""
    colluding: int
    dropouts: int
    """Sites that the noise is planned for: friends of the centre, and missing ones."""
    hidden: int = 0
    """Of the missing, those that may be so without anybody's noticing."""
    each: bool = False
    """Every site's own answer is released, and not only their sum."""
    public: bool = False
    """Everybody may read the sites' open vectors, and not the centre alone."""
    exact: bool = False
    """The correlated noise is uniform on the ring: the mask of the secure sum."""
    sums: bool = False
    """True if a site's vector is a sum over its units divided by their nominal number, so that it
    depends on how many there are."""
    counted: float = 0.0
    """c, the weight of a unit in the last entries, where each site counts its units in an entry of
    its own; 0 without such entries."""

    @property
    def places(self) -> int:
        """Number of entries that count units: one for each site of a sum."""
        if not self.counted:
            return 0
        return 1 if self.each else len(self.weights)

    @property
    def reach(self) -> float:
        """Largest norm of a site's vector, in the statistic's unit."""
        return _reach(self.bound, self.counted, sums=self.sums)

    @property
    def shown(self) -> bool:
        """Whether the released sum can be added again from what everybody may read."""
        return not self.each and (self.public or self.exact)

    @property
    def noise(self) -> SiteNoise:
        """The noise in the aggregator's units."""
        step = self.lattice.step
        return SiteNoise(
            self.scheme,
            tuple(sigma * step for sigma in self.correlated),
            tuple(gamma * step for gamma in self.local),
            self.exact,
        )

    @property
    def masked_entries(self) -> int:
        """Length of a contribution's part for the secure sum."""
        return self.entries if self.scheme == "cape" else 0

    @property
    def opened_entries(self) -> int:
        """Length of a contribution's part that the centre sees as it is."""
        return 0 if self.exact else self.entries

    def released(self, sites: int) -> int:
        """Numbers that a round over so many sites releases."""
        return self.entries * (sites if self.each else 1)

    def coalition(self, present: Sequence[int] | None = None) -> Floats:
        """Exact μ_s against the worst coalition: of those present, or planned for the worst.

        The coalition may have kept more sites out of the sum than those who are known to be
        missing, up to ``hidden`` in all.
        """
        known = 0 if present is None else len(self.local) - len(present)
        return coalition_losses(
            self.noise,
            self.sensitivities,
            self.colluding,
            dropouts=self.dropouts if present is None else max(0, self.hidden - known),
            present=present,
        )

    def outsider(self, present: Sequence[int] | None = None) -> Floats:
        """Exact μ_s against who sees the release only: of those present, or at the worst."""
        if self.each:  # what the centre sees of a site is what is released of it
            return self.coalition(present)
        if self.public:  # everybody sees what the centre sees, and knows no site's secrets
            return coalition_losses(
                self.noise,
                self.sensitivities,
                0,
                dropouts=self.dropouts if present is None else 0,
                present=present,
            )
        return outsider_losses(
            self.noise,
            self.sensitivities,
            dropouts=self.dropouts if present is None else 0,
            present=present,
        )

    def deviation(self, present: Sequence[int]) -> float:
        """Standard deviation of a released sum of those present: noise, and rounding after it."""
        return math.hypot(self.noise.aggregate(present), self._rounding * math.sqrt(len(present)))

    def deviations(self, present: Sequence[int]) -> Floats:
        """Standard deviation of each one's own answer, as `deviation`."""
        return np.hypot([self.noise.local[s] for s in present], self._rounding)

    @property
    def _rounding(self) -> float:
        """Of one number's rounding to the coarse grid."""
        return self.lattice.grid / math.sqrt(12.0) if self.lattice.dropped else 0.0

    def protect(
        self, site: int, statistic: Array, sampler: GaussianSampler, part: float = 1.0
    ) -> ProtectedStatistic:
        """Weight, round and hide one site's statistic, with a count of its units.

        Raises RangeError if the statistic exceeds its bound, holds no numbers, or has another
        number of entries than planned.

        Parameters
        ----------
        site : int
            Index of the site.
        statistic : array
            The clipped mean over the site's units, of any shape, without the count.
        sampler : GaussianSampler
            Freshly keyed for this release.
        part : float
            Number of the site's units over the nominal number; used where `sums` is true.
        """
        weight = self.weights[site]
        values = np.asarray(statistic, dtype=np.float64).ravel()
        planned = self.entries - self.places
        if len(values) != planned:  # a single draw would be repeated for many numbers
            raise RangeError(
                f"A site's statistic has {len(values)} numbers where {planned} are planned; "
                "look at the shapes of the query's arguments."
            )
        whole = self.lattice.encode(weight * self.total(site, values, part), weight * self.reach)
        whole += sampler.draw(self.local[site], self.entries)
        whole = self.lattice.coarse(whole)
        nothing = np.zeros(0, dtype=self.lattice.dtype)
        if self.scheme != "cape":
            return ProtectedStatistic(nothing, self.lattice.wrap(whole))
        if self.exact:
            return ProtectedStatistic(self.lattice.wrap(whole), nothing)
        correlated = self.lattice.coarse(sampler.draw(self.correlated[site], self.entries))
        return ProtectedStatistic(
            self.lattice.wrap(correlated), self.lattice.wrap(whole + correlated)
        )

    def total(self, site: int, mean: Array, part: float) -> Array:
        """Turn a site's mean into a sum over its nominal number of units, with its count.

        Raises RangeError if the mean exceeds the bound or contains other values than numbers.

        Parameters
        ----------
        mean : array, length ``entries - places``
            Over the units that the site has.
        part : float
            Number of these units over the nominal number.

        Returns
        -------
        array, length ``entries``
            Of norm `reach` at most, if the mean keeps the bound.
        """
        if not self.sums:
            return mean
        if not vector_norm(mean) <= self.bound.norm * (1 + 1e-6):
            raise RangeError(
                "A site's statistic is not a number or exceeds its clipping bound; look for "
                "infinite or missing values in the site's images."
            )
        count = np.zeros(self.places)
        if self.places:
            count[0 if self.each else site] = self.counted
        return clip_vector(np.append(mean, count) * part, self.reach)

    def combine(self, hidden: Array, opened: Sequence[Array]) -> Array:
        """What becomes public, in the ring: from the opened secure sum and the open contributions.

        The noisy sum, or the contributions side by side where each is released.
        """
        if self.each:
            return np.concatenate(opened)
        if self.exact:
            return hidden
        total = np.zeros(self.entries, dtype=self.lattice.dtype)
        for part in opened:
            total += part
        if self.scheme == "cape":
            total -= hidden
        return self.lattice.reduce(total)

    def release(self, hidden: Array, opened: Sequence[Array]) -> Array:
        """What `combine` gives, as numbers in the aggregator's units."""
        return self.lattice.decode(self.combine(hidden, opened))


def _reach(bound: Bound, counted: float, *, sums: bool) -> float:
    """Return the largest norm of a site's vector, with its count."""
    return (HEADROOM if sums else 1) * math.hypot(bound.norm, counted)


def rounding_allowance(units: int) -> float:
    """What float64 adds to the sensitivity of a mean over so many units, over the sensitivity.

    A contribution is clipped and a product formed to `_CLIPPED`. A sum of n contributions of norm B
    is off by λ √n u n B but for odds of 2 exp(-λ²/2) (Higham and Mary 2019), u being half of the
    machine's epsilon. Both neighbours' sums are, and they are √2 B apart or more at the worst.
    """
    machine = float(np.finfo(np.float64).eps)
    return _CLIPPED + _ODDS * machine * math.sqrt(units) * units


def _least_hiding(noise: SiteNoise) -> float:
    """Least deviation of a site's local noise, given local + correlated where those are open."""
    local = np.asarray(noise.local)
    if noise.scheme == "cape" and not noise.exact:
        correlated = np.asarray(noise.correlated)
        local = local * correlated / np.maximum(np.hypot(local, correlated), np.finfo(float).tiny)
    return float(local.min())


def _lattice(draft: SiteNoise, entries: int, norm: float, sensitivity: float) -> Lattice:
    """The grid for noise as it would be without one."""
    return plan_lattice(
        entries=entries,
        bound=norm,
        sensitivity=sensitivity,
        aggregate=draft.aggregate(),
        largest=max((*draft.correlated, *draft.local)),
        sites=len(draft.local),
        least=_least_hiding(draft),
    )


def plan_mechanism(
    sharing: Sharing,
    *,
    entries: int,
    bound: Bound,
    units: Sequence[int],
    target: float,
    each: bool = False,
    sums: bool = False,
) -> Mechanism:
    """Plan one release so that every site's loss against the coalition is at most ``target``.

    The release is the sum over all sites, or ``each`` site's own answer. Sites weigh as they have
    nominal units (w_s = n_s/n), so that the release is a sum over all units divided by n, and every
    site has the same sensitivity. Where the open vectors are public, outsiders are counted as
    seeing them. Raises PrivacyError if the target can't be met; see `calibrate`, `plan_lattice` and
    `Bound`.

    Parameters
    ----------
    entries : int
        Of the statistic, without those that count units.
    units : sequence of int
        Nominal numbers.
    sums : bool
        Whether sites send sums over units, with a count where the bound leaves room for one.
    """
    if each and sharing.scheme != "none":
        sharing = replace(sharing, scheme="local")  # what stands alone needs all its noise
    total = sum(units)
    weights = tuple(count / total for count in units)
    largest = max(w * bound.sensitivity(n) for w, n in zip(weights, units, strict=True))
    # All alike: `calibrate` then gives every site the same noise, which the coarse grid rests on.
    most = (HEADROOM if sums else 1) * max(units)
    plain = (largest * (1.0 + rounding_allowance(most)),) * len(units)
    counted = bound.beside if sums else 0.0
    if counted:
        entries += 1 if each else len(units)
    reach = _reach(bound, counted, sums=sums)
    lattice = _lattice(sharing.noise(plain, target), entries, reach, min(plain))
    rounded = (plain[0] + lattice.rounding(entries),) * len(plain)
    final = sharing.noise(rounded, target)
    planned = Mechanism(
        sharing.scheme,
        entries,
        bound,
        weights,
        lattice,
        rounded,
        tuple(math.ceil(sigma / lattice.step) for sigma in final.correlated),
        tuple(math.ceil(gamma / lattice.step) for gamma in final.local),
        sharing.colluding,
        sharing.missing,
        sharing.hidden,
        each,
        sharing.public and sharing.scheme == "cape" and not sharing.exact,
        sharing.exact,
        sums,
        counted,
    )
    if lattice.dropped and _least_hiding(planned.noise) < FINENESS * lattice.grid:
        raise PrivacyError(
            f"The noise of a site is less than {FINENESS:g} cells of the grid that it is rounded "
            "to, and would not hide what is rounded; report this as a fault of the software."
        )
    return planned
