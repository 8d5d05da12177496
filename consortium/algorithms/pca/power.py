"""capePCA's second solver: block power iteration, for as many features as a whole brain has.

Source: dissertation Algorithm 4.1 with its second moment A never formed. A round releases A Q,
D x K numbers, for the orthonormal Q that the round before led to. A unit's X Xᵀ Q / T is clipped
to a Frobenius norm, so that the sensitivity holds whatever Q is asked for; two units' products
may point anywhere, so that it is 2·B, not √2·B.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consortium.algorithms.base import (
    Array,
    Captions,
    PlannedRelease,
    Query,
    Result,
    Run,
    Shape,
    SiteData,
)
from consortium.algorithms.query_arguments import feature_argument
from consortium.errors import StudyError
from consortium.kernels.power import (
    add_subject_product,
    add_volume_products,
    eigenpairs,
    noise_edge,
    orthonormal,
    start_basis,
)
from consortium.kernels.power_plan import expected_energies
from consortium.privacy.bounds import Bound, Unit

ITERATIONS = 5
"""Products where nothing is known of the noise: without it, enough for 99 % of the energy of 20
components even where the spectrum has no gap and falls by a twentieth from each to the next."""
MOST_ITERATIONS = 8
NEAR = 0.005
"""More products are not asked for if they are expected to add less than this part of the energy."""
DEFAULT_BOUND: dict[Unit, float] = {"subject": 0.3, "timepoint": 1.0}
_MOST_ENTRIES = 50_000_000  # 400 MB a vector


def power_product(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over units of the clipped X Xᵀ Q / T (x xᵀ Q of a volume), D x K entries."""
    basis = feature_argument(query, "basis", data.features)
    total = np.zeros(basis.shape)
    narrow: Array = basis
    for block in data.blocks():
        if data.unit == "timepoint":
            add_volume_products(total, block, basis, bound.norm)
            continue
        if narrow.dtype != block.dtype:
            with np.errstate(over="ignore"):
                narrow = basis.astype(block.dtype)
        add_subject_product(total, block, narrow, bound.norm)
    units = len(data.lengths) if data.unit == "subject" else sum(data.lengths)
    return total / units


def choose_iterations(shape: Shape, components: int, bound: float) -> int:
    """Number of products, planned against the budget.

    More products turn the basis further towards the leading directions, and each is noisier, as
    they share one budget. What comes of it is foretold for a spectrum like a brain's (see
    `kernels.power_plan`); the fewest products are taken that come near the best.

    Parameters
    ----------
    shape : Shape
    components : int
    bound : float
        Of a product's norm.
    """
    deviation = shape.noise * Bound(bound).spread / sum(shape.units)
    energies = expected_energies(shape.features, components, deviation, MOST_ITERATIONS)
    quiet = expected_energies(shape.features, components, 0.0, MOST_ITERATIONS)
    # Never more than without noise: keys for so many rounds are made before sizes are known.
    return min(_fewest(energies), _fewest(quiet))


def _fewest(energies: tuple[float, ...]) -> int:
    return 1 + next(i for i, each in enumerate(energies) if each >= (1.0 - NEAR) * max(energies))


def plan_power(features: int, components: int, bound: float, iterations: int) -> PlannedRelease:
    """Equal releases with the whole budget, one for each iteration.

    Raises
    ------
    StudyError
        If a message would be too large.
    """
    entries = features * components
    if entries > _MOST_ENTRIES:
        raise StudyError(
            f"field 'analysis.components': {components} components of {features} features are "
            f"more than {_MOST_ENTRIES:,} numbers a round; ask for fewer or a coarser resolution."
        )
    forms = {"basis": (features, components)}
    return PlannedRelease("pca", "power", entries, Bound(bound), iterations, 1.0, forms)


def run_power(features: int, components: int, iterations: int, seed: int) -> Run:
    """Iterate from a public random basis; the last product gives the eigenpairs.

    Returns
    -------
    Result
        As `pca.subspace`; ``total`` is not known.
    """
    basis = start_basis(features, components, seed)
    for left in reversed(range(iterations)):
        release = yield Query("pca", "power", {"basis": basis})
        product = release.values.reshape(features, components)
        if left:
            basis = orthonormal(product)
    vectors, values = eigenpairs(product, release.deviation)
    numbers: dict[str, Any] = {
        "noise_edge": noise_edge(features, components, release.deviation),
        "captured": float(values.sum()),
    }
    arrays = {"basis": vectors, "eigenvalues": values}
    return Result(arrays, numbers, maps="basis", captions=Captions(sign=True))
