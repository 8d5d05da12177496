"""capeDJICA: joint ICA of all sites' data, round by round.

Source: dissertation Algorithm 6.1, corrected and extended. The data are whitened
with capePCA's released eigenpairs, which costs nothing more. Three optimizers:

``rotation`` (default)
    W stays a rotation, as the unmixing of whitened data is. Only the antisymmetric
    part of E[ψ(z)zᵀ], R(R−1)/2 numbers, is released a round.
``fixed-point``
    FastICA's step with a polar projection; R² numbers a round, few rounds.
``gradient``
    The paper's update (eq. 6.3 and 6.6). The identity and the factor W carry no
    data and are applied after the release.
"""

import math
from collections.abc import Generator
from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy.linalg import expm, polar

from consortium.algorithms.base import (
    MOST_ENTRIES,
    AnalysisPlan,
    Array,
    Captions,
    Case,
    PlannedRelease,
    Query,
    Release,
    Result,
    Run,
    Shape,
    Table,
)
from consortium.algorithms.findings import Finding
from consortium.algorithms.ica.kernels import infomax
from consortium.algorithms.ica.parameters import IcaParameters, Optimizer
from consortium.algorithms.ica.site import fixed_point, gradient, map_products, rotation
from consortium.algorithms.pca.centre import DEFAULT_BOUND, Pca
from consortium.algorithms.pca.parameters import PcaParameters
from consortium.algorithms.subspace import ProjectorPlan
from consortium.errors import StudyError
from consortium.kernels.spatial_ica import nearly_constant
from consortium.privacy.bounds import Bound, Unit

_ROUNDS: dict[Optimizer, dict[Unit, int]] = {
    "rotation": {"subject": 20, "timepoint": 30},
    "fixed-point": {"subject": 8, "timepoint": 8},
    "gradient": {"subject": 150, "timepoint": 150},
}

Steps = Generator[Query, Release, tuple[Array, float]]
"""Rounds of an optimizer; returns the unmixing and the size of the last change."""


