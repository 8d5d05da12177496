"""What an ICA will release: the PCA's, equal rounds, and maps if they are asked for."""

import math
from dataclasses import replace

from consortium.algorithms.base import MOST_ENTRIES, Form, PlannedRelease, Shape
from consortium.algorithms.ica.kernels import infomax
from consortium.algorithms.ica.parameters import IcaParameters, Optimizer
from consortium.algorithms.pca.parameters import PcaParameters
from consortium.algorithms.pca.plan import DEFAULT_BOUND
from consortium.algorithms.pca.plan import plan_releases as plan_pca
from consortium.errors import StudyError
from consortium.privacy.bounds import Bound, Unit

_ROUNDS: dict[Optimizer, dict[Unit, int]] = {
    "rotation": {"subject": 20, "timepoint": 30},
    "fixed-point": {"subject": 8, "timepoint": 8},
    "gradient": {"subject": 150, "timepoint": 150},
}


def plan_releases(parameters: IcaParameters, shape: Shape) -> tuple[PlannedRelease, ...]:
    """PCA's, ``rounds`` equal ones, and one of maps if they are asked for."""
    _check(parameters, shape)
    maps = (plan_maps(parameters, shape),) if parameters.maps else ()
    left = 1.0 - (parameters.maps_share if parameters.maps else 0.0)
    size, share = parameters.components, parameters.pca_share
    gradient = parameters.optimizer == "gradient"
    whitening = plan_pca(pca_parameters(parameters, shape), left_for_pca(parameters, shape))
    entries = {
        "rotation": size * (size - 1) // 2,
        "fixed-point": size * size,
        "gradient": size * (size + 1),
    }[parameters.optimizer]
    statistic = {"rotation": "rotation", "fixed-point": "fixed_point", "gradient": "infomax"}
    return (
        *(replace(each, share=left * share * each.share) for each in whitening),
        PlannedRelease(
            "ica",
            statistic[parameters.optimizer],
            entries,
            Bound(parameters.bound or _default_bound(parameters, shape)),
            planned_rounds(parameters, shape),
            left * (1.0 - share),
            _carried(parameters, shape),
            fixed={} if gradient else {"score": chosen_score(parameters, shape)},
        ),
        *maps,
    )


def plan_maps(parameters: IcaParameters, shape: Shape) -> PlannedRelease:
    """One release of V x R numbers.

    Raises
    ------
    StudyError
        If the message would be too large.
    """
    size, entries = parameters.components, shape.map_rows * parameters.components
    if entries > MOST_ENTRIES:
        raise StudyError(
            f"field 'data.maps_resolution': {size} maps of {shape.map_rows} voxels are more than "
            f"{MOST_ENTRIES:,} numbers; choose coarser maps or fewer components."
        )
    bound = Bound(parameters.maps_bound or _default_maps_bound(size, shape))
    forms = {"unmixing": (size, size), "whitening": (shape.features, size)}
    return PlannedRelease("maps", "maps", entries, bound, 1, parameters.maps_share, forms)


def pca_parameters(parameters: IcaParameters, shape: Shape) -> PcaParameters:
    """Parameters of the PCA before it, which looks for smooth directions where it can."""
    persons = shape.unit == "subject"
    smooth = persons and shape.places is not None
    return PcaParameters(
        components=parameters.components,
        bound=parameters.pca_bound or (DEFAULT_BOUND["subject"] if persons else None),
        solver=parameters.pca_solver or ("subspace" if smooth else None),
        iterations=parameters.pca_iterations,
    )


def left_for_pca(parameters: IcaParameters, shape: Shape) -> Shape:
    """The data as PCA sees them: with the noise that its part of the budget leaves it."""
    share = parameters.pca_share * (1.0 - (parameters.maps_share if parameters.maps else 0.0))
    return replace(shape, noise=shape.noise / math.sqrt(share))


def planned_rounds(parameters: IcaParameters, shape: Shape) -> int:
    """Rounds of the optimizer."""
    return parameters.rounds or _ROUNDS[parameters.optimizer][shape.unit]


def chosen_score(parameters: IcaParameters, shape: Shape) -> infomax.Score:
    """The study's score, or what fits the unit."""
    return parameters.score or ("volatility" if shape.unit == "subject" else "tanh")


def _carried(parameters: IcaParameters, shape: Shape) -> dict[str, Form]:
    size = parameters.components
    forms: dict[str, Form] = {"unmixing": (size, size), "whitening": (shape.features, size)}
    return forms | ({"bias": (size,)} if parameters.optimizer == "gradient" else {})


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
    length = shape.mean_length
    if parameters.optimizer == "gradient":
        # At rest E[ŷzᵀ] = −I, whose trace R no mean of terms of norm R or less can reach: with
        # a smaller bound a volume's clip makes W grow for ever.
        return 1.5 * size if shape.unit == "timepoint" else 0.5 * math.sqrt(size) + 1.0
    if shape.unit == "timepoint":
        return 0.15 * size
    factor = {"tanh": 0.28, "volatility": 0.5}[chosen_score(parameters, shape)]
    rotation = max(factor * size / math.sqrt(length), 0.1)
    return rotation if parameters.optimizer == "rotation" else rotation + 0.3 * math.sqrt(size)


def _default_maps_bound(components: int, shape: Shape) -> float:
    """About the largest usual norm, from public sizes, for volumes of mean squared norm 1.

    White courses take up a share of the variance, which is at most 1 and 0.3 in noisy voxels;
    by chance T volumes give each of R courses a 1/T more.
    """
    if shape.unit == "timepoint":
        return math.sqrt(components)
    length = shape.mean_length
    return min(1.0, math.sqrt(0.3 + components / length))
