"""What networks by templates release, at which resolution, and with which shares."""

import math
from functools import partial

import numpy as np

from consortium.algorithms.base import Argument, Array, PlannedRelease, Shape, Templates
from consortium.algorithms.subspace import finest_cutoff, smooth_basis
from consortium.algorithms.template_networks.kernels.template_shrinkage import Agreement
from consortium.algorithms.template_networks.parameters import TemplateNetworksParameters
from consortium.algorithms.template_networks.site import in_basis
from consortium.errors import StudyError
from consortium.kernels.projector_forecast import Room
from consortium.privacy.bounds import Bound

STRENGTH = 0.5
"""Assumed norm of the mean over persons of one network's maps, each of norm one."""
AGREEMENT = 0.7
"""Assumed correlation of a template with the group's map."""
_MOST_DIMENSIONS = 3000
_ROOM = 3  # dimensions beside the templates, without which nothing can be shrunk
_COARSEST = 120.0  # mm
_STEP = 0.5  # mm, so that no rounding makes two parties plan differently
_LEAST_SINGULAR = 0.05  # of templates of norm one: with less, one is nearly made of the others
_LEAST_KEPT = 0.1  # of a template's norm, in the basis
_LEAST_SHARE, _MOST_SHARE = 0.05, 0.25  # of the budget, for connectivity
_MARGIN = 1.1  # of the noise: a resolution at which a usual map is only just told is not chosen
_GOAL = 0.05  # standard error of a connection by noise that would do


def templates_of(shape: Shape) -> Templates:
    """The study's templates.

    Raises
    ------
    StudyError
        If they are not there.
    """
    if shape.templates is None:
        raise StudyError("field 'analysis.templates': the maps can't be had; name their file.")
    return shape.templates


def plan_releases(
    parameters: TemplateNetworksParameters, shape: Shape
) -> tuple[PlannedRelease, ...]:
    """Maps, and connectivity if it is asked for.

    Raises
    ------
    StudyError
        If the unit is not a person, or templates, basis and data don't fit.
    """
    if shape.unit != "subject":
        raise StudyError(
            "field 'privacy.unit': template_networks takes each participant's maps as a whole; "
            "set unit: subject."
        )
    maps = basis_templates(parameters, shape)
    _check_templates(maps, shape)
    count, share = maps.shape[1], connectivity_share(parameters, shape)

    share_out = partial(_release, map_arguments(parameters, shape))
    planned = [share_out("maps", "template_maps", maps.size, map_bound(shape), 1.0 - share)]
    if share:
        entries, bound = count * (count - 1) // 2, connectivity_bound(parameters, shape)
        planned.append(share_out("connectivity", "template_connectivity", entries, bound, share))
    return tuple(planned)


def _release(
    arguments: dict[str, Argument],
    stage: str,
    statistic: str,
    entries: int,
    bound: Bound,
    share: float,
) -> PlannedRelease:
    return PlannedRelease(stage, statistic, entries, bound, 1, share, fixed=arguments)


def map_arguments(parameters: TemplateNetworksParameters, shape: Shape) -> dict[str, Argument]:
    """What each question says, all of it decided by study and sizes."""
    return {
        "cutoff": map_cutoff(parameters, shape),
        "global_signal": parameters.global_signal,
    }


def map_bound(shape: Shape) -> Bound:
    """√R, of all maps together."""
    return Bound(math.sqrt(templates_of(shape).count))


def connectivity_bound(parameters: TemplateNetworksParameters, shape: Shape) -> Bound:
    """Of all Fisher values together."""
    count = templates_of(shape).count
    return Bound(parameters.connectivity_bound * math.sqrt(count * (count - 1) / 2.0))


def connectivity_share(parameters: TemplateNetworksParameters, shape: Shape) -> float:
    """Part of the budget for connectivity: what makes its noise small, within limits."""
    if not parameters.connectivity or templates_of(shape).count < 2:
        return 0.0
    whole = shape.noise * connectivity_bound(parameters, shape).spread / sum(shape.units)
    return round(min(max((whole / _GOAL) ** 2, _LEAST_SHARE), _MOST_SHARE), 2)


