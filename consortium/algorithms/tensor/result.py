"""From the released moments of a mixture or of topics to centres and weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import Array, Captions, Release, Result, Table
from consortium.algorithms.findings import Finding
from consortium.algorithms.tensor.kernels.one_kind import (
    fewer_topics,
    independent_entries,
    limit_of,
    linked_eigenvalue,
)
from consortium.algorithms.tensor.kernels.spiked_covariance import (
    Whitening,
    flat_variance,
    moment_whitening,
)
from consortium.algorithms.tensor.kernels.tensor import contract_tensor, orthogonal_components
from consortium.base.formatting import count
from consortium.kernels.moments import pack_symmetric, unpack_symmetric
from consortium.privacy.clipping import clip_columns

if TYPE_CHECKING:
    from consortium.algorithms.tensor.centre import Tensor

CONSTANT = 0.5
"""Weight of the mean in a mixture's first release, over the bound."""
_MARGINS = (1.3, 2.5)
_ALLOWED = 0.1
AGREES = (0.7, 1.4)
"""Agreements of all components between which they are found."""
_LEAST_ROOT = 0.05  # of √w_k: a component needs at least one participant in 400


@dataclass(frozen=True)
class Moments:
    """Estimates of the first release: whitening, mean, σ², and a public scale of whitened vectors.

    The scale gives a whitened vector a root mean square of 1/margin, with a bound of 1. ``taken``
    are the offsets of the sites, S x D, which are subtracted in a mixture's third moment, and
    ``error`` is the variance that their noise adds to the participants'.
    """

    whitening: Whitening
    mean: Array
    variance: float
    scale: float
    edge: float
    taken: Mapping[str, Array] = field(default_factory=dict)
    error: float = 0.0
    stands_out: bool = True
    """Whether the second moment shows as many components."""


def moment_without_levels(plan: Tensor, release: Release) -> tuple[Array, Array, Array, float]:
    """Read the second moment of (x, c e), e being one for the participant's site, or for all.

    Returns
    -------
    square : array, D x D
        E[(x - o)(x - o)ᵀ]; its diagonal is too small by ``error``.
    mean : array, length D
        Mean of all participants, which subtracting the offsets doesn't change.
    offsets : array, S x D
        o: each site's mean less the mean of all; zero for a site that did not answer, and where
        all sites have one constant.
    error : float
        Noise variance of sites' means in an entry, weighted by the sites' participants.
    """
    matrix = unpack_symmetric(release.values)
    size = plan.size
    square = matrix[:size, :size]
    products = matrix[:size, size:] / plan.constant
    if plan.constants == 1:
        return square, products[:, 0], np.zeros((1, size)), 0.0
    present = list(plan.present(release))
    parts = plan.units_in(release)
    parts /= parts.sum()
    kept = products[:, present]
    mean = kept.sum(axis=1)
    levels = kept / parts
    offsets = np.zeros((plan.constants, size))
    offsets[present] = (levels - mean[:, None]).T
    between = (levels * parts) @ levels.T - np.outer(mean, mean)
    noise = release.deviation**2 / (2.0 * plan.constant**2)
    return square - between, mean, offsets, float(noise * (1.0 / parts - 1.0).sum())


def mixture_moments(plan: Tensor, release: Release) -> Moments:
    """Read the second moment of (x, c e), without the differences of sites."""
    components = plan.parameters.components
    square, mean, offsets, error = moment_without_levels(plan, release)
    stands_out = components < 2 or _kinds_stand_out(plan, release)
    flat = flat_variance(square, mean, components)
    edge = release.deviation * float(np.sqrt(2.0 * plan.size))
    deviation = release.deviation / (plan.constant**2 * (1 + CONSTANT**-2))
    whitening = moment_whitening(square - flat * np.eye(plan.size), components, edge)
    variance = flat + error
    spread = components + (variance + error) * float(np.sum(1 / whitening.values))
    scale = _scale(plan, spread, deviation)
    taken = {"offsets": offsets} if plan.constants > 1 else {}
    return Moments(
        whitening=whitening,
        mean=mean,
        variance=variance,
        scale=scale,
        edge=edge,
        taken=taken,
        error=error,
        stands_out=stands_out,
    )


def _kinds_stand_out(plan: Tensor, release: Release) -> bool:
    """Return whether entries are correlated more than for participants of one kind."""

    def covariance(moment: Array) -> Array:
        own = replace(release, values=pack_symmetric(moment))
        square, mean, _, error = moment_without_levels(plan, own)
        return np.asarray(square - np.outer(mean, mean) + error * np.eye(plan.size))

    rank = plan.parameters.components - 1
    size = plan.size
    moment = unpack_symmetric(release.values)
    found = covariance(moment)
    variances = np.maximum(np.diag(found), 0.0)
    expected = moment.copy()
    expected[:size, :size] -= found - np.diag(variances)
    units = float(plan.units_in(release).sum())
    seed = plan.parameters.seed
    simulated = independent_entries(expected, variances, units, release.deviation, seed)
    limit = limit_of(lambda drawn: linked_eigenvalue(covariance(drawn), rank), simulated)
    return linked_eigenvalue(found, rank) > limit


