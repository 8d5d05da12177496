"""Coverage: the share of the participants who have each entry, as a part of a release.

A participant's block is q, 1 where an entry is missing and 0 elsewhere. With at most the fraction g
of D entries missing ‖q‖ ≤ √(g D), and q is clipped to that norm in any case. Entries of q are not
negative. So two participants' blocks have an inner product of 0 or more and a distance of at most
√2 √(g D), which two participants who lack g D entries each, and none in common, reach.
Together with the other blocks see `consortium.privacy.block_bounds`.
"""

import math
from collections.abc import Sequence

import numpy as np

from consortium.algorithms.base import Array, Shape
from consortium.algorithms.findings import ImageSet
from consortium.base.formatting import count
from consortium.kernels.noisy_shares import EstimatedShares, estimate_shares
from consortium.privacy.block_bounds import Block
from consortium.privacy.clipping import clip_columns
from consortium.views import AnyView

ABSENT = "gaps"
"""Name of the block."""
SHARE = 0.02
"""Fraction of the budget (of μ²): standard errors of complete data grow by 1 %."""
CAPTION = (
    "Share of the participants who have each value, estimated from noisy counts. Values of which "
    "it is below a half are withheld, and are 0 in the other maps."
)


def absent_block(entries: int, gaps: float, share: float = SHARE) -> Block:
    """Return the block that counts the participants who lack each entry.

    Parameters
    ----------
    entries : int
        D.
    gaps : float
        g, fraction of the entries that a participant may lack.
    share : float
        Fraction of the release's budget.
    """
    norm = math.sqrt(gaps * entries)
    return Block(ABSENT, entries, norm, math.sqrt(2.0) * norm, share)


def clip_absent(absent: Array, norm: float) -> Array:
    """Return q of each participant (bool, D x N) as numbers, clipped to a norm."""
    return clip_columns(absent.astype(np.float64), norm)


def estimate_coverage(
    absent: Array, noise: float, views: Sequence[AnyView], shape: Shape, names: Sequence[str] = ()
) -> EstimatedShares:
    """Estimate the shares of the participants who have each entry, from those who lack it.

    Parameters
    ----------
    absent : array, length D
        Released shares of the participants who lack each entry.
    noise : float
        Standard deviation of the noise in them.
    views, names
        As in `_places_by_part`.
    """
    return estimate_shares(1 - absent, noise, _places_by_part(views, shape, names))


def _places_by_part(
    views: Sequence[AnyView], shape: Shape, names: Sequence[str] = ()
) -> tuple[tuple[slice, Array | None], ...]:
    """Return the entries of each view with their places in mm, or None where these are unknown.

    Parameters
    ----------
    views : sequence of view
        The study's.
    names : sequence of str
        Names of views whose entries follow one another (default: all views in their order). A study
        without views is one part.
    """
    if not shape.views:
        places = shape.region_places if shape.places is None else shape.places.coordinates
        return ((slice(0, shape.features), places),)
    named = {view.name: view for view in views}
    sizes = dict(shape.views)
    start = 0
    found = list[tuple[slice, Array | None]]()
    for name in names or sizes:
        size = sizes[name]
        found.append((slice(start, start + size), _places_of(named.get(name), name, size, shape)))
        start += size
    return tuple(found)


def _places_of(view: AnyView | None, name: str, size: int, shape: Shape) -> Array | None:
    if name in shape.surface_places:
        return shape.surface_places[name].coordinates
    if view is None or not view.is_image or view.maps_file is not None:
        return None
    places = shape.image_places
    return None if places is None or len(places.coordinates) != size else places.coordinates


def share_map(values: Array, view: str = "") -> ImageSet:
    """Return the map of the share of participants who have each value, of a view or of series."""
    entities = {"stat": "coverage"}
    return ImageSet(values[:, None], CAPTION, ("coverage",), entities, view=view, drawn=False)


def withheld_sentence(withheld: Array) -> str:
    """Return the sentence about entries that too few participants have, or an empty string."""
    many = int(withheld.sum())
    if not many:
        return ""
    verb = "is" if many == 1 else "are"
    return (
        f"{count(many, 'value')} of {len(withheld):,} {verb} withheld, because fewer than half of "
        "the participants have data there."
    )
