"""Group ICA at a hospital for three inputs: its own mean projector, the release, and both combined.

Each is a mean of projectors over a number of participants with noise of a known distribution. So
all become maps in the same way. If the study has an open cohort, the combination also contains that
cohort, and the hospital's own data and the release together confirm its maps. Only a site calls
this.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import Release, Result
from consortium.algorithms.group_ica.kernels.agreement import REACH_AT_HOME
from consortium.algorithms.group_ica.kernels.open_posterior import (
    Combined,
    OpenMean,
    OwnMean,
    add_own,
    combine,
)
from consortium.algorithms.group_ica.result import group_release, make_result
from consortium.algorithms.group_ica.with_open import confirmed_result, published_result
from consortium.base.array import Array
from consortium.kernels.home_posterior import BETWEEN, Posterior
from consortium.kernels.moments import pack_symmetric, unpack_symmetric

if TYPE_CHECKING:
    from consortium.algorithms.group_ica.centre import GroupIca

WEIGHTS = "own_weight", "others_weight", "open_weight"
"""Numbers of the combined result if the study has an open cohort; their sum is 1."""


def results_at_home(
    posterior: Posterior, release: Release, plan: GroupIca, *, own_patients: bool = False
) -> Mapping[str, Result]:
    """Return results by name: 'own', 'release' and 'posterior'.

    Parameters
    ----------
    release : Release
        The study's release.
    plan : GroupIca
        Plan of the study's sites that answered.
    own_patients : bool
        Whether maps are to be those of this hospital's patients, and not those of all hospitals'.
    """
    alone = plan.by_itself
    taken = posterior.taken
    own = _at_home(posterior.own, posterior.own_deviation, taken.persons, alone)
    both = _at_home(posterior.matrix, posterior.deviation, posterior.persons, alone)
    return {
        "own": make_result(*own, REACH_AT_HOME),
        "release": published_result(release, plan),
        "posterior": _with_cohort(posterior, release, both, plan, own_patients=own_patients),
    }


def _at_home(
    matrix: Array, deviation: float, persons: float, alone: GroupIca
) -> tuple[Release, GroupIca]:
    """Return a matrix as if it were the release of a study with so many participants."""
    count = max(round(persons), 1)
    smaller = replace(alone.shape, subjects=(count,), samples=(count,), sites=())
    return Release(pack_symmetric(matrix), deviation), type(alone)(alone.parameters, smaller)


def _with_cohort(
    posterior: Posterior,
    release: Release,
    both: tuple[Release, GroupIca],
    plan: GroupIca,
    *,
    own_patients: bool,
) -> Result:
    """Return the result of own data and release, with the open cohort if there is one.

    Its numbers state the weights of all sources.
    """
    cohort = plan.open_mean
    if cohort is None:
        return make_result(*both, REACH_AT_HOME)
    generator = np.random.default_rng(plan.parameters.seed)
    everything = combine_three(
        posterior, unpack_symmetric(release.values), cohort, generator, own_patients=own_patients
    )
    made = confirmed_result(group_release(*both), everything, cohort, generator)
    if made is None:
        made = make_result(*both, REACH_AT_HOME)
        shares = (posterior.share, 1.0 - posterior.share, 0.0)
    else:
        own = everything.own_weight
        others = everything.release_weight
        shares = (own, others, 1.0 - own - others)
    weights = dict(zip(WEIGHTS, shares, strict=True))
    return replace(made, numbers={**made.numbers, **weights})


def combine_three(
    posterior: Posterior,
    release: Array,
    cohort: OpenMean,
    generator: np.random.Generator,
    *,
    own_patients: bool = False,
) -> Combined:
    """Combine the hospital's own mean, that of all others, and an open cohort's.

    Hospitals differ, so the mean of few other hospitals is less precise than their participants
    alone would make it. That counts as fewer participants.

    Parameters
    ----------
    release : array, shape (d, d)
        R.
    """
    taken = posterior.taken
    spreads = posterior.spreads.reported
    others = taken.others(release, posterior.own)
    ratio = spreads.between / spreads.within if spreads.within > 0 else BETWEEN
    many = taken.everybody - taken.persons
    alike = max(round(1.0 / (1.0 / many + ratio / (taken.sites - 1))), 1)
    both = combine(cohort, others, math.sqrt(2.0 * taken.noise), alike, generator)
    own = OwnMean(posterior.own, taken.persons, alike)
    return add_own(both, cohort, own, own_patients=own_patients)
