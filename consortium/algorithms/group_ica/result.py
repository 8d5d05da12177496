"""Networks, their accuracy and their maps, out of the one release of group ICA."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Array, Captions, Release, Result, Shape, Table
from consortium.algorithms.findings import Finding, ImageSet
from consortium.algorithms.group_ica.parameters import GroupIcaParameters
from consortium.algorithms.group_ica.plan import cutoff_planned
from consortium.algorithms.group_ica.separation import Released, separate_release
from consortium.algorithms.group_ica.site import smooth_basis
from consortium.base.formatting import count
from consortium.kernels.component_bootstrap import Directions, Networks
from consortium.kernels.moments import unpack_symmetric
from consortium.kernels.projector_forecast import resolved
from consortium.kernels.separations import Paint

DRAWN = 2.0
"""Standard deviations of a map from which on a voxel is coloured, if noise alone is no reason."""
SURE = 3.0
"""Standard errors from which on a voxel is told from noise."""
_LOW, _HIGH = 0.05, 0.95


def make_result(release: Release, parameters: GroupIcaParameters, shape: Shape) -> Result:
    """All that follows from the release, deterministic for the study's seed.

    Returns
    -------
    Result
        ``maps`` (D x R, or V x R at full resolution: variance 1 over the study's voxels, the
        surest first), ``errors`` (the same shape), ``weights`` (d x R), ``expected`` (R) and
        ``eigenvalues`` (d).
    """
    coarse, fine = _paints(parameters, shape)
    released = Released(
        unpack_symmetric(release.values), release.deviation, parameters, shape, coarse
    )
    separated = separate_release(released, np.random.default_rng(parameters.seed))
    directions, networks = separated.directions, separated.networks
    if networks is None:
        return _nothing(directions, parameters, shape)
    maps = fine(networks.weights) - coarse(networks.weights).mean(axis=0)
    errors = networks.errors(fine, coarse)
    found = _findings(networks, separated.significant, parameters.least)
    numbers = _numbers(directions, parameters, shape)
    told = [each.state == "found" for each in found]
    return Result(
        {
            "maps": maps,
            "errors": errors,
            "weights": networks.weights,
            "expected": networks.expected,
            "eigenvalues": directions.eigenvalues,
        },
        numbers | {"found": sum(told)},
        images=_images(maps, errors, found, shape.places is not None and fine is not coarse),
        tables={"components": _table(found, parameters.least, float(numbers["resolved"]))},
        captions=Captions(headline=_headline(sum(told), len(told)), found=any(told), sign=True),
    )


def _paints(parameters: GroupIcaParameters, shape: Shape) -> tuple[Paint, Paint]:
    """From weights to the analysed voxels, and to those of the maps."""
    cutoff = cutoff_planned(parameters, shape)
    if not cutoff or shape.places is None:
        return _as_they_are, _as_they_are
    basis = smooth_basis(shape.places, cutoff)
    coarse: Paint = partial(np.matmul, basis.matrix)
    if shape.places.fine is None:
        return coarse, coarse
    return coarse, partial(basis.evaluate, coordinates=shape.places.fine)


def _as_they_are(weights: Array) -> Array:
    return weights


def _findings(
    networks: Networks, significant: NDArray[np.bool_], least: float
) -> tuple[Finding, ...]:
    """Expected correlation of each component, with the range over the replays.

    One is found if it is expected to agree with the truth, and is further from Gaussian than
    what ICA makes of smooth noise: it would find that again and again, too. Of one that is not
    found no number is told, since there the replays' is too large.
    """
    low, high = np.quantile(networks.correlations, (_LOW, _HIGH), axis=0)
    return tuple(
        Finding(float(e), float(a), float(b), "found" if e >= least and c else "not told")
        for e, a, b, c in zip(networks.expected, low, high, significant, strict=True)
    )


def _images(
    maps: Array, errors: Array, found: tuple[Finding, ...], fine: bool
) -> dict[str, ImageSet]:
    labels = tuple(f"component {number}" for number in range(1, maps.shape[1] + 1))
    told = tuple(each.state == "found" for each in found)
    scores = np.divide(maps, errors, out=np.zeros_like(maps), where=errors > 0)
    return {
        "components": ImageSet(
            maps,
            "Map of a network, in standard deviations over the brain; coloured from "
            f"{DRAWN:g} on where it is also {SURE:g} standard errors from zero.",
            labels,
            suffix="components",
            fine=fine,
            found=told,
            accuracy=found,
            threshold=np.maximum(DRAWN, SURE * errors),
        ),
        "z": ImageSet(
            scores,
            "Map of a network over the standard error that noise leaves in each voxel.",
            labels,
            entities={"stat": "z"},
            units="z",
            fine=fine,
            found=told,
            accuracy=found,
            drawn=False,
            threshold=SURE,
        ),
        "errors": ImageSet(
            errors,
            "Standard error of each voxel of the components' maps.",
            labels,
            entities={"stat": "stderr"},
            fine=fine,
            found=told,
            drawn=False,
        ),
    }


def _table(found: tuple[Finding, ...], least: float, resolved: float) -> Table:
    rows = [
        (number, each, _in_full(each, resolved), "found" if each.told else "not found")
        for number, each in enumerate(found, start=1)
    ]
    return Table(
        "How well each component is expected to agree with what there would be without noise, at "
        f"the basis's resolution; one below {least:g}, or that smooth noise might make, is not "
        "found, and its number not told. In full: with finer details than the basis has, if the "
        f"network is of usual size, {resolved:.2f} times as well.",
        ("component", "expected correlation", "in full", "state"),
        tuple(rows),
    )


def _in_full(finding: Finding, resolved: float) -> Finding:
    """Agreement with the truth itself, of which the basis shows a part."""
    return replace(
        finding,
        value=resolved * finding.value,
        low=resolved * finding.low,
        high=resolved * finding.high,
    )


def _numbers(
    directions: Directions, parameters: GroupIcaParameters, shape: Shape
) -> dict[str, float | int | str]:
    size = len(directions.eigenvalues)
    return {
        "dimensions": size,
        "cutoff": cutoff_planned(parameters, shape),
        "resolved": resolved(cutoff_planned(parameters, shape)),
        "chance": parameters.kept / size,
        "noise_edge": directions.law.edge,
        "limit": directions.limit,
        "seen": directions.seen,
        "least": parameters.least,
    }


def _headline(found: int, seen: int) -> str:
    if not found:
        return "No network was found: nothing stands far enough out of the noise."
    return (
        f"{count(found, 'network')} found; of {count(seen, 'component')} that could be told from "
        "noise at all, the others are too uncertain to be shown."
        if found < seen
        else f"{count(found, 'network')} found."
    )


def _nothing(directions: Directions, parameters: GroupIcaParameters, shape: Shape) -> Result:
    """The result of a release in which nothing stands out of the noise."""
    places = shape.places
    rows = shape.features if places is None or places.fine is None else len(places.fine)
    none = np.zeros((rows, 0))
    return Result(
        {
            "maps": none,
            "errors": none,
            "weights": np.zeros((len(directions.vectors), 0)),
            "expected": np.zeros(0),
            "eigenvalues": directions.eigenvalues,
        },
        _numbers(directions, parameters, shape) | {"found": 0},
        captions=Captions(headline=_headline(0, 0), found=False, sign=True),
    )
