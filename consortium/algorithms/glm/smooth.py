"""Smooth basis of a study of images, and the correlation of its voxels or vertices.

Every party computes it from the study and its voxels. A basis does not change the sensitivity: a
participant's coefficients are clipped after all other operations.
"""

import math
from functools import lru_cache

import numpy as np

from consortium.algorithms.base import AnyPlaces, Shape, SurfacePlaces
from consortium.algorithms.glm.kernels.outcome_correlation import (
    BasisCorrelation,
    OutcomeCorrelation,
    SmoothCorrelation,
)
from consortium.algorithms.glm.kernels.surface_correlation import SurfaceCorrelation
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.base.formatting import count
from consortium.errors import StudyError
from consortium.kernels.smooth_basis import SmoothBasis

WAVES = (1.25, 1.5, 1.75, 2.0, 2.5)
"""Candidates of a plan for the cut-off, relative to the images' smoothness."""
_MOST_VOXELS = 10_000
_MOST_MAPS = 1_000
_LONGEST = 1e4  # mm
_FEWEST_MODES = 2  # for each hemisphere


@lru_cache(maxsize=8)  # public, and used by plan, site and centre
def smoothly_alike(places: AnyPlaces, smoothness: float, cutoff: float) -> BasisCorrelation:
    """Return the correlation of a study's voxels or vertices, cached by their object.

    Raises StudyError if the basis would be too large to compute.
    """
    if isinstance(places, SurfacePlaces):
        return _along_surfaces(places, smoothness, cutoff)
    coordinates = places.coordinates
    if len(coordinates) > _MOST_VOXELS:
        raise StudyError(
            f"field 'analysis.basis': smooth requires at most {_MOST_VOXELS:,} voxels, got "
            f"{len(coordinates):,}. Set a coarser data.resolution."
        )
    finest = places.finest
    if not finest <= cutoff <= _LONGEST:
        raise StudyError(
            f"field 'analysis.cutoff': must be {finest:.3g} mm or longer for voxels of this size, "
            f"got {cutoff:.3g} mm. Set a longer cutoff, or a finer data.resolution."
        )
    maps = SmoothBasis(coordinates, cutoff).size
    if maps > _MOST_MAPS:
        enough = math.ceil(cutoff * math.cbrt(maps / _MOST_MAPS))
        raise StudyError(
            f"field 'analysis.cutoff': must give at most {_MOST_MAPS:,} smooth maps, and waves of "
            f"{cutoff:.3g} mm give {maps:,}. Set a cutoff of about {enough} mm or longer."
        )
    return SmoothCorrelation(coordinates, smoothness, cutoff)


def _along_surfaces(places: SurfacePlaces, smoothness: float, cutoff: float) -> SurfaceCorrelation:
    finest = places.finest
    if not finest <= cutoff <= _LONGEST:
        raise StudyError(
            f"field 'analysis.cutoff': must be {math.ceil(10 * finest) / 10:g} mm or longer for "
            f"the mesh's {_MOST_MAPS:,} maps, got {cutoff:.3g} mm. Set a longer cutoff."
        )
    if min(side.below(cutoff) for side in places.modes) < _FEWEST_MODES:
        raise StudyError(
            f"field 'analysis.cutoff': must be shorter than a hemisphere, got {cutoff:.3g} mm. "
            "Set a shorter cutoff."
        )
    return SurfaceCorrelation(places.modes, smoothness, cutoff)


def smooth_places(parameters: GlmParameters, shape: Shape) -> AnyPlaces:
    """Return voxels or vertices of the only view that is analysed in a smooth basis."""
    named = parameters.outcome_views
    surfaces = [shape.surface_places[name] for name in named if name in shape.surface_places]
    if len(surfaces) == len(named) == 1:
        return surfaces[0]
    views = [view for view in parameters.views if view.name in named]
    images = all(view.is_image and view.maps_file is None for view in views)
    rows = [dict(shape.views).get(name) for name in named]
    places = shape.image_places
    if not images or places is None or rows != [len(places.coordinates)]:
        raise StudyError(
            "field 'analysis.basis': smooth requires one view of images that has a number for "
            "every voxel, or of surfaces. Name such a view in 'outcomes', and remove data.atlas."
        )
    return places


def cutoffs_of(parameters: GlmParameters, places: AnyPlaces) -> tuple[float, ...]:
    """Return the cut-offs in mm from which a plan may choose, the finest first.

    Those with too many maps to compute are excluded, unless none would remain.
    """
    assert parameters.smoothness is not None  # noqa: S101 - the parameters are read with it
    if parameters.cutoff is not None:
        return (parameters.cutoff,)
    finest = places.finest
    cutoffs = sorted({max(wave * parameters.smoothness, finest) for wave in WAVES})
    return tuple(each for each in cutoffs if _maps(places, each) <= _MOST_MAPS) or (cutoffs[-1],)


@lru_cache(maxsize=32)
def _maps(places: AnyPlaces, cutoff: float) -> int:
    """Return the number of maps in a basis, without computing them."""
    if isinstance(places, SurfacePlaces):
        return sum(side.below(cutoff) for side in places.modes)
    return SmoothBasis(places.coordinates, cutoff).size


def basis_sentences(basis: OutcomeCorrelation) -> tuple[str, ...]:
    """Return a sentence on details that maps of smooth images do not show, if any."""
    if not isinstance(basis, BasisCorrelation):
        return ()
    sentence = (
        f"The maps are computed from {count(basis.released, 'number')}: details finer than "
        f"about {basis.cutoff / 2:.0f} mm are smoothed away, which is "
        f"{100 * (1 - basis.resolved):.0f} % of the variance of images of the stated "
        f"smoothness. A difference that is {np.sqrt(2) * basis.smoothness:.0f} mm wide (full "
        f"width at half maximum) keeps {100 * basis.kept:.0f} % of its height, and a narrower "
        "one less. Intervals are for the smoothed difference."
    )
    return (sentence,)
