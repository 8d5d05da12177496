"""How much of a noisy number is kept, for every pair of variances, both zero among them."""

from hypothesis import given
from hypothesis import strategies as st

from consortium.algorithms.glm.kernels.shrinkage import shrinkage_factor

VARIANCES = st.one_of(st.just(0.0), st.floats(1e-150, 1e150))


@given(VARIANCES, VARIANCES)
def test_a_factor_lies_between_nothing_and_all_and_noise_lowers_it(variance, noise):
    factor = float(shrinkage_factor(variance, noise))
    assert 0 <= factor <= 1
    assert float(shrinkage_factor(variance, 2 * noise)) <= factor
    assert float(shrinkage_factor(2 * variance, noise)) >= factor


@given(VARIANCES)
def test_a_number_without_noise_is_kept_and_one_without_variance_is_not(variance):
    assert float(shrinkage_factor(variance, 0.0)) == 1
    assert float(shrinkage_factor(0.0, variance)) == (variance == 0)
