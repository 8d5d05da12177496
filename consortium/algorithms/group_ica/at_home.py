"""Group ICA at a hospital for three inputs: its own mean projector, the release, and both combined.

Each is a mean of projectors over a number of participants with noise of a known distribution. So
all become maps in the same way. Only a site calls this.
"""

from collections.abc import Mapping
from dataclasses import replace

from consortium.algorithms.base import Release, Result
from consortium.algorithms.group_ica.kernels.agreement import REACH_AT_HOME
from consortium.algorithms.group_ica.plan import GroupIcaPlan
from consortium.algorithms.group_ica.result import make_result
from consortium.base.array import Array
from consortium.kernels.home_posterior import Posterior
from consortium.kernels.moments import pack_symmetric


def results_at_home(
    posterior: Posterior, release: Release, plan: GroupIcaPlan
) -> Mapping[str, Result]:
    """Return results by name: 'own', 'release' and 'posterior'.

    Parameters
    ----------
    release : Release
        The study's release.
    plan : GroupIcaPlan
        Plan of the study's sites that answered.
    """
    fixed = plan.parameters.model_copy(update={"cutoff": plan.cutoff or None})

    def result(matrix: Array, deviation: float, persons: float) -> Result:
        count = max(round(persons), 1)
        smaller = replace(plan.shape, subjects=(count,), samples=(count,), sites=())
        exact = Release(pack_symmetric(matrix), deviation)
        return make_result(exact, type(plan)(fixed, smaller), REACH_AT_HOME)

    taken = posterior.taken
    return {
        "own": result(posterior.own, posterior.own_deviation, taken.persons),
        "release": make_result(release, plan),
        "posterior": result(posterior.matrix, posterior.deviation, posterior.persons),
    }
