"""Maps between templates and release, and how networks go together, each with how sure it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from consortium.algorithms.base import Array, Captions, Release, Result, Shape, Table
from consortium.algorithms.findings import DRAWN, SURE, Finding, ImageSet
from consortium.algorithms.template_networks.kernels.template_shrinkage import Shrunk, shrink
from consortium.base.formatting import count
from consortium.kernels.surface_basis import SurfaceBasis

if TYPE_CHECKING:
    from consortium.algorithms.template_networks.centre import TemplateNetworks

ONLY = "template only"
SAME = "as its template"
UNLIKE = "unlike its template"
MORE = "more than its template"
_FALSE = 0.05  # chance that any connection is said to be there which is not
_MOST_ERROR = 0.3  # of Fisher's z: above it, a connection is withheld
_ROWS = 4096
_AGREEMENT = "Expected correlation with the mean of many more participants' maps at these sites"
_WORD = "beyond their templates"
_UNFOUND = "The release adds nothing significant to its template; it is not drawn."


@dataclass(frozen=True, eq=False)
class _Painted:
    """Maps at the voxels that are drawn, over their own standard deviation."""

    maps: Array
    errors: Array
    scores: Array


def make_result(maps: Release, connectivity: Release | None, plan: TemplateNetworks) -> Result:
    """Return the result of networks by templates, from its releases.

    Returns
    -------
    Result
        ``maps`` (D x R, or V x R at full resolution, in standard deviations over the voxels),
        ``errors`` and ``z`` (the same shape; z is of the difference from the template), ``weights``
        (d x R), ``expected`` and ``kept`` (R), and ``connectivity`` (R x R correlations).
    """
    released = maps.values.reshape(plan.maps.shape)
    least = plan.parameters.least
    shape = plan.estimated_shape(maps)
    found = shrink(released, plan.maps, _deviation(released, maps.deviation, shape))
    painted = _paint(found, plan)
    findings = _findings(found, least)
    arrays = {
        "maps": painted.maps,
        "errors": painted.errors,
        "z": painted.scores,
        "weights": found.strengths * plan.maps + found.moved,
        "expected": found.expected[1],
        "kept": found.kept,
    }
    tables = {"templates": _table(found, findings, least)}
    numbers = _numbers(found, findings, plan)
    if connectivity is not None:
        connections = _connections(connectivity, plan)
        arrays["connectivity"] = np.tanh(_square(connectivity.values, plan.templates.count))
        tables["connectivity"] = _matrix(connections, plan.templates.count)
        numbers["connections"] = sum(each.state == "found" for each in connections)
    sure = [each.state == "found" for each in findings]
    places = plan.shape.places
    fine = places is not None and places.fine is not None
    return Result(
        arrays,
        numbers,
        images=_images(painted, findings, plan.shape, fine),
        tables=tables,
        captions=Captions(
            column="map",
            headline=_headline(sum(sure), tables["templates"], len(sure)),
            found=any(sure),
        ),
    )


def _deviation(released: Array, noise: float, shape: Shape) -> float:
    """Return the error of a released number orthogonal to the templates, with sampling error.

    The squared distance of a participant's maps from the mean is R − ‖mean‖², nearly all of which
    is orthogonal to the templates. The sampling variance is this over the number of entries.
    """
    size, maps = released.shape
    square = max(float(np.sum(released**2)) - released.size * noise**2, 0.0)
    between = max(maps - square, 0.0) / (maps * (size - maps)) / sum(shape.units)
    return float(np.hypot(noise, np.sqrt(between)))


def _paint(found: Shrunk, plan: TemplateNetworks) -> _Painted:
    """Return maps, standard errors and deviations over theirs, voxel by voxel.

    The part of a template outside the basis is added with the weight of the template in the map.
    """
    given = plan.templates
    places = plan.shape.places
    waves = plan.waves
    if waves is None or places is None:
        whole = plan.maps * found.strengths
        return _scaled(found, whole, whole, np.eye(len(plan.maps)))
    coarse = given.values / plan.sizes * found.strengths
    if places.fine is None or given.fine is None or isinstance(waves, SurfaceBasis):
        return _scaled(found, coarse, coarse, waves.matrix)
    whole = given.fine / plan.sizes * found.strengths
    parts = range(0, len(whole), _ROWS)
    painted = [
        _scaled(
            found,
            whole[start : start + _ROWS],
            coarse,
            waves.at(places.fine[start : start + _ROWS]),
            waves.matrix,
        )
        for start in parts
    ]
    return _Painted(
        *(np.concatenate([getattr(each, name) for each in painted]) for name in _FIELDS)
    )


_FIELDS = ("maps", "errors", "scores")


def _scaled(
    found: Shrunk, whole: Array, coarse: Array, basis: Array, own: Array | None = None
) -> _Painted:
    """Return maps at the rows of a basis, over their standard deviation at rows of ``own``."""
    study = coarse + (basis if own is None else own) @ found.moved
    middle = study.mean(axis=0)
    spread = study.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    orthogonal = np.square(basis).sum(axis=1) - np.square(basis @ found.span).sum(axis=1)
    noise = np.sqrt(np.maximum(orthogonal, 0.0))[:, None]
    error = found.deviation * noise
    differs = basis @ found.deviations
    return _Painted(
        (whole + basis @ found.moved - middle) / spread,
        noise * found.errors / spread,
        np.divide(differs, error, out=np.zeros_like(differs), where=error > 0),
    )


def _findings(found: Shrunk, least: float) -> tuple[Finding, ...]:
    """Return the expected correlation of each map with the group's, with its 95 % interval.

    A map differs from its template if the release has a significant part orthogonal to it, the map
    is expected to agree, and participants have a similar map: dual regression also makes a map of a
    template with permuted places. A template whose own strength is hidden by noise is withheld.
    """
    hidden = found.strengths <= SURE * found.deviation
    findings = []
    sure = (found.kept > 0) & (found.expected[1] >= least) & (found.similarity >= least)
    for low, value, high, beyond, gone in zip(*found.expected, sure, hidden, strict=True):
        state = "found" if beyond else "not found"
        findings.append(Finding(value, low, high, "withheld" if gone else state))  # type: ignore[arg-type]
    return tuple(findings)


def _images(
    painted: _Painted, findings: tuple[Finding, ...], shape: Shape, fine: bool
) -> dict[str, ImageSet]:
    labels = tuple(f"map {number}" for number in range(1, len(findings) + 1))
    sure = tuple(each.state == "found" for each in findings)
    word = shape.places.word if shape.places is not None else "voxel"
    image = partial(ImageSet, labels=labels, fine=fine, found=sure, units="SD")
    estimated = partial(
        image, accuracy=_estimates(findings), accuracy_caption=_AGREEMENT, unfound=_UNFOUND
    )
    return {
        "networks": estimated(
            painted.maps,
            "Map between a template and the release, in standard deviations over the brain; "
            f"coloured from {DRAWN:g} on where it is also {SURE:g} standard errors from "
            "zero.",
            suffix="components",
            word=_WORD,
            threshold=np.maximum(DRAWN, SURE * painted.errors),
        ),
        "z": estimated(
            painted.scores,
            "Released part of a map orthogonal to its template, over its standard error.",
            entities={"stat": "z"},
            units="z",
            drawn=False,
            threshold=SURE,
        ),
        "errors": image(
            painted.errors,
            f"Standard error of each {word} of the maps; where a map is its template, how "
            "far the group's may be from it.",
            entities={"stat": "stderr"},
            drawn=False,
        ),
    }


def _table(found: Shrunk, findings: tuple[Finding, ...], least: float) -> Table:
    states = [
        _state(each, kept > 0, like >= least, least)
        for each, kept, like in zip(findings, found.kept, found.similarity, strict=True)
    ]
    rows = [
        (number, each, float(kept), float(like), state)
        for number, (each, kept, like, state) in enumerate(
            zip(_estimates(findings), found.kept, found.similarity, states, strict=True), start=1
        )
    ]
    return Table(
        "Expected correlation of each map with the mean of many more participants' maps at these "
        "same sites, at the basis's resolution (how other sites' participants differ is not "
        f"counted), and the factor of the released part orthogonal to its template. '{SAME}': the "
        "release adds nothing to the template, and the uncertainty is so small that they agree; "
        f"'{ONLY}': it may be far from it. '{UNLIKE}': participants' maps are estimated to agree "
        f"with it by less than {least:g}, as with templates whose places are permuted. '{MORE}': "
        "the map differs from its template. This is not evidence of a network, since any smooth "
        f"template, also a mirrored one, gives such a map. Not found: below {least:g}.",
        ("map", "expected correlation", "believed", "like its template", "state"),
        tuple(rows),
    )


def _state(finding: Finding, moved: bool, like: bool, least: float) -> str:
    """Return the state of a map in the table."""
    if not finding.reported:
        return finding.state
    if not moved:
        return SAME if finding.low >= least else ONLY
    return {"found": MORE}.get(finding.state, finding.state) if like else UNLIKE


def _connections(release: Release, plan: TemplateNetworks) -> tuple[Finding, ...]:
    """Return correlations of every two networks' time series, with simultaneous intervals.

    The sampling error is the largest that the clipping bound allows.
    """
    values = release.values
    noise = release.deviation
    size = len(values)
    limit = plan.connectivity_bound.norm
    own = max(float(values @ values) - size * noise**2, 0.0)
    between = max(limit**2 - own, 0.0) / size / sum(plan.estimated_shape(release).units)
    error = float(np.hypot(noise, np.sqrt(between)))
    reach = -float(ndtri(_FALSE / 2.0 / size)) * error
    if error > _MOST_ERROR:
        return (Finding(),) * size
    return tuple(
        Finding(
            float(np.tanh(value)),
            float(np.tanh(value - reach)),
            float(np.tanh(value + reach)),
            "found" if abs(value) > reach else "not found",
        )
        for value in values
    )


def _square(values: Array, size: int) -> Array:
    """Return a symmetric matrix of zero diagonal with the values above it, row by row."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size, 1)] = values
    return matrix + matrix.T


