"""Sums over a site's participants in fixed chunks: equal to the last bit on any workers.

Floating-point sums depend on their order, and the noise of a message is bound to its bytes. So
participants are added within chunks of `CHUNK`, in their order, and then the chunks, in theirs. The
result does not depend on the number of workers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol, runtime_checkable

import numpy as np

from consortium.algorithms.base import Array, Resolution, SiteData
from consortium.errors import SoftwareError

CHUNK = 16
"""Participants in one chunk. Another number changes the last bits of every sum."""

Part = Callable[[Iterable[Any]], Array]
"""Sums over some participants' blocks, each clipped by itself; a module's function, or a partial.

It may be sent to another process, so it must be possible to pickle it. It returns float64.
"""


@runtime_checkable
class SumsInParts(Protocol):
    """Data whose owner has an engine that works on several chunks at a time."""

    def partial_sums(
        self,
        part: Part,
        shape: tuple[int, ...],
        resolution: Resolution,
        companions: Sequence[Any] | None,
    ) -> Iterator[Array]:
        """Yield the part of each chunk, in their order; see `sum_over_persons`."""


def sum_over_persons(
    data: SiteData,
    part: Part,
    shape: tuple[int, ...],
    resolution: Resolution = "features",
    companions: Sequence[Any] | None = None,
) -> Array:
    """Sum over all participants of the site, in chunks.

    Raises SoftwareError if a worker returned another value than such a sum.

    Parameters
    ----------
    data : SiteData
        If it is `SumsInParts`, it computes the parts; otherwise they are computed here.
    part : callable
        Returns the clipped sum of a chunk's blocks, or of pairs of a block and its companion.
    shape : tuple of int
        Shape of every part.
    resolution : {'features', 'maps'}
        Resolution of the blocks.
    companions : sequence, optional
        One companion for each participant. It is sliced by chunks.

    Returns
    -------
    array, float64
    """
    found = data if isinstance(data, SumsInParts) else _Here(data)
    total: Array | None = None
    for one in found.partial_sums(part, shape, resolution, companions):
        checked = _checked(one, shape)
        if total is None:
            total = np.array(checked, order="K")
        else:
            total += checked
    return np.zeros(shape) if total is None else total


def chunks(count: int) -> Iterator[slice]:
    """Yield the places of the participants of each chunk that a site sums over."""
    for start in range(0, count, CHUNK):
        yield slice(start, min(start + CHUNK, count))


class _Here:
    """Parts of data that are computed where they are, one after the other."""

    def __init__(self, data: SiteData) -> None:
        self._data = data

    def partial_sums(
        self,
        part: Part,
        shape: tuple[int, ...],
        resolution: Resolution,
        companions: Sequence[Any] | None,
    ) -> Iterator[Array]:
        del shape
        blocks = self._data.blocks(resolution)
        persons = blocks if companions is None else zip(blocks, companions, strict=True)
        for chunk in chunks(len(self._data.lengths)):
            yield part(islice(persons, chunk.stop - chunk.start))


def _checked(part: object, shape: tuple[int, ...]) -> Array:
    sound = isinstance(part, np.ndarray) and part.dtype == np.float64 and part.shape == shape
    if not (isinstance(part, np.ndarray) and sound and np.isfinite(part).all()):
        raise SoftwareError(
            f"A part of a sum over participants must be {shape} finite numbers, and is not, so "
            "nothing is answered. Check the workers of the site's engine. If it has none, report "
            "this fault."
        )
    return part
