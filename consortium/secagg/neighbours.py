"""How few neighbours a site needs: masks and shares within a random graph instead of among all.

J. Bell, K. A. Bonawitz, A. Gascón, T. Lepoint and M. Raykova, Secure single-server aggregation
with (poly)logarithmic overhead, CCS 2020. This module plans such a graph; no run uses it yet.

Setting: n sites, c of them and the centre collude, h = n − c are honest, d may drop out. *After* it
has seen everybody's keys, each site draws k of the others, from its own secret: the centre and its
friends, who choose their keys last, could otherwise try keys until the graph suits them. The k
are its *holders*: they get the shares of its seeds, of which t open one. Two sites share a pair
mask if either drew the other. A site answers one list a round, with at least n − d survivors on it.
An event is named that must not happen, and its probability bounded over the draws of honest sites:

1. *Some honest site has more than x colluding holders*: at most h P[Hyp(n − 1, c, k) > x]. Without
   it, both secrets of one honest site never open if t > (k + x)/2 (as in `threshold`).
2. Let K be the honest sites whose key seed opens. Each honest site lists at most d as lost, and
   each member of K needs t − x of these answers: |K| <= h d/(t − x), the *hidden losses*. The
   answers to different lists are spread over all neighbourhoods, which is why this is more than
   the d of a complete graph, and why noise must be planned for h − |K| honest sites.
3. *The honest sites without K fall apart*, so that more than one sum is learnt: some set A of at
   most half of them, and the rest B, drew nobody from each other. Union bound over A and K, with
   C(|A| − 1 + |K| + c, k)/C(n − 1, k) for each member of A, C(n − 1 − |A|, k)/C(n − 1, k) of B.

That drop-outs stop a round is no question of privacy; with y the most that a neighbourhood loses
except with the same probability (if who drops out does not depend on the graph), t = k − y.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb, exp, lgamma

from consortium.errors import StudyError

FEWEST_SITES = 33
"""Up to 32 sites the complete graph costs little."""
FAILURE = 2.0**-40
MOST_HIDDEN = 0.1
"""Hidden losses as a share of the honest sites: they cost as much of the noise's variance."""


@dataclass(frozen=True)
class Neighbourhood:
    """A planned graph.

    Parameters
    ----------
    holders : int
        k, sites that each site draws.
    threshold : int
        t, of k shares.
    hidden : int
        Honest sites that may be missing from a sum without anybody's noticing; plan the noise
        for as many drop-outs, or for the announced ones if they are more.
    failure : float
        Most probability, over the graph, that the promise does not hold; add it to δ.
    """

    holders: int
    threshold: int
    hidden: int
    failure: float


def plan_neighbourhood(
    sites: int,
    colluding: int,
    dropouts: int,
    *,
    failure: float = FAILURE,
    most_hidden: float = MOST_HIDDEN,
) -> Neighbourhood | None:
    """Choose the fewest holders whose failure probability is low enough.

    Parameters
    ----------
    sites, colluding, dropouts : int
        n, c and d.
    failure : float
        Target of the failure probability, and of that of a round's being stopped by drop-outs.
    most_hidden : float
        Largest share of honest sites among the hidden losses.

    Returns
    -------
    Neighbourhood or None
        None if the sites are few or only the complete graph will do.

    Raises
    ------
    StudyError
        If the numbers make no consortium.
    """
    if not (0 <= colluding < sites and 0 <= dropouts < sites and 0 < failure < 1):
        raise StudyError(
            f"{colluding} colluding and {dropouts} missing of {sites} sites make no consortium; "
            "leave at least one honest site."
        )
    if sites < FEWEST_SITES:
        return None
    plans = (_plan(sites, colluding, dropouts, k, failure) for k in range(1, sites - 1))
    allowed = most_hidden * (sites - colluding)
    return next((p for p in plans if p and p.failure <= failure and p.hidden <= allowed), None)


def _plan(
    sites: int, colluding: int, dropouts: int, k: int, failure: float
) -> Neighbourhood | None:
    """Plan with k holders, or None if no threshold is safe."""
    honest = sites - colluding
    bad, risk = _most(sites - 1, colluding, k, failure / 2, honest)
    gone, _ = _most(sites - 1, dropouts, k, failure, sites)
    threshold = k - gone
    if 2 * threshold <= k + bad:
        return None
    hidden = honest * dropouts // (threshold - bad)
    if hidden >= honest - 1:
        return None
    return Neighbourhood(k, threshold, hidden, risk + split_bound(sites, colluding, hidden, k))


def _most(
    population: int, marked: int, drawn: int, failure: float, times: int
) -> tuple[int, float]:
    """Marked ones that no draw of several exceeds but with the probability given with them."""
    for most in range(min(marked, drawn) + 1):
        risk = times * draw_tail(population, marked, drawn, most)
        if risk <= failure:
            return most, risk
    raise AssertionError("no draw has more marked ones than there are")


def draw_tail(population: int, marked: int, drawn: int, most: int) -> float:
    """P[more than ``most`` marked ones in a draw without replacement], hypergeometric, exact."""
    above = range(most + 1, min(marked, drawn) + 1)
    ways = sum(comb(marked, i) * comb(population - marked, drawn - i) for i in above)
    return ways / comb(population, drawn)


def split_bound(sites: int, colluding: int, removed: int, k: int) -> float:
    """Bound the probability that honest sites fall apart once any ``removed`` of them are gone."""
    return min(1.0, sum(exp(term) for term in _splits(sites, colluding, removed, k)))


def _splits(sites: int, colluding: int, removed: int, k: int) -> Iterator[float]:
    """Logarithms of the union bound's terms, one for each size of the smaller part."""
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
    """Logarithm of a binomial coefficient; minus infinity if it is zero."""
    if not 0 <= k <= n:
        return float("-inf")
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
