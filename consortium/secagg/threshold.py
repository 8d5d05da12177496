"""How many sites must answer before a sum opens, and how many may drop out.

Setting: n sites, c of them work for the centre, h = n − c are honest. The centre may show
different lists of survivors and lost sites to different sites, because no round of the protocol
compares the lists. An honest site answers one list a round, with at least m = n − d survivors on
it. It gives its share of a site's self-mask seed (site listed as survivor) or of its key seed
(listed as lost), never both. The c colluding sites give the centre all their shares.

A secret therefore opens with t − c honest answers of its kind. Two things must be impossible:

1. *Both secrets of one honest site*: 2(t − c) honest answers are needed, and there are h. So
   2(t − c) > h, that is t > (n + c)/2.
2. *The sum over fewer than m − c honest sites.* Let K be the honest sites whose key seed opens and
   R the other honest ones. By 1 the values of K stay hidden behind their self-masks, and the
   values of R behind their common pair masks except for one sum, the one over all of R (not
   even that, if one of R never contributed). So one sum at most is learnt, and it has the
   promised m − c = h − d honest terms if |K| <= d. Each of at most h answers lists at most d
   honest sites as lost, and each member of K needs t − c of these: |K| <= h d/(t − c), which is
   below d + 1 if t − c > h d/(d + 1).

For d >= 1 the second condition contains the first, as d/(d + 1) >= 1/2. It can't be weakened: h
honest sites that each list d of the same d + 1 victims in turn give every victim
floor(h d/(d + 1)) answers, although none lists itself. For d = 0 no honest site ever gives a key
seed's share, and t > c would do. The first condition is kept because it costs nothing that was
promised and protects a study whose sites were set up with a smaller m than was meant.

Drop-outs must not stop the protocol: t <= m. With the second condition this is h > d(d + 1): one
drop-out takes 3 honest sites, two take 7, three take 13.
"""

from math import isqrt

from consortium.errors import StudyError


def threshold(sites: int, colluding: int, dropouts: int) -> int:
    """Return the smallest safe number t of answers that opens a round's sum.

    Raises StudyError if no threshold is safe. The message says how many drop-outs would be
    possible.

    Parameters
    ----------
    sites : int
        n >= 1.
    colluding : int
        c, 0 <= c < n: sites that may work for a malicious centre.
    dropouts : int
        d >= 0: sites that may be missing from a sum.

    Returns
    -------
    int
        t with c < t <= n − d.
    """
    if not (sites >= 1 and 0 <= colluding < sites and dropouts >= 0):
        raise StudyError(
            f"{colluding} colluding and {dropouts} missing of {sites} sites make no consortium. "
            "Leave at least one honest site."
        )
    possible = most_dropouts(sites, colluding)
    if dropouts > possible:
        raise StudyError(
            f"dropouts must be at most {possible} with {sites} sites and colluding_sites of "
            f"{colluding}, got {dropouts}. Lower dropouts, or add sites."
        )
    honest = sites - colluding
    return colluding + max(honest * dropouts // (dropouts + 1), honest // 2) + 1


def most_dropouts(sites: int, colluding: int) -> int:
    """Return the largest d that `threshold` accepts: the largest with d(d + 1) < n − c.

    Parameters
    ----------
    sites, colluding : int
        n and c, 0 <= c < n.
    """
    return (isqrt(4 * (sites - colluding) - 3) - 1) // 2
