"""What a study of networks by templates is expected to tell, from public numbers alone."""

import math

from consortium.algorithms.base import Expectation
from consortium.algorithms.template_networks.plan import (
    AGREEMENT,
    STRENGTH,
    TemplateNetworksPlan,
    agreement_of,
)
from consortium.algorithms.worth import would_be_enough
from consortium.base.formatting import count, number
from consortium.errors import StudyError


def expect(plan: TemplateNetworksPlan) -> tuple[Expectation, ...]:
    """The forecast in numbers, for maps as strong, and templates as good, as is usual."""
    usual, error = plan.usual, plan.connection_error
    agreed = Expectation("expected correlation", usual.expected if usual.is_told else AGREEMENT)
    links = Expectation("error of a connection (Fisher's z)", error, rises=False)
    return (agreed, links) if error else (agreed,)


def sentences(plan: TemplateNetworksPlan) -> tuple[str, ...]:
    """What networks by templates are expected to show, in words."""
    size, maps = plan.maps.shape
    where = f"waves longer than {plan.cutoff:g} mm" if plan.cutoff else "the study's features"
    basis = (
        f"{maps} maps of each participant in {size} dimensions ({where}, which keep "
        f"{plan.resolved:.2f} of a usual network; finer details are the templates')."
    )
    lines = [basis]
    if plan.usual.is_told:
        lines.append(
            f"A template that agrees with the group's map by {AGREEMENT:g} is expected to become a "
            f"map that agrees by about {plan.usual.expected:.2f}."
        )
    else:
        lines.append(f"Warning: {_too_little(plan)}")
    largest = max(plan.shape.units)
    lines.append(
        f"The largest site's {count(largest, 'participant')} alone, without noise, are expected to "
        f"come to {_of_site(size, maps, largest):.2f}, if sites don't differ."
    )
    if plan.connection_error:
        lines.append(
            f"Noise leaves each connection a standard error of {number(plan.connection_error)} "
            f"(Fisher's z), for {plan.share:.0%} of the budget."
        )
    return tuple(lines)


def _of_site(size: int, maps: int, persons: int) -> float:
    """Expected agreement of so many participants' mean map, which chance alone moves."""
    deviation = math.sqrt((1.0 - STRENGTH**2) / (size - maps) / persons)
    alone = agreement_of(size, maps, deviation)
    return alone.expected if alone.is_told else AGREEMENT


def refuse_hopeless(plan: TemplateNetworksPlan) -> None:
    """Refuse a study that is expected to tell nothing, unless it is to run anyway.

    Raises
    ------
    StudyError
        With what would be enough.
    """
    if not plan.parameters.anyway and plan.shape.noise and not plan.usual.is_told:
        raise StudyError(f"field 'privacy.epsilon': {_too_little(plan)}")


def _too_little(plan: TemplateNetworksPlan) -> str:
    remedy = would_be_enough(
        plan.shape, lambda less: type(plan)(plan.parameters, less).usual.is_told
    )
    return (
        f"the noise over {sum(plan.shape.units)} participants hides how they differ from templates "
        f"that agree with them by {AGREEMENT:g}; {remedy}; set analysis.anyway to run it "
        "nevertheless."
    )
