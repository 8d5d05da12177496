"""One signature over many ciphertexts, each of which can be verified without the others.

A Merkle tree: leaves and inner nodes are hashed under different labels, and a node without a
sibling moves up unchanged. A proof consists of the siblings from leaf to root. The verifier has the
number of leaves, so each place has one path.
"""

import hashlib
from collections.abc import Sequence

from consortium.secagg.crypto import digest

_LEAF = "consortium share leaf 1"
_NODE = "consortium share node 1"


def tree_root(leaves: Sequence[bytes]) -> bytes:
    """Return the root of a tree over one or more byte strings."""
    level = [_leaf(place, leaf) for place, leaf in enumerate(leaves)]
    while len(level) > 1:
        level = _above(level)
    return level[0]


def tree_paths(leaves: Sequence[bytes]) -> tuple[tuple[bytes, ...], ...]:
    """Return the siblings of each leaf, from the lowest on."""
    level = [_leaf(place, leaf) for place, leaf in enumerate(leaves)]
    paths: list[list[bytes]] = [[] for _ in leaves]
    height = 0
    while len(level) > 1:
        for place, path in enumerate(paths):
            sibling = place >> height ^ 1
            if sibling < len(level):
                path.append(level[sibling])
        level = _above(level)
        height = height + 1
    return tuple(map(tuple, paths))


def is_under(root: bytes, leaf: bytes, place: int, count: int, path: Sequence[bytes]) -> bool:
    """Return whether a leaf is at a place of a tree of ``count`` leaves."""
    node = _leaf(place, leaf)
    siblings = list(path)
    while count > 1:
        if place ^ 1 < count:
            if not siblings:
                return False
            sibling = siblings.pop(0)
            pair = (sibling, node) if place & 1 else (node, sibling)
            node = digest(_NODE, *pair)
        place = place >> 1
        count = (count + 1) >> 1
    return not siblings and node == root


def _leaf(place: int, data: bytes) -> bytes:
    return digest(_LEAF, place, hashlib.sha256(data).digest())


def _above(level: Sequence[bytes]) -> list[bytes]:
    pairs = (level[start : start + 2] for start in range(0, len(level), 2))
    return [digest(_NODE, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
