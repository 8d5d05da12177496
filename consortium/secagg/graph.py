"""The graph of a run: who has shares of a site's seeds, who shares a mask, and when it is safe.

With few sites, each site has a share of every site's seeds, also of its own, and every two sites
share a mask. With many, each site draws its holders and names them in its advertisement. The bundle
of keys, whose digest is part of every mask, then fixes one graph for all:

- the *holders* of a site are those it drew, never itself; they get the shares of its seeds;
- its *owners* are the sites that drew it;
- its *neighbours*, which share a mask with it, are both.

The draw depends on the site's secret and on the agreement before the run, and not on any party's
keys. So it has one outcome, whatever others do before or after. An advertisement that names too
few holders, or its own site, is refused. A site that names only sites that collude with the centre
has given its own seeds away, which a colluding site could do anyway. It can't remove an edge that
an honest site drew.

How few neighbours a site needs, for masks and shares within a random graph instead of among all: J.
Bell, K. A. Bonawitz, A. Gascón, T. Lepoint and M. Raykova, Secure single-server aggregation with
(poly)logarithmic overhead, CCS 2020.

Setting: n sites, c of them and the centre collude, h = n − c are honest, d may drop out. The
colluding sites are fixed before the draws: a centre that wins sites over after it has seen the
graph can choose those around one victim. No bound below protects against it, but a complete graph
does. Each site draws k of the others from its own secret, which no key of another site can
influence. With a public seed, the colluding parties, who choose their keys last, could try keys
until the graph suits them. They can still have the run started again, which is another draw and
another failure probability. The k are the site's *holders*: they get the shares of its seeds, and t
shares recover one. Two sites share a pair mask if either drew the other. A site answers one list a
round, with at least n − d survivors on it. Each item names an event that must not happen and bounds
its probability over the draws of honest sites:

1. *Some honest site has more than x colluding holders*: at most h P[Hyp(n − 1, c, k) > x]. Without
   it, both secrets of one honest site never open if t > (k + x)/2 (as in `threshold`).
2. Let K be the honest sites whose key seed opens. Each honest site lists at most d as lost, and
   each member of K needs t − x of these answers: |K| <= h d/(t − x), the *hidden losses*. The
   answers to different lists are spread over all neighbourhoods, which is why this is more than
   the d of a complete graph, and why noise must be planned for h − |K| honest sites.
3. *The honest sites without K are not connected*, and more than one sum is learnt: some set A of at
   most half of them, and the rest B, drew no site of each other. Union bound over A and K, with
   C(|A| − 1 + |K| + c, k)/C(n − 1, k) for each member of A, C(n − 1 − |A|, k)/C(n − 1, k) of B.

Honest sites that received different bundles of keys share no mask that cancels, and an honest
site that received another draw of its own stops. Both leave less to learn, not more.

Whether drop-outs stop a round does not concern privacy. Let y be the largest number that a
neighbourhood loses except with the same probability, if drop-outs do not depend on the graph. Then
t = k − y. If none may drop out, no honest site ever lists one as lost, and the smallest t of item 1
is enough. Very few holders would then be needed, and one more colluding site than assumed could
recover a site's seeds, where a complete graph loses little. k and t are therefore chosen as if a
third of the sites colluded.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb, exp, lgamma

from consortium.errors import ProtocolError, StudyError

FEWEST_SITES = 33
"""Up to 32 sites the complete graph costs little."""
FAILURE = 2.0**-40
MOST_HIDDEN = 0.02
"""Hidden losses as a share of the honest sites: they cost as much of the noise's variance."""
SUPPOSED = 3
"""Without drop-outs, k and t are chosen as if one site of this number colluded."""
MOST_HOLDERS = 0.5
"""Maximum share of the sites that are holders: above it nearly all sites are neighbours."""
LOT_BYTES = 16
"""Bytes of a lot; two of 256 sites draw the same with probability below 2^-112."""


@dataclass(frozen=True)
class Neighbourhood:
    """A planned graph of masks: the neighbours of each site."""

    holders: int
    """k, sites that each site draws."""
    threshold: int
    """t, of k shares."""
    hidden: int
    """Number of honest sites that may be missing from a sum unnoticed. Noise is planned for this
    number of drop-outs, or for the announced number if that is larger."""
    failure: float
    """Most probability, over the graph, that the promise does not hold; add it to δ."""


def plan_neighbourhood(
    sites: int,
    colluding: int,
    dropouts: int,
    *,
    failure: float = FAILURE,
    most_hidden: float = MOST_HIDDEN,
    most_holders: float = MOST_HOLDERS,
) -> Neighbourhood | None:
    """Choose the fewest holders whose failure probability is low enough.

    Raises StudyError if the numbers make no consortium.

    Parameters
    ----------
    sites, colluding, dropouts : int
        n, c and d.
    failure : float
        Target of the failure probability, and of that of a round's being stopped by drop-outs.
    most_hidden : float
        Maximum of the hidden losses as a share of the honest sites.
    most_holders : float
        Maximum of the holders as a share of the other sites.

    Returns
    -------
    Neighbourhood or None
        None if the sites are few or a graph that is much less than complete won't do.
    """
    if not (0 <= colluding < sites and 0 <= dropouts < sites and 0 < failure < 1):
        raise StudyError(
            f"{colluding} colluding and {dropouts} missing of {sites} sites make no consortium. "
            "Leave at least one honest site."
        )
    if sites < FEWEST_SITES:
        return None
    most = int(most_holders * (sites - 1))
    plans = (_plan(sites, colluding, dropouts, k, failure) for k in range(1, most + 1))
    allowed = most_hidden * (sites - colluding)
    return next((p for p in plans if p and p.failure <= failure and p.hidden <= allowed), None)


