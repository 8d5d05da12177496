"""Who holds shares of whose seeds, and who has a mask in common with whom.

With few sites everybody holds a share of everybody's seeds, its own included, and every two sites
have a mask in common. With many (see `consortium.secagg.graph_size`) each site draws its holders
and names them in its advertisement, so that the bundle of keys, whose digest is part of every
mask, fixes one graph for all:

- the *holders* of a site are those it drew, never itself; they get the shares of its seeds;
- its *owners* are the sites that drew it;
- its *neighbours*, with whom it has a mask in common, are both.

The draw depends on the site's secret and on what was agreed before the run, and on nobody's
keys: it has one outcome, whatever others do before or after. An advertisement that names too
few holders, or its own site, is no sound one. A site that names only friends of the centre has
merely given its own seeds away, which a friend of the centre could do by word of mouth; it can't
take away an edge that an honest site drew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from consortium.errors import ProtocolError

LOT_BYTES = 16
"""Bytes of a lot; two of 256 sites draw the same with probability below 2^-112."""


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
        """Sites that hold shares of a site's seeds; in a complete graph the site is one of them."""
        sites, draw = self.sites, self.draws[owner]
        return tuple(sites[point - 1] for point in draw) if draw else sites

    def owners(self, holder: str) -> tuple[str, ...]:
        """Sites whose shares a site holds."""
        if not self.draws[holder]:
            return self.sites
        point = self.sites.index(holder) + 1
        return tuple(site for site, draw in self.draws.items() if point in draw)

    def neighbours(self, site: str) -> tuple[str, ...]:
        """Sites with whom a site has a mask in common."""
        near = {*self.holders(site), *self.owners(site)} - {site}
        return tuple(peer for peer in self.draws if peer in near)


def draw_holders(lots: bytes, sites: int, own: int, count: int) -> tuple[int, ...]:
    """Draw from the other sites, every set as likely as any other.

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
            f"{name} doesn't name {count} other sites as holders of its shares, in roster order; "
            "install the same version there."
        )
