"""capeDJICA: joint ICA of all sites' data, round by round.

Source: dissertation Algorithm 6.1, corrected and extended. The data are whitened
with capePCA's released eigenpairs, which costs nothing more. Three optimizers:

``rotation`` (default)
    W stays a rotation, as the unmixing of whitened data is; only the antisymmetric
    part of E[ψ(z)zᵀ], R(R−1)/2 numbers, is released a round.
``fixed-point``
    FastICA's step with a polar projection; R² numbers a round, few rounds.
``gradient``
    The paper's update (eq. 6.3 and 6.6). The identity and the factor W carry no
    data and are applied after the release.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from scipy.linalg import expm, polar

from consortium.algorithms.base import (
    Argument,
    Array,
    Form,
    Local,
    PlannedRelease,
    Query,
    Release,
    Result,
    Run,
    Shape,
    SiteData,
    Takes,
    forms_of,
)
from consortium.algorithms.ica.maps import ask_maps, map_products, plan_maps, unmixed
from consortium.algorithms.pca.centre import Pca, PcaParameters, Solver
from consortium.algorithms.query_arguments import array_argument
from consortium.errors import ProtocolError, StudyError
from consortium.kernels import infomax
from consortium.privacy.bounds import Bound, Unit
from consortium.privacy.clipping import clip_columns

Steps = Generator[Query, Release, tuple[Array, float]]
"""Rounds of an optimizer; returns the unmixing and the size of the last change."""

Optimizer = Literal["rotation", "fixed-point", "gradient"]
_ROUNDS: dict[Optimizer, dict[Unit, int]] = {
    "rotation": {"subject": 20, "timepoint": 30},
    "fixed-point": {"subject": 8, "timepoint": 8},
    "gradient": {"subject": 150, "timepoint": 150},
}


class IcaParameters(BaseModel):
    """Parameters of `ica`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    components: int = Field(ge=2, le=200, description="R, networks to look for.")
    pca_bound: float | None = Field(
        default=None, gt=0, description="Clipping bound of the PCA before it, as in pca."
    )
    pca_share: float = Field(
        default=0.5, gt=0, lt=1, description="Part of the whole budget (of μ²) that PCA may use."
    )
    pca_solver: Solver | None = Field(
        default=None, description="Solver of the PCA before it, as in pca."
    )
    pca_iterations: int | None = Field(
        default=None, ge=1, le=50, description="Products of the solver power, as in pca."
    )
    maps: bool = Field(
        default=False,
        description="Whether one more release gives maps at full resolution: of the voxels of "
        "data.maps_resolution, with data.atlas of those of the grid.",
    )
    maps_share: float = Field(
        default=0.3,
        gt=0,
        lt=1,
        description="Part of the whole budget (of μ²) that maps may use; what is left is divided "
        "by pca_share.",
    )
    maps_bound: float | None = Field(
        default=None,
        gt=0,
        description="Clipping bound of one unit's maps (Frobenius norm over voxels and "
        "components); by default from R and the mean number of volumes per subject.",
    )
    optimizer: Optimizer = Field(
        default="rotation", description="How the unmixing is improved from round to round."
    )
    score: infomax.Score | None = Field(
        default=None,
        description="'tanh', or 'volatility' for courses whose variance wanders (unit subject "
        "only). By default volatility for unit subject and tanh for unit timepoint.",
    )
    rounds: int | None = Field(
        default=None,
        ge=1,
        le=2000,
        description="Rounds; by default 20 for rotation (30 with unit timepoint), 8 for "
        "fixed-point and 150 for gradient.",
    )
    bound: float | None = Field(
        default=None,
        gt=0,
        description="Clipping bound of one unit's statistic; by default from R and the mean "
        "number of volumes per subject.",
    )
    first_step: float = Field(
        default=4.0, gt=0, description="Rotation: first step over a full Newton step."
    )
    learning_rate: float = Field(default=0.5, gt=0, description="Gradient: ρ.")
    decay: float = Field(
        default=0.1,
        gt=0,
        le=1,
        description="Rotation: last step over the first; steps shrink geometrically.",
    )


def _units(data: SiteData) -> int:
    return len(data.lengths) if data.unit == "subject" else sum(data.lengths)


def _clipped_mean(parts: Iterable[Array], bound: Bound, units: int) -> Array:
    """Mean over subjects of their statistics (rows), each clipped to the bound.

    One that overflowed counts as zero, since an error would tell whoever chose the
    whitening how large the data are.
    """
    total: Array = np.zeros(1)
    for part in parts:
        total = total + clip_columns(part.reshape(len(part), -1).T, bound.norm).sum(axis=1)
    return total / units


def _named_score(query: Query) -> infomax.Score:
    return "tanh" if query.arguments.get("score") == "tanh" else "volatility"


