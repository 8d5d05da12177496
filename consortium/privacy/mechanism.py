"""Protection of a site's statistic before it leaves the site.

One `Mechanism` describes a planned release completely and contains no data: the grid, every site's
noise in whole grid steps, and the exact privacy loss (`losses`).
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
    """How sites share the noise of every release of a study, and the coalitions it resists."""

    scheme: Scheme
    colluding: int
    """Sites that collude with the centre."""
    dropouts: int = 0
    hidden: int = 0
    """Number of sites that may be missing, and of those that may be missing unnoticed."""
    boost: Boost = "exact"
    """See `calibrate`."""
    public: bool = False
    """Whether all parties may read the sites' open vectors, which exist if boost is a number."""

    @property
    def exact(self) -> bool:
        """Whether the correlated noise is uniform on the ring."""
        return self.scheme == "cape" and self.boost == "exact"

    @property
    def missing(self) -> int:
        """Sites without which the noise must still be enough."""
        return max(self.dropouts, self.hidden)

    def noise(self, sensitivities: Sequence[float], target: float) -> SiteNoise:
        """Return noise with which no site loses more than a target; raises as `calibrate`."""
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
    """Number of the missing sites that may be missing unnoticed."""
    each: bool = False
    """Every site's own answer is released, and not only their sum."""
    public: bool = False
    """Whether all parties may read the sites' open vectors, not only the centre."""
    exact: bool = False
    """The correlated noise is uniform on the ring: the mask of the secure sum."""
    sums: bool = False
    """Whether a site's vector is a sum over its units divided by their nominal number. It then
    depends on the number of units."""
    counted: float = 0.0
    """c, the weight of a unit in the last entries, where each site counts its units in an entry of
    its own. 0 without such entries."""

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
        """Whether the released sum can be added again from messages that all parties may read."""
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
        """Return how many numbers a round over ``sites`` sites releases."""
        return self.entries * (sites if self.each else 1)

    def coalition(self, present: Sequence[int] | None = None) -> Floats:
        """Return exact μ_s against the worst coalition, of sites present or planned for the worst.

        The coalition may have kept more sites out of the sum than the known missing ones, up to
        ``hidden`` in all.
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
        """Return exact μ_s against an outsider who sees only the release, as `coalition`."""
        if self.each:  # the centre sees only the released part of a site's vector
            return self.coalition(present)
        if self.public:  # all parties see the messages that the centre sees, and no site's secrets
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
        """Return the standard deviation of a sum over sites present: noise and later rounding."""
        return math.hypot(self.noise.aggregate(present), self._rounding * math.sqrt(len(present)))

    def deviations(self, present: Sequence[int]) -> Floats:
        """Return the standard deviation of each site's own answer, as `deviation`."""
        return np.hypot([self.noise.local[s] for s in present], self._rounding)

    @property
    def _rounding(self) -> float:
        """Of one number's rounding to the coarse grid."""
        return self.lattice.grid / math.sqrt(12.0) if self.lattice.dropped else 0.0

    def protect(
        self, site: int, statistic: Array, sampler: GaussianSampler, part: float = 1.0
    ) -> ProtectedStatistic:
        """Weight, round and hide one site's statistic, with a count of its units.

        Raises RangeError if the statistic exceeds its bound, has other values than numbers, or has
        another number of entries than planned.

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
                f"A site's statistic has {len(values)} numbers where {planned} are planned. "
                "Look at the shapes of the query's arguments."
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
            With a norm of at most `reach`, if the mean keeps the bound.
        """
        if not self.sums:
            return mean
        if not vector_norm(mean) <= self.bound.norm * (1 + 1e-6):
            raise RangeError(
                "A site's statistic is not a number or exceeds its clipping bound. Look for "
                "infinite or missing values in the site's images."
            )
        count = np.zeros(self.places)
        if self.places:
            count[0 if self.each else site] = self.counted
        return clip_vector(np.append(mean, count) * part, self.reach)

    def combine(self, hidden: Array, opened: Sequence[Array]) -> Array:
        """Return the public vector in the ring, from the opened secure sum and open contributions.

        It is the noisy sum, or the concatenated contributions if each is released.
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
        """Return the result of `combine` as numbers in the aggregator's units."""
        return self.lattice.decode(self.combine(hidden, opened))


