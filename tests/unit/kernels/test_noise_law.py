"""The law of a release's noise: that of the mechanism's own draws, and its closed forms."""

import numpy as np
import pytest
from scipy.linalg import eigh, eigvalsh

from consortium.kernels.moments import packed_size, unpack_symmetric
from consortium.kernels.noise_law import SymmetricNoise


def test_a_draw_has_the_law_of_unpacked_noise():
    generator = np.random.default_rng(0)
    law = SymmetricNoise(4, 0.3)
    ours = np.stack([law.draw(generator) for _ in range(20_000)])
    packed = 0.3 * generator.standard_normal((20_000, packed_size(4)))
    theirs = np.stack([unpack_symmetric(each) for each in packed])
    assert np.array_equal(ours, ours.transpose(0, 2, 1))
    one, other = (np.cov(each.reshape(len(each), -1).T) for each in (ours, theirs))
    assert one == pytest.approx(other, abs=4e-3)


def test_eigenvalues_of_noise_end_at_the_edge():
    law = SymmetricNoise(400, 0.05)
    found = eigvalsh(law.draw(np.random.default_rng(3)))
    assert found.max() == pytest.approx(law.edge, rel=0.05)
    assert found.min() == pytest.approx(-law.edge, rel=0.05)


@pytest.mark.parametrize("strength", [0.4, 0.6, 0.9])
def test_strength_and_overlap_of_a_direction_are_foretold(strength):
    generator, law = np.random.default_rng(4), SymmetricNoise(400, 0.02)
    values, overlaps = [], []
    for _ in range(5):
        truth = np.zeros((400, 400))
        truth[0, 0] = strength
        value, vector = eigh(truth + law.draw(generator), subset_by_index=(399, 399))
        values.append(value[0])
        overlaps.append(vector[0, 0] ** 2)
    assert law.freed(np.array(values)).mean() == pytest.approx(strength, abs=0.02)
    expected = law.overlaps(np.array([strength]))[0]
    assert np.mean(overlaps) == pytest.approx(expected, abs=0.04)


def test_what_noise_hides_has_no_overlap():
    law = SymmetricNoise(100, 0.1)
    assert law.overlaps(np.array([0.0, law.edge / 2.0])) == pytest.approx([0.0, 0.0])
    assert law.freed(np.array([0.0, law.edge])) == pytest.approx([law.edge / 2.0] * 2)
    assert SymmetricNoise(100, 0.0).overlaps(np.array([0.3])) == pytest.approx([1.0])