def _rotation(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over units of the clipped antisymmetric moment, R(R−1)/2 entries."""
    unmixing, reduced = unmixed(data, query)
    if data.unit == "timepoint":
        return infomax.rotation_by_volume(unmixing, reduced, bound.norm) / _units(data)
    moments = infomax.subject_moments(unmixing, reduced, data.lengths, _named_score(query))
    return _clipped_mean(map(infomax.antisymmetric, moments), bound, _units(data))


def _fixed_point(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over subjects of the clipped ψ zᵀ − diag ψ', R² entries."""
    unmixing, reduced = unmixed(data, query)
    steps = infomax.subject_steps(unmixing, reduced, data.lengths, _named_score(query))
    return _clipped_mean(steps, bound, _units(data))


def _gradient(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over units of the clipped ŷ (z; 1)ᵀ, R(R+1) entries."""
    unmixing, reduced = unmixed(data, query)
    bias = array_argument(query, "bias", 1)
    if len(bias) != len(unmixing):
        raise ProtocolError(f"The query's 'bias' has {len(bias)} entries; discard it.")
    if data.unit == "timepoint":
        return infomax.infomax_by_volume(unmixing, bias, reduced, bound.norm) / _units(data)
    ends = np.cumsum([0, *data.lengths])
    spans = [reduced[:, a:b] for a, b in pairwise(ends)]
    means = (infomax.infomax_mean(unmixing, bias, block)[None] for block in spans)
    return _clipped_mean(means, bound, _units(data))


class Ica:
    """PCA, then one release a round, then maps if they are asked for."""

    name = "ica"
    title = "capeDJICA"
    takes: Takes = "series"
    needs_means = False
    Parameters = IcaParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        **Pca.statistics,
        "rotation": _rotation,
        "fixed_point": _fixed_point,
        "infomax": _gradient,
        "maps": map_products,
    }

    def releases(self, parameters: IcaParameters, shape: Shape) -> tuple[PlannedRelease, ...]:
        """PCA's, ``rounds`` equal ones, and one of maps if they are asked for."""
        _check(parameters, shape)
        maps = (plan_maps(parameters, shape),) if parameters.maps else ()
        left = 1.0 - (parameters.maps_share if parameters.maps else 0.0)
        size, share = parameters.components, parameters.pca_share
        (moment,) = Pca().releases(_pca(parameters), _left_for_pca(parameters, shape))
        entries = {
            "rotation": size * (size - 1) // 2,
            "fixed-point": size * size,
            "gradient": size * (size + 1),
        }[parameters.optimizer]
        statistic = {"rotation": "rotation", "fixed-point": "fixed_point", "gradient": "infomax"}
        return (
            replace(moment, share=left * share),
            PlannedRelease(
                "ica",
                statistic[parameters.optimizer],
                entries,
                Bound(parameters.bound or _default_bound(parameters, shape)),
                _rounds(parameters, shape),
                left * (1.0 - share),
                _forms(parameters, shape),
                fixed={} if parameters.optimizer == "gradient" else _scored(parameters, shape),
            ),
            *maps,
        )

    def run(self, parameters: IcaParameters, shape: Shape) -> Run:
        """Whiten, improve the unmixing for the planned rounds, and return the mixing maps."""
        subspace = yield from Pca().run(_pca(parameters), _left_for_pca(parameters, shape))
        basis, eigenvalues = subspace.arrays["basis"], subspace.arrays["eigenvalues"]
        floor = max(float(eigenvalues[0]) * 1e-6, np.finfo(np.float64).tiny)
        scales = np.sqrt(np.maximum(eigenvalues, floor))
        improve = {"rotation": _rotate, "fixed-point": _project, "gradient": _climb}
        whitening = basis / scales
        unmixing, last = yield from improve[parameters.optimizer](parameters, shape, whitening)
        mixing = (basis * scales) @ np.linalg.pinv(unmixing)
        result = Result(
            {"mixing": mixing, "unmixing": unmixing @ whitening.T, **subspace.arrays},
            {**subspace.numbers, "rounds": _rounds(parameters, shape), "last_change": last},
            maps="mixing",
        )
        if not parameters.maps:
            return result
        release = yield ask_maps(unmixing, whitening)
        fine = release.values.reshape(shape.map_rows, -1)
        return replace(
            result,
            arrays={**result.arrays, "maps": fine},
            numbers={**result.numbers, "map_noise": release.deviation},
            maps="maps",
            fine=True,
            noise=release.deviation,
        )


def _rotate(parameters: IcaParameters, shape: Shape, whitening: Array) -> Steps:
    """Descend over rotations with a step that shrinks geometrically."""
    score, fixed = _score(parameters, shape), _scored(parameters, shape)
    newton = 1.0 / (2.0 * infomax.CURVATURE[score])
    unmixing = np.eye(parameters.components)
    turn = np.zeros_like(unmixing)
    for index in range(_rounds(parameters, shape)):
        release = yield _ask("rotation", unmixing, whitening, fixed)
        speed = parameters.first_step * _shrink(parameters, shape, index)
        speed *= _caution(newton * speed * release.deviation, parameters.components)
        turn = -newton * speed * infomax.skew(release.values, parameters.components)
        turn /= max(1.0, float(np.linalg.norm(turn, 2)))  # at most a radian a round
        unmixing = expm(turn) @ unmixing
    return unmixing, float(np.linalg.norm(turn))


def _caution(deviation: float, size: int) -> float:
    """Factor of a step whose turn has noise of ``deviation`` in every entry.

    Noise alone then turns by n = 2 σ √R radians. From half a radian on its steps are kept about
    that long, and from four they are shortened further, so that W stays near PCA's axes where
    noise is all there is: tried on the dissertation's simulation, n = 0.7 to 16.
    """
    angle = 2.0 * deviation * math.sqrt(size)
    return 1.0 / math.hypot(1.0, 2.0 * angle, angle**2 / 2.0)


def _project(parameters: IcaParameters, shape: Shape, whitening: Array) -> Steps:
    """FastICA's fixed point: a step, then the nearest rotation."""
    size = parameters.components
    unmixing = np.eye(size)
    change = 0.0
    for _ in range(_rounds(parameters, shape)):
        release = yield _ask("fixed_point", unmixing, whitening, _scored(parameters, shape))
        step = release.values.reshape(size, size)
        closest, _ = polar(-step @ unmixing)
        change = float(np.linalg.norm(np.abs(closest @ unmixing.T) - np.eye(size)))
        unmixing = closest
    return unmixing, change


def _climb(parameters: IcaParameters, shape: Shape, whitening: Array) -> Steps:
    """The paper's natural gradient: ΔW = ρ (I + E[ŷzᵀ]) W, Δb = ρ E[ŷ]."""
    size = parameters.components
    unmixing, bias, change = np.eye(size), np.zeros(size), np.zeros((size, size))
    rate = parameters.learning_rate
    for _ in range(_rounds(parameters, shape)):
        release = yield _ask("infomax", unmixing, whitening, {"bias": bias})
        moments = release.values.reshape(size, size + 1)
        change = rate * (np.eye(size) + moments[:, :size]) @ unmixing
        unmixing, bias = unmixing + change, bias + rate * moments[:, size]
    return unmixing, float(np.linalg.norm(change))


def _shrink(parameters: IcaParameters, shape: Shape, index: int) -> float:
    """Step of a round over the first one, so that the noise of many rounds averages out."""
    return float(parameters.decay ** (index / max(_rounds(parameters, shape) - 1, 1)))


def _ask(statistic: str, unmixing: Array, whitening: Array, more: Mapping[str, Argument]) -> Query:
    return Query("ica", statistic, {"unmixing": unmixing, "whitening": whitening, **more})


def _forms(parameters: IcaParameters, shape: Shape) -> dict[str, Form]:
    size = parameters.components
    forms: dict[str, Form] = {"unmixing": (size, size), "whitening": (shape.features, size)}
    gradient = parameters.optimizer == "gradient"
    return forms | ({"bias": (size,)} if gradient else forms_of(_scored(parameters, shape)))


def _pca(parameters: IcaParameters) -> PcaParameters:
    return PcaParameters(
        components=parameters.components,
        bound=parameters.pca_bound,
        solver=parameters.pca_solver,
        iterations=parameters.pca_iterations,
    )


def _left_for_pca(parameters: IcaParameters, shape: Shape) -> Shape:
    """The data as PCA sees them: with the noise that its part of the budget leaves it."""
    share = parameters.pca_share * (1.0 - (parameters.maps_share if parameters.maps else 0.0))
    return replace(shape, noise=shape.noise / math.sqrt(share))


def _rounds(parameters: IcaParameters, shape: Shape) -> int:
    return parameters.rounds or _ROUNDS[parameters.optimizer][shape.unit]


def _score(parameters: IcaParameters, shape: Shape) -> infomax.Score:
    return parameters.score or ("volatility" if shape.unit == "subject" else "tanh")


def _scored(parameters: IcaParameters, shape: Shape) -> dict[str, Argument]:
    """What is the same in all queries."""
    return {"score": _score(parameters, shape)}


def _check(parameters: IcaParameters, shape: Shape) -> None:
    if shape.unit == "timepoint":
        if parameters.score == "volatility":
            raise StudyError(
                "field 'analysis.score': volatility mixes a subject's volumes, which unit "
                "timepoint does not protect; choose tanh, or protect unit subject."
            )
        if parameters.optimizer == "fixed-point":
            raise StudyError(
                "field 'analysis.optimizer': fixed-point is for unit subject; choose rotation."
            )


def _default_bound(parameters: IcaParameters, shape: Shape) -> float:
    """About 1.5 times the typical norm, from public sizes alone."""
    size = parameters.components
    length = sum(shape.samples) / sum(shape.subjects)
    if parameters.optimizer == "gradient":
        # At rest E[ŷzᵀ] = −I, whose trace R no mean of terms of norm R or less can reach: with
        # a smaller bound a volume's clip makes W grow for ever.
        return 1.5 * size if shape.unit == "timepoint" else 0.5 * math.sqrt(size) + 1.0
    if shape.unit == "timepoint":
        return 0.15 * size
    factor = {"tanh": 0.28, "volatility": 0.5}[_score(parameters, shape)]
    rotation = max(factor * size / math.sqrt(length), 0.1)
    return rotation if parameters.optimizer == "rotation" else rotation + 0.3 * math.sqrt(size)
