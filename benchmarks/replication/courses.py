"""The chapter's simulation without its zeros, for many runs of ICA."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from consortium.algorithms.base import AnalysisPlan, Array, Query
from consortium.kernels.moments import pack_symmetric, unpack_symmetric
from consortium.privacy.bounds import Bound, Unit
from consortium.simulation.array_data import ArrayData
from tests.support.chapter import Chapter


class Courses:
    """The simulation in a basis of its own: 20 numbers describe a volume, since it has no noise.

    The basis is orthonormal, so clipping uses the norms of all 900 pixels.
    """

    def __init__(self, data: Chapter) -> None:
        self.basis, small = np.linalg.qr(data.mixing.astype(np.float64))
        self.mixing = small
        self.table = (small.astype(np.float32) @ data.all_sources()).astype(np.float32)
        self.volumes = data.volumes

    def site(self, unit: Unit, subjects: int) -> ArrayData:
        """Return the first subjects, with only the numbers that are not zero by construction."""
        ends = range(0, subjects * self.volumes, self.volumes)
        return ArrayData([self.table[:, end : end + self.volumes] for end in ends], unit=unit)


@dataclass(frozen=True)
class Lifted:
    """Statistics of all pixels, out of those of `Courses`."""

    plan: AnalysisPlan[Any]
    courses: Courses
    data: ArrayData

    def mean(self, query: Query, bound: Bound) -> Array:
        """Return the clipped mean over all units, for the centre's query on 900 pixels."""
        basis, arguments = self.courses.basis, dict(query.arguments)
        if "whitening" in arguments:
            arguments["whitening"] = basis.T @ np.asarray(arguments["whitening"])
        small = Query(query.stage, query.statistic, arguments)
        mean = self.plan.statistics[query.statistic](self.plan, self.data, small, bound)
        if query.statistic != "second_moment":
            return mean
        return pack_symmetric(np.asfortranarray(basis @ unpack_symmetric(mean) @ basis.T))
