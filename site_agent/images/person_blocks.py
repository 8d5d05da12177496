"""Some persons' blocks, for whichever process of the site computes with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.over_persons import Part
from consortium.errors import DataError
from consortium.privacy.bounds import Unit
from consortium.space.atlas import Target
from consortium.study.data_section import DataSection
from site_agent.data.cache import BlockCache, block_key
from site_agent.data.survey import Subject
from site_agent.images.preprocess import preprocess_person

Block = NDArray[np.float32]


@dataclass(frozen=True)
class PersonBlocks:
    """What names the blocks of some persons: sent to a worker, it reads them there."""

    subjects: Sequence[Subject]
    lengths: Sequence[int]
    """Volumes of each."""
    data: DataSection
    """The study's."""
    target: Target
    """What volumes are sampled on."""
    cache: BlockCache
    """The site's; a worker reads and writes the same folder."""
    unit: Unit = "subject"
    """The study's unit of privacy."""

    def __getitem__(self, some: slice) -> PersonBlocks:
        """A few of them."""
        return replace(self, subjects=self.subjects[some], lengths=self.lengths[some])

    def blocks(self) -> Iterator[Block]:
        """Yield one after the other, prepared first if it is not in the cache.

        Raises DataError if an image or table can't be used; the message names the file.
        """
        for subject, length in zip(self.subjects, self.lengths, strict=True):
            prepared_as = subject, self.data, self.target, self.unit
            shape = self.target.features, length
            yield self.cache.get(
                block_key(*prepared_as), shape, partial(preprocess_person, *prepared_as)
            )


def cache_blocks(kinds: Sequence[PersonBlocks]) -> None:
    """Bring blocks into the cache."""
    for people in kinds:
        for _ in people.blocks():
            pass


def try_cache_blocks(kinds: Sequence[PersonBlocks]) -> str:
    """The same; what is amiss with a person's files, in a sentence, is returned."""
    try:
        cache_blocks(kinds)
    except DataError as error:
        return str(error)
    return ""


def sum_chunk(part: Part, chunk: tuple[PersonBlocks, Sequence[Any] | None]) -> NDArray[Any]:
    """Work out one chunk's part of a sum."""
    people, beside = chunk
    blocks = people.blocks()
    return part(blocks if beside is None else zip(blocks, beside, strict=True))


def reduced_by(basis: Block, people: PersonBlocks) -> Block:
    """``basis.T @ X`` of some persons, side by side: shape (R, sum of lengths)."""
    return np.hstack([basis.T @ block for block in people.blocks()])
