"""capeAGN: mixtures of Gaussians and single-topic models from moments of order two and three.

Source: dissertation Algorithm 5.1, changed. The second moment is released first and whitens;
the third is taken of whitened persons at the sites, so that a message has K (K + 1)(K + 2)/6
numbers instead of D³. A whitened person is clipped: replacing one moves the third moment by
2 B / n. Of few words per topic the third moment is released whole, as published: it moves by
√2 B / n only, and nobody is clipped. The correction for the Gaussians' own spread needs σ² and the
mean only, which the first release holds, and costs nothing more. Weights come from the mean, which
is known far better than the third moment: for orthonormal u_k and whitened mean m, √w_k = u_kᵀ m.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from consortium.algorithms.base import (
    Argument,
    Array,
    Local,
    PlannedRelease,
    Query,
    Run,
    Shape,
    Takes,
    forms_of,
)
from consortium.algorithms.tensor.result import (
    CONSTANT,
    corrected,
    mixture_moments,
    tensor_result,
    topic_moments,
)
from consortium.algorithms.tensor.site import STATISTICS
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.kernels.tensor import cubic_size, transformed, unpack_cubic
from consortium.privacy.bounds import Bound

_MOST_FEATURES = 3_000
_WHOLE = 4  # entries for each topic up to which a margin that clips few makes more noise
_MOST_WHOLE = 64


class TensorParameters(BaseModel):
    """Parameters of `tensor`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    components: int = Field(ge=2, le=50, description="K, components of the mixture, or topics.")
    model: Literal["mixture", "topics"] = Field(
        default="mixture",
        description="'mixture': Gaussians of one spherical covariance, over the entries of all "
        "views; 'topics': three words of each person, `words`.",
    )
    bound: float | None = Field(
        default=None,
        gt=0,
        description="For mixture: clipping bound of a person's vector (Euclidean norm).",
    )
    words: tuple[str, str, str] | None = Field(
        default=None, description="For topics: three views of a word each, one entry for each word."
    )
    share: float = Field(
        default=0.6,
        gt=0,
        lt=1,
        description="Part of the whole budget (of μ²) that the second moment may use.",
    )
    margin: float | None = Field(
        default=None,
        gt=0,
        description="Clipping bound of a whitened person over the root of its mean square; by "
        "default from 1.3, where noise rules, to 2.5, where clipping would.",
    )
    restarts: int = Field(default=30, ge=1, le=1000, description="Random starts per component.")
    iterations: int = Field(default=50, ge=1, le=1000, description="Power iterations per start.")
    seed: int = Field(default=0, ge=0, lt=2**32, description="Of the public random starts.")

    @model_validator(mode="after")
    def _complete(self) -> TensorParameters:
        if (self.model == "mixture") != (self.bound is not None):
            raise ValueError("bound: it belongs to model: mixture; give both or neither")
        if (self.model == "topics") != (self.words is not None):
            raise ValueError("words: they belong to model: topics; give both or neither")
        return self


class Tensor:
    """A second moment of D x D, then a third of K x K x K, or of D x D x D where D is small."""

    name = "tensor"
    title = "capeAGN tensor decomposition"
    takes: Takes = "features"
    needs_means = True
    Parameters = TensorParameters
    statistics: ClassVar[Mapping[str, Local]] = STATISTICS

    def releases(
        self, parameters: TensorParameters, shape: Shape
    ) -> tuple[PlannedRelease, PlannedRelease]:
        """One release each, sharing the budget."""
        starts, size = _vocabulary(parameters, shape)
        if not parameters.components <= size <= _MOST_FEATURES:
            raise StudyError(
                f"field 'analysis.components': {parameters.components} can't be told from {size} "
                f"entries; have at least as many entries, and at most {_MOST_FEATURES}."
            )
        bound, entries, kind = Bound(1.0, cone=True), packed_size(size), "topic"
        if not len(starts):
            norm = (parameters.bound or 0.0) ** 2 * (1 + CONSTANT**2)
            bound, entries, kind = Bound(norm, cone=True), packed_size(size + 1), "mixture"
        share, (where, more) = parameters.share, _fixed(parameters, shape)
        both = {**where, **more}
        cubic = PlannedRelease(
            "third",
            f"{kind}_third",
            cubic_size(parameters.components),
            Bound(1.0),
            1,
            1 - share,
            {"whitening": (size, parameters.components), **forms_of(where)},
            fixed=where,
        )
        if _whole(parameters, size):
            cubic = replace(
                cubic,
                statistic="topic_cube",
                entries=cubic_size(size),
                bound=Bound(1.0, cone=True),
                arguments=forms_of(both),
                fixed=both,
            )
        forms = forms_of(both)
        second = PlannedRelease(
            "second", f"{kind}_second", entries, bound, 1, share, forms, fixed=both
        )
        return second, cubic

    def run(self, parameters: TensorParameters, shape: Shape) -> Run:
        """Whiten by the second moment, decompose the third."""
        starts, size = _vocabulary(parameters, shape)
        topics = len(starts) > 0
        kind, (where, more) = "topic" if topics else "mixture", _fixed(parameters, shape)
        second = yield Query("second", f"{kind}_second", {**where, **more})
        model = (topic_moments if topics else mixture_moments)(second, parameters)
        if _whole(parameters, size):
            third = yield Query("third", "topic_cube", {**where, **more})
            tensor = transformed(unpack_cubic(third.values, size), model.whitening.forward)
            return tensor_result(parameters, shape, model, tensor)
        forward = model.scale * model.whitening.forward
        third = yield Query("third", f"{kind}_third", {**where, "whitening": forward})
        tensor = unpack_cubic(third.values, parameters.components) / model.scale**3
        return tensor_result(parameters, shape, model, corrected(tensor, model))


def _fixed(
    parameters: TensorParameters, shape: Shape
) -> tuple[dict[str, Argument], dict[str, Argument]]:
    """What is the same in all queries, and what is beside it where nothing is whitened."""
    starts, size = _vocabulary(parameters, shape)
    if len(starts):
        return {"starts": starts}, {"size": size}
    return {"reach": _bound(parameters)}, {"constant": CONSTANT * _bound(parameters)}


def _bound(parameters: TensorParameters) -> float:
    return float(parameters.bound or 0.0)


def _whole(parameters: TensorParameters, size: int) -> bool:
    """Whether the third moment is released before it is whitened.

    Noise on whitened words is K^1.5 · 2 margin³ in every direction of the tensor; on words it is
    √2 D^1.5, for a flat spectrum, without clipping anybody: less where D is less than about
    1.3 margin² K. No data decide, so that the plan is known.
    """
    return parameters.words is not None and size <= min(_WHOLE * parameters.components, _MOST_WHOLE)


def _vocabulary(parameters: TensorParameters, shape: Shape) -> tuple[Array, int]:
    """Where the three words begin (nowhere for a mixture), and entries of a vector."""
    if parameters.words is None:
        return np.zeros(0), shape.features
    found = [shape.view_slice(name, "analysis.words") for name in parameters.words]
    sizes = {each.stop - each.start for each in found}
    if len(sizes) > 1 or len(set(parameters.words)) < 3:
        raise StudyError(
            "field 'analysis.words': the words need three different views of one size; name these."
        )
    return np.array([each.start for each in found], dtype=np.float64), sizes.pop()
