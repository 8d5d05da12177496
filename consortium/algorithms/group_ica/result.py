"""Networks, their accuracy and their maps, out of the one release of group ICA."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import Captions, Release, Result, Shape, Table
from consortium.algorithms.findings import DRAWN, SURE, Finding, ImageSet
from consortium.algorithms.group_ica.kernels.agreement import REACH, expected_range
from consortium.algorithms.group_ica.separation import GroupRelease, Separated, separate_release
from consortium.algorithms.worth import worth_sentence
from consortium.base.array import Array
from consortium.base.formatting import count
from consortium.kernels.component_bootstrap import Networks, NoisyDirections
from consortium.kernels.moments import unpack_symmetric
from consortium.kernels.release_worth import worth_of_projectors
from consortium.kernels.separations import Paint
from consortium.kernels.surface_basis import SurfaceBasis

if TYPE_CHECKING:
    from consortium.algorithms.group_ica.centre import GroupIca

YARDSTICK = (
    "In mean correlation with 20 networks of other participants, 20 random smooth maps score "
    "0.47, and one hospital of 15, 88 or 150 participants by itself reaches 0.79, 0.84 or 0.87 "
    "without noise (published series of 200 regions)."
)
"""Measured by `python -m benchmarks.networks yardstick`."""
_LOW = 0.05
_HIGH = 0.95
_STANDS_OUT = "out of the noise"
_SMOOTH = "that participants with a smooth covariance and no network might make"


def make_result(release: Release, plan: GroupIca, reach: float = REACH) -> Result:
    """Make the result of group ICA from its release, deterministic for the study's seed.

    Parameters
    ----------
    reach : float
        Half the range of an expected correlation, as Fisher's z.

    Returns
    -------
    Result
        ``maps`` (D x R, or V x R at full resolution: variance 1 over the study's voxels, the
        surest first), ``errors`` (the same shape), ``weights`` (d x R), ``expected`` (R) and
        ``eigenvalues`` (d).
    """
    released = group_release(release, plan)
    separated = separate_release(released, np.random.default_rng(plan.parameters.seed))
    if separated.networks is None:
        return _nothing(separated.directions, plan)
    return assemble(separated, released, reach)


def group_release(release: Release, plan: GroupIca) -> GroupRelease:
    """Return a release with its plan and the estimated numbers of participants."""
    coarse, _ = _paints(plan)
    return GroupRelease(
        unpack_symmetric(release.values),
        release.deviation,
        plan,
        coarse,
        plan.estimated_shape(release),
    )


def assemble(separated: Separated, released: GroupRelease, reach: float) -> Result:
    """Make the result of separated networks, as `make_result`.

    Parameters
    ----------
    separated : Separated
        With networks.
    released : GroupRelease
        The release that states the noise.
    """
    plan = released.plan
    directions = separated.directions
    networks = separated.networks
    assert networks is not None  # noqa: S101 - for the type checker
    coarse, fine = _paints(plan)
    maps = fine(networks.weights) - coarse(networks.weights).mean(axis=0)
    errors = networks.errors(fine, coarse)
    expected = separated.expected
    found = _findings(networks, separated, plan, reach)
    in_full = tuple(_in_full(each, plan.resolved, reach) for each in found)
    reported = [each.reported for each in found]
    worth = _worth(directions, released.deviation, released.shape)
    placed = released.places is not None
    return Result(
        {
            "maps": maps,
            "errors": errors,
            "weights": networks.weights,
            "expected": expected,
            "eigenvalues": directions.eigenvalues,
        },
        _numbers(directions, plan)
        | ({"found": sum(reported)} if placed else {"found": 0, "stand_out": sum(reported)}),
        images=_images(maps, errors, in_full, plan.shape, fine is not coarse),
        tables={"components": _table(found, in_full, placed, plan.asked.least, worth)},
        captions=Captions(
            headline=_headline(sum(reported), len(reported), placed), found=any(reported), sign=True
        ),
    )


def _paints(plan: GroupIca) -> tuple[Paint, Paint]:
    """Return functions from weights to the analysed voxels, and to those of the maps."""
    waves = plan.waves
    places = plan.shape.places
    if waves is None or places is None:
        return _as_they_are, _as_they_are
    coarse: Paint = waves.times
    if places.fine is None or isinstance(waves, SurfaceBasis):
        return coarse, coarse
    return coarse, waves.painter(places.fine)


def _as_they_are(weights: Array) -> Array:
    return weights


def _findings(
    networks: Networks, separated: Separated, plan: GroupIca, reach: float
) -> tuple[Finding, ...]:
    """Return the expected correlation of each component at the basis's resolution, with its range.

    The number of a component that is not found is withheld.
    """
    low, high = _ends(networks, separated.expected, plan, reach)
    return tuple(
        Finding(float(e), float(a), float(b), "found" if sure else "withheld")
        for e, a, b, sure in zip(separated.expected, low, high, separated.found, strict=True)
    )


def _ends(networks: Networks, expected: Array, plan: GroupIca, reach: float) -> tuple[Array, Array]:
    if plan.parameters.separation == "fastica":
        low, high = np.quantile(networks.correlations, (_LOW, _HIGH), axis=0)
        return low, high
    return expected_range(expected, reach)


def _images(
    maps: Array, errors: Array, found: tuple[Finding, ...], shape: Shape, fine: bool
) -> dict[str, ImageSet]:
    labels = tuple(f"component {number}" for number in range(1, maps.shape[1] + 1))
    shown = tuple(each.state == "found" for each in found)
    scores = np.divide(maps, errors, out=np.zeros_like(maps), where=errors > 0)
    word = shape.places.word if shape.places is not None else "voxel"
    image = partial(ImageSet, labels=labels, fine=fine, found=shown, units="SD")
    return {
        "components": image(
            maps,
            "Map of a network, in standard deviations over the brain; coloured from "
            f"{DRAWN:g} on where it is also {SURE:g} standard errors from zero.",
            suffix="components",
            accuracy=found,
            threshold=np.maximum(DRAWN, SURE * errors),
        ),
        "z": image(
            scores,
            f"Map of a network over the standard error that noise leaves in each {word}.",
            entities={"stat": "z"},
            units="z",
            accuracy=found,
            drawn=False,
            threshold=SURE,
        ),
        "errors": image(
            errors,
            f"Standard error of each {word} of the components' maps.",
            entities={"stat": "stderr"},
            drawn=False,
        ),
    }


def _table(
    found: tuple[Finding, ...], in_full: tuple[Finding, ...], placed: bool, least: float, worth: str
) -> Table:
    word = "found" if placed else _STANDS_OUT
    rows = [
        (number, each, whole, word if each.reported else f"not {word}")
        for number, (each, whole) in enumerate(zip(found, in_full, strict=True), start=1)
    ]
    null = _SMOOTH if placed else "that noise and participants with nothing in common might make"
    return Table(
        "Expected correlation of each component with the true network of the population, at the "
        f"basis's resolution. One with less than {least:g}, or {null}, is not {word}, and its "
        "number is withheld. In full: the correlation with maps that have all details, if the "
        f"network is of usual size. {YARDSTICK} {worth}".rstrip(),
        ("component", "expected correlation", "in full", "state"),
        tuple(rows),
    )


def _worth(directions: NoisyDirections, deviation: float, shape: Shape) -> str:
    """Return the worth of the release, by its own eigenvalues without the noise's part."""
    strengths = directions.strengths + directions.bulk
    size = len(directions.eigenvalues)
    worth = worth_of_projectors(strengths, size, deviation, sum(shape.units))
    return worth_sentence(worth, "the strengths that were found, where the plan took usual ones")