class Ica(AnalysisPlan[IcaParameters]):
    """Plan of `ica`: a PCA, then one release a round, then maps if they are asked for.

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

    name = "ica"
    title = "capeDJICA"
    takes = "series"
    needs_means = False
    Parameters = IcaParameters
    statistics = {
        **Pca.statistics,
        "rotation": rotation,
        "fixed_point": fixed_point,
        "infomax": gradient,
        "maps": map_products,
    }
    cases = (
        Case({"components": 3, "rounds": 3}),
        Case({"components": 3, "rounds": 2, "pca_solver": "power"}),
        Case({"components": 2, "rounds": 2, "pca_solver": "power"}, "timepoint"),
        Case({"components": 3, "rounds": 2, "pca_solver": "subspace"}),
        Case({"components": 2, "rounds": 2}, mesh=True),
        Case({"components": 3, "rounds": 2, "maps": True}),
        Case({"components": 2, "rounds": 2, "maps": True, "maps_bound": 0.5}, "timepoint"),
        Case({"components": 2, "rounds": 3, "score": "tanh"}),
        Case({"components": 3, "rounds": 2, "optimizer": "fixed-point"}),
        Case({"components": 2, "rounds": 2, "optimizer": "fixed-point", "score": "tanh"}),
        Case({"components": 3, "rounds": 2, "optimizer": "gradient"}),
        Case({"components": 3, "rounds": 3, "pca_share": 0.2}, "timepoint"),
        Case({"components": 3, "rounds": 2, "optimizer": "gradient"}, "timepoint"),
    )

    def __init__(self, parameters: IcaParameters, shape: Shape) -> None:
        super().__init__(parameters, shape)
        if shape.unit == "timepoint" and parameters.score == "volatility":
            raise StudyError(
                "field 'analysis.score': volatility requires unit subject, because it mixes a "
                "participant's volumes, got timepoint. Choose tanh, or set unit: subject."
            )
        if shape.unit == "timepoint" and parameters.optimizer == "fixed-point":
            raise StudyError(
                "field 'analysis.optimizer': fixed-point requires unit subject, got timepoint. "
                "Choose rotation, or set unit: subject."
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
                f"field 'data.maps_resolution': the maps must have at most {MOST_ENTRIES:,} "
                f"numbers, got {size} maps of {rows} voxels. Choose coarser maps, or fewer "
                "components."
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

    def withheld(self) -> str:
        """Return why there is no forecast."""
        return (
            "The iterative analysis 'ica' has no forecast: the error of its rotation "
            "depends on the non-Gaussianity of the networks' time series, which is not publicly "
            "known."
        )

    def run(self) -> Run:
        """Whiten, improve the unmixing for the planned rounds, and return the mixing maps."""
        subspace = yield from self.pca.run()
        basis = subspace.arrays["basis"]
        eigenvalues = subspace.arrays["eigenvalues"]
        floor = max(float(eigenvalues[0]) * 1e-6, np.finfo(np.float64).tiny)
        scales = np.sqrt(np.maximum(eigenvalues, floor))
        improve = {"rotation": _rotate, "fixed-point": _project, "gradient": _climb}
        whitening = basis / scales
        unmixing, last = yield from improve[self.parameters.optimizer](self, whitening)
        result = self._result(subspace, scales, whitening, unmixing, last)
        if not self.parameters.maps:
            return result
        release = yield Query("maps", "maps", {"unmixing": unmixing, "whitening": whitening})
        fine = release.values.reshape(self.shape.map_rows, -1)
        return replace(
            result,
            arrays={**result.arrays, "maps": fine},
            numbers={**result.numbers, "map_noise": release.deviation},
            maps="maps",
            fine=True,
            noise=release.deviation,
        )

    def _result(
        self, subspace: Result, scales: Array, whitening: Array, unmixing: Array, last: float
    ) -> Result:
        basis = subspace.arrays["basis"]
        mixing = (basis * scales) @ np.linalg.pinv(unmixing)
        found = _is_within(subspace, scales[:, None] * np.linalg.pinv(unmixing))
        if self.shape.places is not None:
            found = tuple(map(bool, np.array(found) & ~nearly_constant(mixing)))
        return Result(
            {"mixing": mixing, "unmixing": unmixing @ whitening.T, **subspace.arrays},
            {
                **subspace.numbers,
                "found": sum(found),
                "rounds": self.rounds,
                "last_change": last,
            },
            maps="mixing",
            shares=(Finding(),) * len(found),
            tables={"components": components_table(found)},
            captions=Captions(
                headline=_headline(sum(found), len(found)),
                sign=True,
                found=any(found),
                columns_found=found,
            ),
        )


def _is_within(subspace: Result, weights: Array) -> tuple[bool, ...]:
    """Return whether at least half of each component's variance is in directions of the PCA.

    Parameters
    ----------
    subspace : Result
        Result of the PCA.
    weights : array, R x R
        Each component (column) in the eigenvectors.
    """
    squares = np.square(weights)
    inside = squares[np.array(subspace.captions.columns_found)].sum(axis=0)
    return tuple(bool(each) for each in inside >= squares.sum(axis=0) / 2.0)


def components_table(found: tuple[bool, ...]) -> Table:
    """Tabulate which components of `ica` were found."""
    rows = [(k, "found" if each else "not found") for k, each in enumerate(found, 1)]
    return Table(
        "A component is found if at least half of it is in directions that exceed noise, chance "
        "and white data, unless it is nearly equal in all voxels, like a global signal. Its "
        "distance from a true network is not known.",
        ("component", "state"),
        tuple(rows),
    )


def _headline(found: int, many: int) -> str:
    """State how many of the components were found."""
    if not found:
        return "Nothing was found: no component stands out of noise, chance and white data."
    return (
        f"{found} of {many} components stand out of noise, chance and white data; how far each is "
        "from a true network is not known."
    )


def _rotate(plan: Ica, whitening: Array) -> Steps:
    """Descend over rotations with a step that shrinks geometrically.

    So the noise of many rounds averages out.
    """
    parameters = plan.parameters
    size = plan.parameters.components
    newton = 1.0 / (2.0 * infomax.CURVATURE[plan.score])
    unmixing = np.eye(size)
    turn = np.zeros((size, size))
    for index in range(plan.rounds):
        release = yield _ask("rotation", unmixing, whitening)
        shrunk = float(parameters.decay ** (index / max(plan.rounds - 1, 1)))
        speed = parameters.first_step * shrunk
        speed *= _caution(newton * speed * release.deviation, size)
        turn = -newton * speed * infomax.skew_matrix(release.values, size)
        turn /= max(1.0, float(np.linalg.norm(turn, 2)))  # at most a radian a round
        unmixing = expm(turn) @ unmixing
    return unmixing, float(np.linalg.norm(turn))


def _caution(deviation: float, size: int) -> float:
    """Factor of a step whose turn has noise of ``deviation`` in every entry.

    Noise by itself then rotates by n = 2 σ √R radians. Above half a radian its steps are limited to
    about that length, and above four they are shortened further. So W stays near PCA's axes if
    there is only noise: tested on the dissertation's simulation, n = 0.7 to 16.
    """
    angle = 2.0 * deviation * math.sqrt(size)
    return 1.0 / math.hypot(1.0, 2.0 * angle, angle**2 / 2.0)


def _project(plan: Ica, whitening: Array) -> Steps:
    """Iterate FastICA's fixed point: a step, then the nearest rotation."""
    size = plan.parameters.components
    unmixing = np.eye(size)
    change = 0.0
    for _ in range(plan.rounds):
        release = yield _ask("fixed_point", unmixing, whitening)
        step = release.values.reshape(size, size)
        closest, _ = polar(-step @ unmixing)
        change = float(np.linalg.norm(np.abs(closest @ unmixing.T) - np.eye(size)))
        unmixing = closest
    return unmixing, change


def _climb(plan: Ica, whitening: Array) -> Steps:
    """Follow the paper's natural gradient: ΔW = ρ (I + E[ŷzᵀ]) W, Δb = ρ E[ŷ]."""
    size = plan.parameters.components
    unmixing = np.eye(size)
    bias = np.zeros(size)
    change = np.zeros((size, size))
    rate = plan.parameters.learning_rate
    for _ in range(plan.rounds):
        release = yield _ask("infomax", unmixing, whitening, bias=bias)
        moments = release.values.reshape(size, size + 1)
        change = rate * (np.eye(size) + moments[:, :size]) @ unmixing
        unmixing = unmixing + change
        bias = bias + rate * moments[:, size]
    return unmixing, float(np.linalg.norm(change))


def _ask(statistic: str, unmixing: Array, whitening: Array, **more: Array) -> Query:
    return Query("ica", statistic, {"unmixing": unmixing, "whitening": whitening, **more})