def map_deviation(parameters: TemplateNetworksParameters, shape: Shape) -> float:
    """τ, standard deviation of the noise in each number of the released maps."""
    share = 1.0 - connectivity_share(parameters, shape)
    return shape.noise * map_bound(shape).spread / sum(shape.units) / math.sqrt(share)


def basis_templates(parameters: TemplateNetworksParameters, shape: Shape) -> Array:
    """Templates in the basis, d x R, each of norm one.

    Raises
    ------
    StudyError
        If the basis shows nothing of one.
    """
    templates, cutoff = templates_of(shape), map_cutoff(parameters, shape)
    maps = in_basis(templates, shape.places, cutoff)
    if cutoff and shape.places is not None:
        whole = np.linalg.norm(templates.values, axis=0)
        kept = np.linalg.norm(
            smooth_basis(shape.places, cutoff).matrix.T @ templates.values, axis=0
        )
        lost = np.flatnonzero(kept < _LEAST_KEPT * whole)
        if len(lost):
            raise StudyError(
                f"field 'analysis.cutoff': waves longer than {cutoff:g} mm show nothing of "
                f"template {lost[0] + 1}; take a shorter cutoff, or leave the template out."
            )
    return maps


def map_cutoff(parameters: TemplateNetworksParameters, shape: Shape) -> float:
    """Shortest wavelength in mm, on a step of half a millimetre; 0 for regions.

    Raises
    ------
    StudyError
        If the study asks for finer waves than its voxels or mesh can hold.
    """
    if shape.places is None:
        return 0.0
    finest = finest_cutoff(shape.places, parameters.cutoff)
    if parameters.cutoff is not None:
        return parameters.cutoff
    count, room = templates_of(shape).count, shape.places.room
    finest = max(finest, room.cutoff(0.85 * _MOST_DIMENSIONS))
    coarsest = max(finest, min(_COARSEST, room.cutoff(2.0 * count + _ROOM)))
    steps = _STEP * np.arange(math.ceil(finest / _STEP), math.ceil(coarsest / _STEP) + 1)
    deviation = map_deviation(parameters, shape)
    scores = [_score(float(cutoff), count, room, deviation) for cutoff in steps[::-1]]
    return float(steps[::-1][int(np.argmax(np.round(scores, 9)))])  # the coarsest of equals


def agreement_of(size: int, count: int, deviation: float) -> Agreement:
    """The usual map, in a basis of d maps."""
    return Agreement(max(size - count, _ROOM), deviation, STRENGTH, AGREEMENT)


def _score(cutoff: float, count: int, room: Room, deviation: float) -> float:
    """Part of a usual map that comes out: within the basis, and beyond it by the template."""
    within = room.resolved(cutoff) ** 2
    size = round(room.size(cutoff))
    captured = agreement_of(size, count, _MARGIN * deviation).captured
    return within * captured + (1.0 - within) * AGREEMENT**2


def _check_templates(maps: Array, shape: Shape) -> None:
    """Raise StudyError if persons' maps can't be had by them."""
    size, count = maps.shape
    if size > _MOST_DIMENSIONS:
        raise StudyError(
            f"field 'analysis.cutoff': {size} dimensions are more than {_MOST_DIMENSIONS}; take a "
            "longer cutoff."
        )
    if size < count + _ROOM:
        raise StudyError(
            f"field 'analysis.templates': {count} templates in a basis of {size} maps leave "
            "nothing to tell; take fewer, or a shorter cutoff."
        )
    volumes = shape.mean_length
    if 1 < volumes <= count:  # sizes are not known yet where it is 1
        raise StudyError(
            f"field 'analysis.templates': {count} templates are as many as the {volumes:.0f} "
            "volumes of a participant, or more; take fewer, or longer scans."
        )
    _, singular, directions = np.linalg.svd(maps, full_matrices=False)
    if singular[-1] < _LEAST_SINGULAR:
        alike = np.sort(np.argsort(np.abs(directions[-1]))[-2:]) + 1
        raise StudyError(
            f"field 'analysis.templates': templates depend on each other in this basis, {alike[0]} "
            f"and {alike[1]} most of all; leave one of them out."
        )
