"""A site's half of `regression`: second moment, squared influences, and counts of predictions.

If participants are held out, each takes part either in the first two statistics, as a training
participant, or in the third one. A keyed hash of the participant decides, which others don't
affect. A participant who replaces another may be in the other part. Then one participant is removed
from one part and one is added to the other. So each release is planned for it, and both are charged
to every participant.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.site_constants import site_constants
from consortium.kernels.moments import mean_packed_square
from consortium.kernels.tiles import product_of_columns
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_columns

if TYPE_CHECKING:
    from consortium.algorithms.regression.centre import Regression


def regression_moment(plan: Regression, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean over participants of z zᵀ, packed, for z = (x, c e, αy): P + S + 1 entries.

    e is one at the site's place, or at its only place, and zero elsewhere. ‖z‖² is clipped to the
    bound B, and z zᵀ has Frobenius norm ‖z‖². Two of them have an inner product (zᵀz′)² of zero or
    more. So replacing a participant moves the mean by at most √2·B/n. The place of the constant
    changes no norm.

    If participants are held out, the norm of the bound is √2·B. Held-out participants add zeros,
    and each training participant also adds B to the entry of the site, which counts them. Two
    training participants differ by at most √2·B, as before, since their counts are equal. A
    training participant by itself adds at most √(B² + B²) = √2·B.
    """
    columns = _weighted(plan, data, query)
    if not plan.parameters.held_out:
        return mean_packed_square(columns, bound.norm)
    trains = ~held_out_persons(data.person_hashes, plan.parameters.held_out)
    norm = bound.norm / math.sqrt(2.0)
    moment = mean_packed_square(np.where(trains, columns, 0.0), norm)
    counts = np.zeros(len(plan.shape.units))
    counts[query.site] = norm * float(np.count_nonzero(trains)) / len(trains)
    return np.concatenate([moment, counts])


def regression_influence(plan: Regression, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean over participants of (A z)² (qᵀz)², entry by entry: P + S numbers.

    A z are the factors of a participant's residual qᵀz in each coefficient's error. `influence` (A)
    and `residual` (q) follow from the released moment, and a hostile centre may choose them. For
    any choice, a participant's numbers together are clipped to the bound K, and none is negative:
    those of two participants have an inner product of zero or more, and replacing one moves the
    mean by at most √2·K/n. Held-out participants add zeros.
    """
    columns = _weighted(plan, data, query)
    influence = query.arguments["influence"]
    residual = query.arguments["residual"]
    left = product_of_columns(residual[None], columns)
    with np.errstate(all="ignore"):
        squares = np.square(product_of_columns(influence, columns[:-1]) * left)
    clipped = clip_columns(squares, bound.norm)
    if plan.parameters.held_out:
        held = held_out_persons(data.person_hashes, plan.parameters.held_out)
        clipped = np.where(held, 0.0, clipped)
    return np.asarray(clipped.sum(axis=1) / columns.shape[1])


def regression_held_out(plan: Regression, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean over participants of a one at the label and bin of each held-out one.

    A participant's score is the product of `weights` and z, and its bin is the number of `edges`
    that the score reaches. A hostile centre may choose both. For any choice, a held-out participant
    adds a one to one of the 2 K entries, and a training participant adds nothing. So adding a
    participant moves the sum by at most 1. Replacing one moves it by at most √2: by two ones in
    different entries if both are held out, and by one if only one of them is.

    Edges that are not in order also have a place for each score. A binary search, which may begin
    where the participant before ended, would make the place depend on others.
    """
    columns = _weighted(plan, data, query)
    edges = query.arguments["edges"]
    scores = product_of_columns(query.arguments["weights"][None], columns[:-1])[0]
    places = np.zeros(len(scores), dtype=np.int64)
    for edge in edges:
        places += scores >= edge
    cells = np.where(columns[-1] > 0, len(edges) + 1, 0) + places
    held = held_out_persons(data.person_hashes, plan.parameters.held_out)
    counts = np.bincount(cells[held], minlength=2 * (len(edges) + 1))
    return np.asarray(bound.norm * counts / len(held))


def held_out_persons(hashes: NDArray[np.uint64], share: float) -> NDArray[np.bool_]:
    """Draw the held-out participants, each by a hash of its own keyed hash only.

    The cap of a site takes the participants with the smallest keyed hashes. Hashed once more, they
    are held out independently of it.

    Parameters
    ----------
    share : float
        Expected fraction that is held out.
    """
    limit = int(share * 2.0**64)
    drawn = (
        blake2b(int(each).to_bytes(8, "little"), digest_size=8, person=b"cape held out").digest()
        for each in hashes
    )
    return np.array([int.from_bytes(each, "little") < limit for each in drawn], dtype=np.bool_)


def _weighted(plan: Regression, data: SiteData, query: Query) -> Array:
    """Return participants' z = (x, c e, αy): P + S + 1 rows."""
    table = data.table()
    target = plan.target
    return np.vstack(
        [
            clip_columns(np.delete(table, target, axis=0), plan.parameters.bound),
            plan.intercept * site_constants(plan.constants, query.site, table.shape[1]),
            plan.weight * np.clip(table[target : target + 1].astype(np.float64), -1.0, 1.0),
        ]
    )
