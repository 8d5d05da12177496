"""Eight cells of the coarse grid fit into what hides every site's lower bits, in every plan."""

import numpy as np
import pytest

from consortium.privacy.bounds import Bound
from consortium.privacy.mechanism import Sharing, _least_hiding, plan_mechanism
from consortium.privacy.noise import GaussianSampler

BOUND = Bound(1.0)
TWO = [20 * 150, 60 * 150]  # volumes of two sites, unit timepoint


def _plan(boost, units, entries=10_000, target=0.5, colluding=0):
    return plan_mechanism(
        Sharing("cape", colluding=colluding, boost=boost),
        entries=entries,
        bound=BOUND,
        units=units,
        target=target,
    )


@pytest.mark.parametrize(
    ("boost", "units"),
    [
        ("exact", [644, 5757]),
        ("exact", [13, 107_043]),
        ("exact", [17, 557, 2_728_964_495]),
        (10_000.0, [15_151_935, 1_783_672]),
    ],
)
def test_the_final_noise_of_every_site_hides_eight_cells(boost, units):
    mechanism = _plan(boost, units, entries=10, target=0.1)
    assert mechanism.lattice.dropped
    assert _least_hiding(mechanism.noise) >= 8.0 * mechanism.lattice.grid


def test_what_a_replaced_volume_moves_is_what_was_promised():
    """A test of the likelihood ratio, by who knows everything but one volume of the second site."""
    mechanism = _plan("exact", TWO)
    lattice, weight, trials = mechanism.lattice, mechanism.weights[1], 200
    edge = (np.floor(0.003 * weight / lattice.grid) + 0.5) * lattice.grid  # between two cells
    sums = []
    for index, side in enumerate((-1, 1)):
        site = np.full(mechanism.entries, edge + side * lattice.step) / weight
        told = []
        for trial in range(trials):
            keys = [bytes([place, index]) + trial.to_bytes(30, "big") for place in (0, 1)]
            first = mechanism.protect(0, np.zeros(len(site)), GaussianSampler(keys[0])).masked
            second = mechanism.protect(1, site, GaussianSampler(keys[1])).masked
            told.append(mechanism.release(lattice.reduce(first + second), []).sum())
        sums.append(np.array(told))
    moved = sums[1].mean() - sums[0].mean()
    loss = moved / np.sqrt((sums[0].var() + sums[1].var()) / 2)
    assert loss <= mechanism.coalition()[1] + 4 * np.sqrt(2 / trials)