def _plan(
    sites: int, colluding: int, dropouts: int, k: int, failure: float
) -> Neighbourhood | None:
    """Plan with k holders, or None if no threshold is safe."""
    honest = sites - colluding
    supposed = colluding if dropouts else max(colluding, sites // SUPPOSED)
    bad = _most(sites - 1, supposed, k, failure / 2, honest)
    gone = _most(sites - 1, dropouts, k, failure, sites)
    threshold = k - gone if dropouts else (k + bad) // 2 + 1
    if threshold > k or 2 * threshold <= k + bad:
        return None
    hidden = honest * dropouts // (threshold - bad)
    if hidden >= honest - 1:
        return None
    risk = max(_risk(sites, many, hidden, k, bad) for many in (colluding, supposed))
    return Neighbourhood(k, threshold, hidden, risk)


def least_safe(sites: int, dropouts: int, holders: int, threshold: int) -> bool:
    """Return whether k and t are safe at least if no site colludes with the centre.

    Parameters
    ----------
    sites, dropouts, holders, threshold : int
        n, d, k and t.
    """
    if not (0 < holders < sites - 1 and holders < 2 * threshold <= 2 * holders):
        return False
    hidden = sites * dropouts // threshold
    return hidden < sites - 1 and split_bound(sites, 0, hidden, holders) <= FAILURE


def _risk(sites: int, colluding: int, hidden: int, k: int, bad: int) -> float:
    """Bound the probability of the docstring's first and third event together."""
    crowded = (sites - colluding) * draw_tail(sites - 1, colluding, k, bad)
    return crowded + split_bound(sites, colluding, hidden, k)


def _most(population: int, marked: int, drawn: int, failure: float, times: int) -> int:
    """Return the number of marked ones that draws exceed with probability ``failure`` only."""
    for most in range(min(marked, drawn) + 1):
        if times * draw_tail(population, marked, drawn, most) <= failure:
            return most
    raise AssertionError("no draw has more marked ones than there are")


def draw_tail(population: int, marked: int, drawn: int, most: int) -> float:
    """Return P[more than ``most`` marked ones in a draw without replacement], hypergeometric."""
    above = range(most + 1, min(marked, drawn) + 1)
    ways = sum(comb(marked, i) * comb(population - marked, drawn - i) for i in above)
    return ways / comb(population, drawn)


def split_bound(sites: int, colluding: int, removed: int, k: int) -> float:
    """Bound the probability that honest sites fall apart once any ``removed`` of them are gone."""
    return min(1.0, sum(exp(term) for term in _splits(sites, colluding, removed, k)))


def _splits(sites: int, colluding: int, removed: int, k: int) -> Iterator[float]:
    """Yield logarithms of the union bound's terms, one for each size of the smaller part."""
    honest = sites - colluding
    everything = _log_comb(sites - 1, k)
    for size in range(1, (honest - removed) // 2 + 1):
        within = size - 1 + removed + colluding
        if within < k:
            continue
        rest = honest - removed - size
        inside = size * (_log_comb(within, k) - everything)
        outside = rest * (_log_comb(sites - 1 - size, k) - everything)
        yield _log_comb(honest, size) + _log_comb(honest - size, removed) + inside + outside


def _log_comb(n: int, k: int) -> float:
    """Return the logarithm of a binomial coefficient, minus infinity if it is zero."""
    if not 0 <= k <= n:
        return float("-inf")
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


@dataclass(frozen=True)
class Graph:
    """The graph of one run; all lists are in roster order."""

    draws: Mapping[str, tuple[int, ...]]
    """For every site, in roster order, a sound draw (see `check_holders`) as points; all empty in a
    complete graph."""

    @property
    def sites(self) -> tuple[str, ...]:
        """Everybody."""
        return tuple(self.draws)

    def holders(self, owner: str) -> tuple[str, ...]:
        """Return the sites with shares of a site's seeds, in a complete graph also the site."""
        sites = self.sites
        draw = self.draws[owner]
        return tuple(sites[point - 1] for point in draw) if draw else sites

    def owners(self, holder: str) -> tuple[str, ...]:
        """Return the sites whose shares a site has."""
        if not self.draws[holder]:
            return self.sites
        point = self.sites.index(holder) + 1
        return tuple(site for site, draw in self.draws.items() if point in draw)

    def neighbours(self, site: str) -> tuple[str, ...]:
        """Return the sites that share a mask with a site."""
        near = {*self.holders(site), *self.owners(site)} - {site}
        return tuple(peer for peer in self.draws if peer in near)


def draw_holders(lots: bytes, sites: int, own: int, count: int) -> tuple[int, ...]:
    """Draw the holders of a site's shares from the other sites, each set equally likely.

    Parameters
    ----------
    lots : bytes
        16 uniform bytes for each site.
    sites : int
        n; the sites' points are 1 ... n.
    own : int
        Point of the site that draws.
    count : int
        k < n.

    Returns
    -------
    tuple of int
        k points in ascending order: those with the lowest lots.
    """
    starts = {point: (point - 1) * LOT_BYTES for point in range(1, sites + 1) if point != own}
    ranked = sorted(starts, key=lambda point: lots[starts[point] : starts[point] + LOT_BYTES])
    return tuple(sorted(ranked[:count]))


def check_holders(points: Sequence[int], sites: int, own: int, count: int, name: str) -> None:
    """Refuse an advertised draw that no sound site makes; the parameters are `draw_holders`'.

    Raises ProtocolError: it names the site.
    """
    ascending = list(points) == sorted(set(points))
    inside = not points or 1 <= min(points) <= max(points) <= sites
    if not (len(points) == count and ascending and inside and own not in points):
        raise ProtocolError(
            f"{name} doesn't name {count} other sites as holders of its shares, in roster order. "
            "Install the same version there."
        )
