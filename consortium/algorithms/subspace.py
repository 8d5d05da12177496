"""What group ICA releases, and at which resolution."""

from __future__ import annotations

import math

import numpy as np

from consortium.algorithms.base import Argument, PlannedRelease, Shape
from consortium.algorithms.group_ica.parameters import BasisKind, GroupIcaParameters
from consortium.algorithms.group_ica.site import smooth_basis
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.kernels.projector_forecast import best_cutoff, cutoff_of
from consortium.privacy.bounds import Bound

_MOST_ROWS = 1500  # a million numbers, and seconds for a replay
_ROOM = 5  # dimensions for each of K directions: with fewer, anybody's directions are alike
_FINEST = 2.5  # voxel edges: with a shorter cut-off the blobs are as many as the voxels
_STEP = 0.5  # mm, so that no rounding makes two parties plan differently


def bound_of(parameters: GroupIcaParameters) -> Bound:
    """√K, of positive semidefinite matrices."""
    return Bound(math.sqrt(parameters.kept), cone=True)


def basis_of(parameters: GroupIcaParameters, shape: Shape) -> BasisKind:
    """Which basis a study has.

    Raises
    ------
    StudyError
        If it can't be had from the study's features.
    """
    if parameters.basis == "smooth" and shape.places is None:
        raise StudyError(
            "field 'analysis.basis': smooth is for voxels, and the study's data.atlas has "
            "regions; choose atlas, or leave data.atlas out."
        )
    if parameters.basis == "atlas" and shape.places is not None:
        raise StudyError("field 'analysis.basis': atlas needs data.atlas; name one.")
    return parameters.basis or ("smooth" if shape.places is not None else "atlas")


def plan_release(parameters: GroupIcaParameters, shape: Shape) -> PlannedRelease:
    """The one release, with the whole budget.

    Raises
    ------
    StudyError
        If the unit is not a person, or the basis doesn't fit the data.
    """
    if shape.unit != "subject":
        raise StudyError(
            "field 'privacy.unit': group_ica takes each person's directions as a whole; set unit: "
            "subject."
        )
    if 1 < shape.mean_length <= parameters.kept:  # sizes are not known yet where it is 1
        raise StudyError(
            f"field 'analysis.directions': {parameters.kept} directions can't be told from persons "
            f"with {shape.mean_length:.0f} volumes; ask for fewer, or for longer series."
        )
    size = basis_size(parameters, shape)
    if parameters.kept >= size:
        raise StudyError(
            f"field 'analysis.directions': {parameters.kept} directions in a basis of {size} maps "
            "say nothing; ask for fewer, or for a finer basis."
        )
    if size > _MOST_ROWS:
        raise StudyError(
            f"field 'analysis.basis': {size} maps are more than {_MOST_ROWS}; choose a longer "
            "cutoff, or basis smooth."
        )
    return PlannedRelease(
        stage="networks",
        statistic="projectors",
        entries=packed_size(size),
        bound=bound_of(parameters),
        rounds=1,
        share=1.0,
        fixed=arguments_of(parameters, shape),
    )


def arguments_of(parameters: GroupIcaParameters, shape: Shape) -> dict[str, Argument]:
    """What sites are to compute with, all of it decided by study and sizes."""
    return {
        "directions": parameters.kept,
        "cutoff": cutoff_planned(parameters, shape),
        "global_signal": parameters.global_signal,
    }


def basis_size(parameters: GroupIcaParameters, shape: Shape) -> int:
    """d, dimensions of the basis."""
    cutoff = cutoff_planned(parameters, shape)
    if not cutoff or shape.places is None:
        return shape.features
    return smooth_basis(shape.places, cutoff).size


def cutoff_planned(parameters: GroupIcaParameters, shape: Shape) -> float:
    """Shortest wavelength in mm, on a step of half a millimetre; 0 for regions and voxels.

    Raises
    ------
    StudyError
        If the study asks for finer waves than its voxels can hold.
    """
    if basis_of(parameters, shape) != "smooth" or shape.places is None:
        return 0.0
    finest = _FINEST * shape.places.volume ** (1.0 / 3.0)
    if parameters.cutoff is not None:
        if parameters.cutoff < finest:
            raise StudyError(
                f"field 'analysis.cutoff': {parameters.cutoff:g} mm is too short for voxels of "
                f"this size; take {finest:.3g} mm or more, or a finer data.resolution."
            )
        return parameters.cutoff
    volume = shape.places.volume * shape.features
    finest = max(finest, cutoff_of(0.85 * _MOST_ROWS, volume))
    coarsest = max(finest, cutoff_of(_ROOM * parameters.kept, volume))
    steps = np.arange(math.ceil(finest / _STEP), math.ceil(coarsest / _STEP) + 1)
    return best_cutoff(_STEP * steps, volume, parameters.kept, deviation_of(parameters, shape))


def deviation_of(parameters: GroupIcaParameters, shape: Shape) -> float:
    """τ, standard deviation of the noise in each released number."""
    return shape.noise * bound_of(parameters).spread / sum(shape.units)
