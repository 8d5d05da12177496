"""How much of the leading directions a PCA is expected to show, from public numbers alone."""

from dataclasses import replace

import numpy as np

from consortium.algorithms.assumed import round_deviation
from consortium.algorithms.base import Expectation
from consortium.algorithms.pca.kernels.power_plan import expected_energies, expected_strengths
from consortium.algorithms.pca.plan import PcaPlan
from consortium.algorithms.subspace_forecast import expect as expect_directions
from consortium.algorithms.subspace_forecast import sentences as group_sentences
from consortium.algorithms.worth import would_be_enough
from consortium.base.formatting import count
from consortium.kernels.noise_law import SymmetricNoise

LITTLE = 0.5
"""Part of the energy below which more than half of what is shown is noise."""
_NAME = "part of the leading directions' energy"


def expect(plan: PcaPlan) -> tuple[Expectation, ...]:
    """Energy of the released directions over that of the leading ones, for a brain's spectrum.

    Of a second moment: each direction agrees with the truth as far as noise of the planned size
    lets an eigenvector of its strength. Solver subspace has the forecast of group ICA.
    """
    if plan.solver == "subspace":
        return expect_directions(plan.projectors)
    (planned,), shape, size = plan.releases, plan.shape, plan.parameters.components
    noise = Expectation("noise in a released number", round_deviation(planned, shape), rises=False)
    if plan.solver == "power":
        once = round_deviation(replace(planned, rounds=1), shape)
        energy = expected_energies(shape.features, size, once, plan.iterations)[-1]
        return Expectation(_NAME, energy), noise
    strengths = expected_strengths(shape.features, size)
    overlaps = np.nan_to_num(SymmetricNoise(shape.features, noise.value).overlaps(strengths))
    share = float(overlaps @ strengths / strengths.sum())
    return Expectation(_NAME, max(share, size / shape.features)), noise


def sentences(plan: PcaPlan) -> tuple[str, ...]:
    """What a PCA is expected to show, in words."""
    if plan.solver == "subspace":
        return group_sentences(plan.projectors)
    energy, shown = expect(plan)[0].value, []
    shown.append(
        f"If variances fall as in usual resting data (as 1 over their number), the "
        f"{count(plan.parameters.components, 'component')} hold about {energy:.2f} of the energy "
        "that the true ones hold."
    )
    if energy < LITTLE:
        enough = would_be_enough(
            plan.shape, lambda less: expect(type(plan)(plan.parameters, less))[0].value >= LITTLE
        )
        shown.append(
            f"Warning: most of what is shown would be noise; {enough}, as would fewer components "
            "or features."
        )
    if plan.solver == "power":
        shown.append(_of_products(plan.iterations))
    return tuple(shown)


def _of_products(rounds: int) -> str:
    if rounds == 1:
        return "With one product no single component can be found: nothing tells whether it stays."
    return f"The budget is shared by {rounds} products, each with columns that the last one led to."
