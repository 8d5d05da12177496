"""A tree over ciphertexts: every leaf has its way to the root, and no other leaf, place or way."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.secagg.crypto import pack_tuple
from consortium.secagg.merkle_tree import is_under, paths_of, root_of

LEAVES = st.lists(st.binary(max_size=40), min_size=1, max_size=40)


def sha(*parts):
    return hashlib.sha256(pack_tuple(*parts)).digest()


def test_the_root_of_three_leaves_is_the_one_worked_out_by_hand():
    leaves = [b"a", b"", b"c"]
    one, two, three = (
        sha("consortium share leaf 1", place, hashlib.sha256(leaf).digest())
        for place, leaf in enumerate(leaves)
    )
    node = "consortium share node 1"
    assert root_of(leaves) == sha(node, sha(node, one, two), three)


@given(LEAVES)
def test_every_leaf_is_under_the_root(leaves):
    root, count = root_of(leaves), len(leaves)
    for place, (leaf, path) in enumerate(zip(leaves, paths_of(leaves), strict=True)):
        assert is_under(root, leaf, place, count, path)
        assert len(path) <= count.bit_length()


@given(LEAVES, st.data())
def test_nothing_else_is(leaves, data):
    root, count, paths = root_of(leaves), len(leaves), paths_of(leaves)
    place = data.draw(st.integers(0, count - 1))
    leaf, path = leaves[place], paths[place]
    assert not is_under(root, leaf + b"x", place, count, path)
    assert not is_under(root, leaf, place, count, (*path, bytes(32)))
    if count > 1:
        assert not is_under(root, leaf, (place + 1) % count, count, path)
        assert not is_under(root, leaf, place, count, path[:-1])
        changed = data.draw(st.integers(0, len(path) - 1))
        assert not is_under(
            root, leaf, place, count, (*path[:changed], bytes(32), *path[changed + 1 :])
        )


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 1024])
def test_leaves_that_are_alike_have_roots_that_differ_by_their_number(count):
    assert root_of([b""] * count) != root_of([b""] * (count + 1))