def _in_full(finding: Finding, resolved: float, reach: float) -> Finding:
    """Return the agreement with the truth at full resolution."""
    if resolved == 1.0 or not finding.reported:
        return finding
    value = resolved * finding.value
    (low,), (high,) = expected_range(np.array([value]), reach)
    return replace(finding, value=value, low=float(low), high=float(high))


def _numbers(directions: NoisyDirections, plan: GroupIca) -> dict[str, float | int | str]:
    size = len(directions.eigenvalues)
    return {
        "dimensions": size,
        "cutoff": plan.cutoff,
        "resolved": plan.resolved,
        "chance": plan.asked.kept / size,
        "noise_edge": directions.law.edge,
        "limit": directions.limit,
        "seen": directions.seen,
        "least": plan.asked.least,
    }


def _headline(found: int, seen: int, placed: bool = True) -> str:
    if not placed and found:
        return (
            f"{count(found, 'component')} stand{'s' if found == 1 else ''} out of the noise; "
            "without the places of regions it can't be said whether they are networks."
        )
    if not found:
        return "No network was found: nothing stands far enough out of the noise."
    return (
        f"{count(found, 'network')} found; {seen - found} of {count(seen, 'component')} "
        f"{'is' if seen - found == 1 else 'are'} too uncertain to be shown, or no stronger "
        "than in smooth data without networks."
        if found < seen
        else f"{count(found, 'network')} found."
    )


def _nothing(directions: NoisyDirections, plan: GroupIca) -> Result:
    """Return the result of a release in which nothing exceeds the noise."""
    places = plan.shape.places
    rows = plan.shape.features if places is None or places.fine is None else len(places.fine)
    none = np.zeros((rows, 0))
    return Result(
        {
            "maps": none,
            "errors": none,
            "weights": np.zeros((len(directions.vectors), 0)),
            "expected": np.zeros(0),
            "eigenvalues": directions.eigenvalues,
        },
        _numbers(directions, plan) | {"found": 0},
        captions=Captions(headline=_headline(0, 0), found=False, sign=True),
    )