def _matrix(found: tuple[Finding, ...], size: int) -> Table:
    rows, columns = np.triu_indices(size, 1)
    cells = {(int(r), int(c)): each for r, c, each in zip(rows, columns, found, strict=True)}
    table = [
        (first + 1, *(_cell(cells, first, other) for other in range(size))) for first in range(size)
    ]
    return Table(
        "Mean correlation of every two maps' time series, by way of Fisher's z, with intervals "
        "that contain all true values in 95 of 100 studies; participants with more connectivity "
        "than the bound are scaled down.",
        ("map", *(str(number) for number in range(1, size + 1))),
        tuple(table),
    )


def _cell(cells: dict[tuple[int, int], Finding], first: int, other: int) -> Finding | str:
    if first == other:
        return "–"
    return cells[min(first, other), max(first, other)]


def _numbers(
    found: Shrunk, findings: tuple[Finding, ...], plan: TemplateNetworks
) -> dict[str, float | int | str]:
    return {
        "dimensions": len(found.deviations),
        "cutoff": plan.cutoff,
        "resolved": plan.resolved,
        "deviation": found.deviation,
        "least": plan.parameters.least,
        "found": sum(each.state == "found" for each in findings),
        "template_only": int(np.count_nonzero(found.kept == 0)),
    }


def _estimates(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return only expected correlations; another column states whether a network was found."""
    return tuple(replace(each, state="found") if each.reported else each for each in findings)


def _headline(found: int, templates: Table, whole: int) -> str:
    """State how many maps differ from their templates."""
    alike, unlike = (sum(row[-1] == state for row in templates.rows) for state in (SAME, UNLIKE))
    maps = count(whole, "map")
    right = f"{alike} of {maps} {'is as its template' if alike == 1 else 'are as their templates'}"
    if unlike:
        verb = "is unlike its template" if unlike == 1 else "are unlike their templates"
        right = f"{right}, {unlike} {verb}" if alike else f"{unlike} of {maps} {verb}"
    if not found:
        return f"Nothing was found beyond the templates{f'; {right}' if alike or unlike else ''}."
    if found == whole:
        return f"The release adds to the templates of all {maps}."
    rest = right if alike or unlike else "the others are not distinguishable from their templates"
    return f"The release adds to the templates of {found} of {maps}; {rest}."
