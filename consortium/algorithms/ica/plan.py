"""The releases of an ICA: the PCA's, equal rounds, and maps if they are requested."""

import math
from dataclasses import replace
from functools import cached_property

from consortium.algorithms.base import MOST_ENTRIES, AnalysisPlan, Array, PlannedRelease, Shape
from consortium.algorithms.ica.kernels import infomax
from consortium.algorithms.ica.parameters import IcaParameters, Optimizer
from consortium.algorithms.pca.centre import Pca
from consortium.algorithms.pca.parameters import PcaParameters
from consortium.algorithms.pca.plan import DEFAULT_BOUND
from consortium.algorithms.subspace import ProjectorPlan
from consortium.errors import StudyError
from consortium.privacy.bounds import Bound, Unit

_ROUNDS: dict[Optimizer, dict[Unit, int]] = {
    "rotation": {"subject": 20, "timepoint": 30},
    "fixed-point": {"subject": 8, "timepoint": 8},
    "gradient": {"subject": 150, "timepoint": 150},
}


class IcaPlan(AnalysisPlan[IcaParameters]):
    """Public quantities of every site and the centre before the first round.

    Raises StudyError if score or optimizer are not for the study's unit.

    Attributes
    ----------
    rounds : int
        Rounds of the optimizer.
    score : str
        The study's, or the default of the unit.
    left : float
        Fraction of the budget (of μ²) without that of the maps.
    """

    def __init__(self, parameters: IcaParameters, shape: Shape) -> None:
        super().__init__(parameters, shape)
        if shape.unit == "timepoint" and parameters.score == "volatility":
            raise StudyError(
                "field 'analysis.score': volatility mixes a subject's volumes, which unit "
                "timepoint does not protect; choose tanh, or protect unit subject."
            )
        if shape.unit == "timepoint" and parameters.optimizer == "fixed-point":
            raise StudyError(
                "field 'analysis.optimizer': fixed-point is for unit subject; choose rotation."
            )
        self.rounds = parameters.rounds or _ROUNDS[parameters.optimizer][shape.unit]
        usual: infomax.Score = "volatility" if shape.unit == "subject" else "tanh"
        self.score = parameters.score or usual
        self.left = 1.0 - (parameters.maps_share if parameters.maps else 0.0)

    @cached_property
    def pca(self) -> Pca:
        """The PCA before it, which looks for smooth directions where it can.

        It sees the data with the noise that its part of the budget leaves it.
        """
        parameters = self.parameters
        shape = self.shape
        persons = shape.unit == "subject"
        smooth = persons and shape.places is not None
        given = PcaParameters(
            components=parameters.components,
            bound=parameters.pca_bound or (DEFAULT_BOUND["subject"] if persons else None),
            solver=parameters.pca_solver or ("subspace" if smooth else None),
            iterations=parameters.pca_iterations,
        )
        share = parameters.pca_share * self.left
        return Pca(given, replace(shape, noise=shape.noise / math.sqrt(share)))

    @cached_property
    def releases(self) -> tuple[PlannedRelease, ...]:
        """PCA's, ``rounds`` equal ones, and one of maps if they are asked for."""
        maps = (self._maps(),) if self.parameters.maps else ()
        share = self.left * self.parameters.pca_share
        whitening = (replace(each, share=share * each.share) for each in self.pca.releases)
        return (*whitening, self._steps(), *maps)

    @property
    def projectors(self) -> ProjectorPlan:
        """What solver subspace begins with."""
        return self.pca.projectors

    @property
    def computed(self) -> dict[str, Array | float]:
        """The PCA's."""
        return self.pca.computed

    def _steps(self) -> PlannedRelease:
        """Return equal rounds of the optimizer."""
        size = self.parameters.components
        forms = self._forms
        statistic = "rotation"
        entries = size * (size - 1) // 2
        if self.parameters.optimizer == "fixed-point":
            statistic = "fixed_point"
            entries = size * size
        elif self.parameters.optimizer == "gradient":
            statistic = "infomax"
            entries = size * (size + 1)
            forms["bias"] = (size,)
        bound = Bound(self.parameters.bound or self._usual_norm)
        share = self.left * (1.0 - self.parameters.pca_share)
        return PlannedRelease(
            stage="ica",
            statistic=statistic,
            entries=entries,
            bound=bound,
            rounds=self.rounds,
            share=share,
            arguments=forms,
        )

    def _maps(self) -> PlannedRelease:
        """Return one release of V x R numbers."""
        size = self.parameters.components
        rows = self.shape.map_rows
        if rows * size > MOST_ENTRIES:
            raise StudyError(
                f"field 'data.maps_resolution': {size} maps of {rows} voxels are more than "
                f"{MOST_ENTRIES:,} numbers; choose coarser maps or fewer components."
            )
        bound = Bound(self.parameters.maps_bound or self._usual_maps_norm)
        what = ("maps", "maps", rows * size, bound, 1, self.parameters.maps_share)
        return PlannedRelease(*what, self._forms)

    @property
    def _forms(self) -> dict[str, tuple[int, ...]]:
        size = self.parameters.components
        return {"unmixing": (size, size), "whitening": (self.shape.features, size)}

    @property
    def _usual_norm(self) -> float:
        """About 1.5 times the typical norm, only from public sizes."""
        size = self.parameters.components
        optimizer = self.parameters.optimizer
        timepoint = self.shape.unit == "timepoint"
        if optimizer == "gradient":
            # At rest E[ŷzᵀ] = −I, whose trace R no mean of terms of norm R or less can reach: with
            # a smaller bound a volume's clip makes W grow for ever.
            return 1.5 * size if timepoint else 0.5 * math.sqrt(size) + 1.0
        if timepoint:
            return 0.15 * size
        factor = {"tanh": 0.28, "volatility": 0.5}[self.score]
        rotation = max(factor * size / math.sqrt(self.shape.mean_length), 0.1)
        return rotation if optimizer == "rotation" else rotation + 0.3 * math.sqrt(size)

    @property
    def _usual_maps_norm(self) -> float:
        """About the largest usual norm, from public sizes, for volumes of mean squared norm 1.

        White time series explain a share of the variance, which is at most 1, and 0.3 in noisy
        voxels. By chance T volumes add 1/T for each of R time series.
        """
        size = self.parameters.components
        if self.shape.unit == "timepoint":
            return math.sqrt(size)
        return min(1.0, math.sqrt(0.3 + size / self.shape.mean_length))
