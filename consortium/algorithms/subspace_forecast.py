"""Forecast of the directions that participants share, only from public numbers."""

from dataclasses import replace

import numpy as np

from consortium.algorithms.base import Array, Expectation
from consortium.algorithms.subspace import ProjectorPlan
from consortium.algorithms.worth import POOLED, worth_sentence, would_be_enough
from consortium.base.formatting import count, number
from consortium.kernels.noise_law import SymmetricNoise
from consortium.kernels.projector_forecast import STRENGTHS
from consortium.kernels.release_worth import Worth, worth_of_projectors

_RANGED = "from the weakest to the strongest direction that is seen"
_USUAL = "strengths that networks usually have, which the report replaces by those it found"


def subspace_worth(plan: ProjectorPlan) -> Worth:
    """Return the worth of the release, for the usual strengths of networks."""
    strengths = np.linspace(*STRENGTHS, plan.asked.kept)
    return worth_of_projectors(strengths, plan.size, plan.deviation, sum(plan.shape.units))


def usual_worth(plan: ProjectorPlan) -> str:
    """Return the sentence on the worth of the release, for the usual strengths of networks."""
    return worth_sentence(subspace_worth(plan), _USUAL)


def expect(plan: ProjectorPlan) -> tuple[Expectation, ...]:
    """Return the forecast in numbers; its range is over the detectable directions."""
    seen = plan.cosines[plan.cosines > 0]
    agreed = Expectation("expected correlation", 0.0, ranged=_RANGED)
    if len(seen):
        agreed = replace(agreed, value=_mean(seen), low=float(seen.min()), high=float(seen.max()))
    worth = subspace_worth(plan)
    return (
        agreed,
        Expectation("components found", plan.likely),
        Expectation("part of a usual network that this resolution keeps", plan.resolved),
        Expectation("worth of the release to a hospital, in own participants", worth.persons),
        Expectation(POOLED, worth.enough, rises=False),
    )


def sentences(plan: ProjectorPlan) -> tuple[str, ...]:
    """Return the forecast of a release of shared directions, in words."""
    seen = plan.cosines[plan.cosines > 0]
    kept = plan.asked.kept
    least = plan.asked.least
    where = f"waves longer than {plan.cutoff:g} mm" if plan.cutoff else "the study's features"
    basis = (
        f"The {kept} leading directions of each participant in a basis of {plan.size} maps "
        f"({where}) are compared. A direction is detected if its consistency, which is 1 if all "
        "participants share it, exceeds the sum of noise "
        f"({number(SymmetricNoise(plan.size, plan.deviation).edge)}) and chance "
        f"({number(kept / plan.size)})."
    )
    lines = [basis]
    if len(seen):
        lines.append(
            f"With networks of usual strength {len(seen)} of {kept} directions are seen. Their "
            f"maps' correlation with the truth is about {_mean(seen):.2f} within this resolution, "
            f"which keeps {plan.resolved:.2f} of a usual network. {plan.likely} of them are "
            f"expected to reach {least:g}, from which on a component is called found."
        )
    if plan.hopeless:
        lines.append(f"Warning: {_too_little(plan)}")
    elif lost := kept - len(seen):
        lines.append(
            f"Warning: {count(lost, 'direction')} {'is' if lost == 1 else 'are'} likely to be "
            "lost in the noise. More participants, a larger epsilon or a longer cutoff would show "
            "more."
        )
    return (*lines, *filter(None, [usual_worth(plan)]))


def _too_little(plan: ProjectorPlan) -> str:
    remedy = would_be_enough(plan.shape, lambda less: not ProjectorPlan(plan.asked, less).hopeless)
    return (
        f"the noise over {sum(plan.shape.units)} participants hides all networks of usual "
        f"strength. {remedy}."
    )


def _mean(seen: Array) -> float:
    return float(np.sqrt(np.mean(np.square(seen))))
