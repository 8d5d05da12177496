"""How well the directions that persons share are expected to see, from public numbers alone."""

from dataclasses import dataclass, replace

import numpy as np

from consortium.algorithms.base import Array, Expectation, Shape
from consortium.algorithms.enough import would_be_enough
from consortium.algorithms.subspace import (
    Wanted,
    basis_size,
    cutoff_planned,
    deviation_of,
    resolved,
)
from consortium.algorithms.worth import POOLED, worth_sentence
from consortium.base.formatting import count, number
from consortium.errors import StudyError
from consortium.kernels.noise_law import SymmetricNoise
from consortium.kernels.projector_forecast import STRENGTHS, expected_cosines
from consortium.kernels.release_worth import Worth, variance_of_projectors, worth_of

LEAST_SEEN = 2
_RANGED = "from the weakest to the strongest direction that is seen"


@dataclass(frozen=True)
class SubspaceForecast:
    """What a study is expected to see.

    Parameters
    ----------
    size : int
        d, dimensions of the basis.
    cutoff : float
        Shortest wavelength in mm; 0 for regions and voxels.
    edge : float
        Where the eigenvalues of the noise alone end.
    chance : float
        K/d, the share of a direction in persons who have nothing in common.
    resolved : float
        Correlation of a usual network with what the basis shows of it.
    cosines : array, shape (K,)
        Expected cosine of each direction with the truth in the basis; 0 for one that noise hides.
    """

    size: int
    cutoff: float
    edge: float
    chance: float
    resolved: float
    cosines: Array

    @property
    def seen(self) -> int:
        """Directions that stand out of the noise."""
        return int(np.count_nonzero(self.cosines))

    def above(self, least: float) -> int:
        """Directions that are expected to be found."""
        return int(np.count_nonzero(self.cosines >= least))

    def hopeless(self, least: float) -> bool:
        """Whether too few directions are expected to be found."""
        return self.above(least) < min(LEAST_SEEN, len(self.cosines))


USUAL = "strengths that networks usually have, which the report replaces by those it found"


def foretell(parameters: Wanted, shape: Shape) -> SubspaceForecast:
    """Forecast for the usual strengths of networks."""
    many, size = parameters.kept, basis_size(parameters, shape)
    deviation, cutoff = deviation_of(parameters, shape), cutoff_planned(parameters, shape)
    cosines = expected_cosines(many, size, deviation)
    edge, kept = SymmetricNoise(size, deviation).edge, resolved(shape, cutoff)
    return SubspaceForecast(size, cutoff, edge, many / size, kept, cosines)


def worth(parameters: Wanted, shape: Shape) -> Worth:
    """What the release is worth, for the usual strengths of networks."""
    size, strengths = basis_size(parameters, shape), np.linspace(*STRENGTHS, parameters.kept)
    noise = deviation_of(parameters, shape) ** 2 / 2.0
    return worth_of(variance_of_projectors(strengths, size), noise, sum(shape.units))


def expect(parameters: Wanted, shape: Shape) -> tuple[Expectation, ...]:
    """The forecast in numbers; the range is that of the directions that are seen."""
    found = foretell(parameters, shape)
    seen = found.cosines[found.cosines > 0]
    agreed = Expectation("expected correlation", 0.0, ranged=_RANGED)
    if len(seen):
        agreed = replace(agreed, value=_mean(found), low=float(seen.min()), high=float(seen.max()))
    kept = Expectation("part of a usual network that this resolution keeps", found.resolved)
    told = worth(parameters, shape)
    return (
        agreed,
        Expectation("components found", found.above(parameters.least)),
        kept,
        Expectation("own participants that the release is worth to a hospital", told.persons),
        Expectation(POOLED, told.enough, rises=False),
    )


def sentences(parameters: Wanted, shape: Shape) -> tuple[str, ...]:
    """The forecast in words."""
    found = foretell(parameters, shape)
    where = f"waves longer than {found.cutoff:g} mm" if found.cutoff else "the study's features"
    basis = (
        f"Of each participant {parameters.kept} directions in a basis of {found.size} maps "
        f"({where}) are compared. A direction is seen if its consistency, which is 1 where all "
        f"participants share it, exceeds what noise ({number(found.edge)}) and chance "
        f"({number(found.chance)}) come to."
    )
    lines = [basis]
    if found.seen:
        lines.append(
            f"With networks of usual strength {found.seen} of {parameters.kept} directions are "
            f"seen. Their maps' correlation with the truth is about {_mean(found):.2f} within this "
            f"resolution, which keeps {found.resolved:.2f} of a usual network. "
            f"{found.above(parameters.least)} of them are expected to reach {parameters.least:g}, "
            "from which on a component is called found."
        )
    if found.hopeless(parameters.least):
        lines.append(f"Warning: {_too_little(parameters, shape)}")
    elif found.seen < parameters.kept:
        lost = parameters.kept - found.seen
        lines.append(
            f"Warning: {count(lost, 'direction')} {'is' if lost == 1 else 'are'} likely to be "
            "lost in the noise; more participants, a larger epsilon or a longer cutoff would show "
            "more."
        )
    return (*lines, *filter(None, [worth_sentence(worth(parameters, shape), USUAL)]))


def refuse_hopeless(parameters: Wanted, shape: Shape) -> None:
    """Refuse a study that is expected to find nothing, unless it is to run anyway.

    Raises
    ------
    StudyError
        With what would be enough.
    """
    if parameters.anyway or not shape.noise:
        return
    if foretell(parameters, shape).hopeless(parameters.least):
        raise StudyError(f"field 'privacy.epsilon': {_too_little(parameters, shape)}")


def _too_little(parameters: Wanted, shape: Shape) -> str:
    persons = sum(shape.units)
    remedy = would_be_enough(
        shape, lambda less: not foretell(parameters, less).hopeless(parameters.least)
    )
    return (
        f"the noise over {persons} participants hides all networks that are usual; {remedy}; set "
        "analysis.anyway to run it nevertheless."
    )


def _mean(found: SubspaceForecast) -> float:
    seen = found.cosines[found.cosines > 0]
    return float(np.sqrt(np.mean(np.square(seen))))