def topic_moments(plan: Tensor, release: Release) -> Moments:
    """Read the mean product of two words."""
    matrix = unpack_symmetric(release.values)
    edge = release.deviation * float(np.sqrt(2.0 * plan.size))
    whitening = moment_whitening(matrix, plan.parameters.components, edge)
    # A word's entries add up to 1, so the rows' sums are the frequencies of the words.
    mean = _frequencies(matrix.sum(axis=1))
    spread = float(mean @ np.square(whitening.forward).sum(axis=1))
    scale = _scale(plan, spread, release.deviation)
    stands_out = plan.parameters.components < 2 or _topics_stand_out(plan, release, mean)
    return Moments(whitening, mean, 0.0, scale, edge, stands_out=stands_out)


def _topics_stand_out(plan: Tensor, release: Release, frequencies: Array) -> bool:
    """Return whether the least eigenvalue of the topics exceeds that of fewer topics."""
    components = plan.parameters.components
    units = float(plan.units_in(release).sum())
    moment = unpack_symmetric(release.values)
    seed = plan.parameters.seed
    asked = (frequencies, components - 1, units, release.deviation, seed)

    def least(matrix: Array) -> float:
        return float(np.linalg.eigvalsh(matrix)[-components])

    return least(moment) > limit_of(least, fewer_topics(moment, *asked))


def _scale(plan: Tensor, spread: float, deviation: float) -> float:
    """Return the factor of whitened vectors with mean square ``spread``: 1 / (margin √spread).

    ``deviation`` is the first release's noise over its bound. The third moment's follows from it
    and the shares. Where it allows, the margin is as wide as keeps the noise of the decomposed
    tensor, whose strengths are 1 or more, below `_ALLOWED`.
    """
    parameters = plan.parameters
    ratio = parameters.share / (1 - parameters.share)
    noise = deviation * np.sqrt(2.0 * ratio) * np.sqrt(parameters.components) * spread**1.5
    widest = np.cbrt(_ALLOWED / noise) if noise > 0 else _MARGINS[1]
    margin = parameters.margin or float(np.clip(widest, *_MARGINS))
    return float(1 / (margin * np.sqrt(spread)))


def _frequencies(columns: Array) -> Array:
    """Return the columns without negative entries, with sums of 1."""
    kept = np.maximum(columns, 0.0)
    total = kept.sum(axis=0)
    scaled: Array = np.where(total > 0, kept / np.where(total > 0, total, 1.0), 1 / len(columns))
    return scaled


def subtract_spread(tensor: Array, model: Moments) -> Array:
    """Subtract the Gaussians' own spread: σ² (m ⊗ G in its three orders), G = Wᵀ W."""
    forward = model.whitening.forward
    product = np.einsum("i,jk->ijk", forward.T @ model.mean, forward.T @ forward)
    added = product + product.transpose(1, 0, 2) + product.transpose(1, 2, 0)
    corrected: Array = tensor - (model.variance + model.error) * added
    return corrected


def tensor_result(plan: Tensor, model: Moments, tensor: Array) -> Result:
    """Decompose the corrected third moment into centres and weights."""
    directions = orthogonal_components(
        tensor,
        restarts=plan.parameters.restarts,
        iterations=plan.parameters.iterations,
        generator=np.random.default_rng(plan.parameters.seed),
    )
    projected = directions.T @ (model.whitening.forward.T @ model.mean)
    roots = np.maximum(projected, _LEAST_ROOT)
    roots /= np.linalg.norm(roots)
    order = np.argsort(-roots)
    directions = directions[:, order]
    roots = roots[order]
    centres = model.whitening.backward @ directions / roots
    # A centre has the bounds of every mean of participants, which noise could exceed.
    centres = _frequencies(centres) if plan.words else clip_columns(centres, plan.reach)
    strengths = np.einsum("il,il->l", contract_tensor(tensor, directions), directions)
    agreements = roots * strengths
    agrees = bool(np.all((agreements >= AGREES[0]) & (agreements <= AGREES[1])))
    found = agrees and model.stands_out
    return Result(
        {"centres": _placed(plan, centres), "weights": roots**2},
        {"variance": model.variance, "noise_edge": model.edge, "found": len(roots) if found else 0},
        loadings="centres",
        tables={"components": _table(roots**2, agreements, found=found)},
        captions=Captions(headline=_headline(len(roots), found=found), found=found),
    )


def _table(weights: Array, agreements: Array, *, found: bool) -> Table:
    low, high = AGREES
    return Table(
        "Agreement of the third moment with the weight, 1 if the model is right and noise is "
        f"small; only if that of all components is from {low:g} to {high:g} are they found. "
        "Weights have no intervals.",
        ("component", "weight", "agreement", "state"),
        tuple(
            (k + 1, float(w) if found else Finding(), float(a), "found" if found else "not found")
            for k, (w, a) in enumerate(zip(weights, agreements, strict=True))
        ),
    )


def _headline(many: int, *, found: bool) -> str:
    if found:
        return f"{count(many, 'component')} found: their two ways to a weight agree."
    return (
        f"Nothing was found: {many} components do not stand out of noise and chance at this ε and "
        "number of participants, or the participants are not of that many kinds."
    )


def _placed(plan: Tensor, centres: Array) -> Array:
    """Return centres over all views' entries, a topic's frequencies for each of three words."""
    if not plan.words:
        return centres
    placed = np.zeros((plan.shape.features, centres.shape[1]))
    for word in plan.words:
        placed[word] = centres
    return placed