def _reach(bound: Bound, counted: float, *, sums: bool) -> float:
    """Return the largest norm of a site's vector, with its count."""
    return (HEADROOM if sums else 1) * math.hypot(bound.norm, counted)


def rounding_allowance(units: int) -> float:
    """Return the relative error of float64 in the sensitivity of a mean over units.

    Clipping and products are exact to `_CLIPPED`. The error of a sum of n contributions of norm B
    is at most λ √n u n B except with probability 2 exp(-λ²/2) (Higham and Mary 2019), where u is
    half of the machine's epsilon. Both neighbours' sums have it, and in the worst case they differ
    by √2 B or more.
    """
    machine = float(np.finfo(np.float64).eps)
    return _CLIPPED + _ODDS * machine * math.sqrt(units) * units


def _least_hiding(noise: SiteNoise) -> float:
    """Return the smallest deviation of a site's local noise, with correlated noise if open."""
    local = np.asarray(noise.local)
    if noise.scheme == "cape" and not noise.exact:
        correlated = np.asarray(noise.correlated)
        local = local * correlated / np.maximum(np.hypot(local, correlated), np.finfo(float).tiny)
    return float(local.min())


def _lattice(draft: SiteNoise, entries: int, norm: float, sensitivity: float) -> Lattice:
    """Return the grid for the noise of a draft without a grid."""
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
    """Plan one release with a loss of at most ``target`` for every site against the coalition.

    The release is the sum over all sites, or ``each`` site's own answer. Sites are weighted by
    their nominal units (w_s = n_s/n). So the release is a sum over all units divided by n, and
    every site has the same sensitivity. If the open vectors are public, outsiders see them. Raises
    PrivacyError if the target can't be met; see `calibrate`, `plan_lattice` and `Bound`.

    Parameters
    ----------
    entries : int
        Entries of the statistic, without those that count units.
    units : sequence of int
        Nominal numbers.
    sums : bool
        Whether sites send sums over units, with a count where the bound leaves room for one.
    """
    if each and sharing.scheme != "none":
        sharing = replace(sharing, scheme="local")  # a single answer needs all its noise
    total = sum(units)
    weights = tuple(count / total for count in units)
    largest = max(w * bound.sensitivity(n) for w, n in zip(weights, units, strict=True))
    # All alike: `calibrate` then gives every site the same noise, which the coarse grid requires.
    most = (HEADROOM if sums else 1) * max(units)
    plain = (largest * (1.0 + rounding_allowance(most)),) * len(units)
    counted = bound.count_weight if sums else 0.0
    if counted:
        entries += 1 if each else len(units)
    reach = _reach(bound, counted, sums=sums)
    lattice = _lattice(sharing.noise(plain, target), entries, reach, min(plain))
    rounded = (plain[0] + lattice.rounding(entries),) * len(plain)
    final = sharing.noise(rounded, target)
    planned = Mechanism(
        scheme=sharing.scheme,
        entries=entries,
        bound=bound,
        weights=weights,
        lattice=lattice,
        sensitivities=rounded,
        correlated=tuple(math.ceil(sigma / lattice.step) for sigma in final.correlated),
        local=tuple(math.ceil(gamma / lattice.step) for gamma in final.local),
        colluding=sharing.colluding,
        dropouts=sharing.missing,
        hidden=sharing.hidden,
        each=each,
        public=sharing.public and sharing.scheme == "cape" and not sharing.exact,
        exact=sharing.exact,
        sums=sums,
        counted=counted,
    )
    if lattice.dropped and _least_hiding(planned.noise) < FINENESS * lattice.grid:
        raise PrivacyError(
            f"The noise of a site is less than {FINENESS:g} cells of its grid, and would not hide "
            "the rounding. Report this as a fault of the software."
        )
    return planned
