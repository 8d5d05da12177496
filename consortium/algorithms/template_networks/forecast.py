"""What a study of networks by templates is expected to tell, from public numbers alone."""

import math
from dataclasses import dataclass

from consortium.algorithms.base import Expectation, Shape
from consortium.algorithms.enough import would_be_enough
from consortium.algorithms.subspace import resolved
from consortium.algorithms.template_networks.kernels.template_shrinkage import Agreement
from consortium.algorithms.template_networks.parameters import TemplateNetworksParameters
from consortium.algorithms.template_networks.plan import (
    AGREEMENT,
    STRENGTH,
    agreement_of,
    basis_templates,
    connectivity_bound,
    connectivity_share,
    map_cutoff,
    map_deviation,
    templates_of,
)
from consortium.base.formatting import count, number
from consortium.errors import StudyError


@dataclass(frozen=True)
class TemplateForecast:
    """What a study is expected to tell.

    Parameters
    ----------
    size : int
        d, dimensions of the basis.
    cutoff : float
        Shortest wavelength in mm; 0 for regions.
    usual : Agreement
        A usual map beside its template.
    connectivity : float
        Standard error by noise of a Fisher-transformed correlation; 0 if none is released.
    """

    size: int
    cutoff: float
    usual: Agreement
    connectivity: float


def foretell(parameters: TemplateNetworksParameters, shape: Shape) -> TemplateForecast:
    """Forecast for maps as strong, and templates as good, as is usual."""
    size, count = basis_templates(parameters, shape).shape
    share, deviation = connectivity_share(parameters, shape), map_deviation(parameters, shape)
    connections = 0.0
    if share:
        spread = connectivity_bound(parameters, shape).spread
        connections = shape.noise * spread / sum(shape.units) / math.sqrt(share)
    cutoff = map_cutoff(parameters, shape)
    return TemplateForecast(size, cutoff, agreement_of(size, count, deviation), connections)


def expect(parameters: TemplateNetworksParameters, shape: Shape) -> tuple[Expectation, ...]:
    """The forecast in numbers."""
    found = foretell(parameters, shape)
    agreed = Expectation(
        "expected correlation", found.usual.expected if found.usual.is_told else AGREEMENT
    )
    links = Expectation("error of a connection (Fisher's z)", found.connectivity, rises=False)
    return (agreed, links) if found.connectivity else (agreed,)


def sentences(parameters: TemplateNetworksParameters, shape: Shape) -> tuple[str, ...]:
    """The forecast in words."""
    found = foretell(parameters, shape)
    where = f"waves longer than {found.cutoff:g} mm" if found.cutoff else "the study's features"
    kept = resolved(shape, found.cutoff)
    basis = (
        f"{templates_of(shape).count} maps of each participant in {found.size} dimensions "
        f"({where}, which keep {kept:.2f} of a usual network; finer details are the templates')."
    )
    lines = [basis]
    if found.usual.is_told:
        lines.append(
            f"A template that agrees with the group's map by {AGREEMENT:g} is expected to become a "
            f"map that agrees by about {found.usual.expected:.2f}."
        )
    else:
        lines.append(f"Warning: {_too_little(parameters, shape)}")
    largest = max(shape.units)
    lines.append(
        f"The largest site's {count(largest, 'participant')} alone, without noise, are expected to "
        f"come to {_of_site(found.size, templates_of(shape).count, largest):.2f}, if sites don't "
        "differ."
    )
    if found.connectivity:
        share = connectivity_share(parameters, shape)
        lines.append(
            f"Noise leaves each connection a standard error of {number(found.connectivity)} "
            f"(Fisher's z), for {share:.0%} of the budget."
        )
    return tuple(lines)


def _of_site(size: int, maps: int, persons: int) -> float:
    """Expected agreement of so many participants' mean map, which chance alone moves."""
    deviation = math.sqrt((1.0 - STRENGTH**2) / (size - maps) / persons)
    alone = agreement_of(size, maps, deviation)
    return alone.expected if alone.is_told else AGREEMENT


def refuse_hopeless(parameters: TemplateNetworksParameters, shape: Shape) -> None:
    """Refuse a study that is expected to tell nothing, unless it is to run anyway.

    Raises
    ------
    StudyError
        With what would be enough.
    """
    if parameters.anyway or not shape.noise:
        return
    if not foretell(parameters, shape).usual.is_told:
        raise StudyError(f"field 'privacy.epsilon': {_too_little(parameters, shape)}")


def _too_little(parameters: TemplateNetworksParameters, shape: Shape) -> str:
    persons = sum(shape.units)
    remedy = would_be_enough(shape, lambda less: foretell(parameters, less).usual.is_told)
    return (
        f"the noise over {persons} participants hides how they differ from templates that agree "
        f"with them by {AGREEMENT:g}; {remedy}; set analysis.anyway to run it nevertheless."
    )
