"""Pairs of participants on a ring of hashes, and how far one participant moves their sum."""

import numpy as np
import pytest

from consortium.algorithms.glm import ring
from consortium.simulation.array_data import ArrayData


def total(values, hashes, function):
    """Half the sum over the ring."""
    one, other = ring.ring_of(hashes)
    return sum(function(values[a], values[b]) for a, b in zip(one, other, strict=True)) / 2


def test_everybody_is_in_two_pairs_and_a_single_participant_in_none():
    hashes = np.array([50, 10, 40, 20], dtype=np.uint64)
    one, other = ring.ring_of(hashes)
    assert list(zip(one.tolist(), other.tolist(), strict=True)) == [(1, 3), (3, 2), (2, 0), (0, 1)]
    assert [len(each) for each in ring.ring_of(hashes[:1])] == [0, 0]
    assert len(ring.ring_of(hashes[:0])[0]) == 0


def test_sites_in_memory_keep_the_hashes_that_they_are_given():
    people, own = list(np.zeros((3, 2, 1))), np.array([5, 3, 9], dtype=np.uint64)
    assert ArrayData(people, person_hashes=own).person_hashes is own
    whole, fewer = ArrayData(people).person_hashes, ArrayData(people[:2]).person_hashes
    assert np.array_equal(whole[:2], fewer)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 9])
def test_no_sum_of_cut_logarithms_or_signed_vectors_moves_further_than_its_block(count):
    generator = np.random.default_rng(count)
    most, norm, entries = 1.0, 2.0, 2
    block, log = ring.squares_block("a", entries, norm, 1.0), ring.log_block("b", most, 1.0)
    above, below = ring.clips_in(block)
    assert (above, below) == pytest.approx((norm, ring.NEGATIVE * norm))
    assert ring.most_log_in(log) == pytest.approx(most)

    def logarithm(one, other):
        return np.clip(np.log(max(np.sum((one - other) ** 2), 1e-300)), -most, most)

    farthest = dict.fromkeys(("added", "replaced", "log added", "log replaced"), 0.0)
    for _ in range(400):
        corners = generator.choice([0.0, 1.0, 2.0], (2, count + 1, count + 1, entries))
        corners = np.maximum(corners, corners.transpose(0, 2, 1, 3))
        sizes = np.maximum(np.linalg.norm(corners, axis=-1, keepdims=True), 1e-9)
        signed = corners / sizes * np.array([above, below])[:, None, None, None]

        def vector(one, other, signed=signed):
            return signed[0, one, other] - signed[1, one, other]

        hashes = generator.permutation(50)[: count + 1].astype(np.uint64)
        # All but the last one, all but the first one, and those in both.
        people = np.arange(count + 1)
        places = generator.choice([0.0, 0.3, 0.6, 5.0], (count + 1, 1))
        sums = [total(people[s], hashes[s], vector) for s in (slice(count), slice(1, None))]
        fewer = total(people[1:count], hashes[1:count], vector)
        logs = [total(places[s], hashes[s], logarithm) for s in (slice(count), slice(1, None))]
        found = {
            "added": np.linalg.norm(sums[0] - fewer) / block.norm,
            "replaced": np.linalg.norm(sums[0] - sums[1]) / block.spread,
            "log added": abs(logs[0] - total(places[1:count], hashes[1:count], logarithm))
            / log.norm,
            "log replaced": abs(logs[0] - logs[1]) / log.spread,
        }
        farthest = {name: max(far, found[name]) for name, far in farthest.items()}
    assert max(farthest.values()) <= 1 + 1e-12
    if count > 4:
        assert min(farthest.values()) > 0.55
