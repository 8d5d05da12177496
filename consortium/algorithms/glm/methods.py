"""Description of a finished regression for the methods section of a paper."""

from collections.abc import Sequence

from consortium.algorithms.base import Array
from consortium.algorithms.glm.entries import COVARIATE_LIMIT
from consortium.algorithms.glm.kernels.covariate_adjustment import Adjustment
from consortium.algorithms.glm.kernels.outcome_correlation import (
    BasisCorrelation,
)
from consortium.algorithms.glm.learned import Learned
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.algorithms.glm.plan import GlmPlan
from consortium.base.formatting import count, number
from consortium.kernels.contrast_regression import TOTAL_DEVIATION

_SHOWN = 10  # names in a sentence


def methods_text(plan: GlmPlan, learned: Learned, persons: Array) -> str:
    """Return the text on model, clipping, adjustment, standard errors and tests.

    Parameters
    ----------
    persons : array, length S
        n_s of the sites that answered the last round, and 0 for the others.
    """
    sentences = (
        _model(plan, persons),
        _units(plan, learned),
        *((_basis(plan.likeness),) if isinstance(plan.likeness, BasisCorrelation) else ()),
        *((_clipping(plan),) if plan.shape.noise > 0 else ()),
        _sites(plan),
        *((_adjustment(plan, learned.adjustment),) if plan.covariates else ()),
        _errors(plan),
        _tests(plan),
    )
    return " ".join(sentences)


def _model(plan: GlmPlan, persons: Array) -> str:
    parameters, there = plan.parameters, int((persons > 0).sum())
    group = plan.columns.group
    asked = f"how the outcome changes with {group.label}"
    if not plan.columns.slope:
        one, other = group.compared
        asked = f"the difference of '{one}' from '{other}'" if one else f"that of {group.label}"
    every = " Every other coefficient was released, too." if parameters.importance else ""
    likeness = plan.likeness
    what = likeness.places if isinstance(likeness, BasisCorrelation) else "outcomes"
    return (
        f"Each of {plan.outcomes:,} {what} was regressed on {_listed(parameters.terms)} by "
        f"least squares, with a constant of its own for every site, over "
        f"{_units_of(parameters, int(persons.sum()))} at {count(there, 'site')}. The contrast "
        f"'{parameters.contrast}' is {asked}.{every}"
    )


def _units_of(parameters: GlmParameters, many: int) -> str:
    """Return the number of participants, or of units of several rows with their weighting."""
    units = parameters.units
    if units is None:
        return count(many, "participant")
    return (
        f"{many:,} {units.named} of up to {units.most_rows} rows, each counted as one, with a "
        f"random intercept (working correlation {number(units.correlation)}, errors robust to "
        "another)"
    )


def _units(plan: GlmPlan, learned: Learned) -> str:
    explaining = (plan.columns.group, *plan.columns.covariates_of)
    limited = any(not entry.levels for entry in explaining)
    columns = f"; columns with limits at {COVARIATE_LIMIT:g} of theirs" if limited else ""
    norms, start = plan.parameters.norms, "the middle and an eighth of the width of their limits"
    if norms.complete:
        start = "stated norms"
    elif norms.location is not None or norms.deviation is not None:
        start = "norms that were stated in part"
    factor, noisy = number(learned.norms.factor), plan.shape.noise > 0
    drawn = ", and drawn to these as far as they are noise" if noisy else ""
    cut = f", and cut at {plan.design.outcome_limit:g} of them{columns}" if noisy else ""
    unit = "stated" if plan.in_stated_units else "learned"
    return (
        f"Outcomes' locations, and one factor of all standard deviations ({factor}), were learned "
        f"in the first round, starting from {start}{drawn}. Outcomes were expressed in total "
        f"deviations{cut}; effects are reported in {unit} standard deviations within groups and "
        f"sites, which were taken to be {number(1 / TOTAL_DEVIATION)} of these."
    )


def _basis(likeness: BasisCorrelation) -> str:
    return (
        f"Of images that were stated to have a smoothness of {number(likeness.smoothness)} mm "
        f"(full width at half maximum) the coefficients of {count(likeness.released, 'map')} were "
        f"released, an orthonormal basis of {likeness.described} with a shortest wavelength of "
        f"{number(likeness.cutoff)} mm, and statistics of all {likeness.places} were made of them: "
        "effects and intervals are of images that were smoothed so."
    )


def _clipping(plan: GlmPlan) -> str:
    weighed = "the inverse fourth root of their covariance"
    if not isinstance(plan.likeness, BasisCorrelation):
        correlation = number(plan.parameters.norms.correlation)
        weighed = f"the inverse fourth root of their stated correlation ({correlation})"
    columns, tails = "", ""
    if plan.design.tail_shares:
        where = "at both ends of the column" if plan.columns.slope else "in both groups"
        tails = (
            " What clipping took of long tails was estimated from three released sums, on the "
            f"assumption that it lies in the same direction {where}, and added to effects."
        )
    if plan.design.clipped_columns:
        reach = number(plan.design.covariate_reach)
        columns = f" Columns that explain were shortened together to a norm of {reach} at most."
    return (
        f"A participant's outcomes, weighed by {weighed} and multiplied by the participant's "
        f"weight in the contrast, were shortened to a norm of at most {plan.choice.height:g} "
        "times what is usual; effects were divided by a released sum that was shortened "
        f"alike.{columns}{tails}"
    )


def _sites(plan: GlmPlan) -> str:
    centred = "by each site's share of the group, from counts"
    declared = plan.columns.slope and not plan.hidden[0]
    if plan.columns.slope:
        centred = "by each site's declared mean" if declared else "by each site's mean"
    noisy = plan.shape.noise > 0 and not declared
    noise = ", which was released with noise and drawn to what is usual as far as it is noise"
    none = int(((plan.groups.spread == 0) & (plan.groups.persons > 0)).sum())
    useless = f"; {count(none, 'site')} of one group only contributed nothing to it" if none else ""
    capped = plan.shape.noise > 0 and bool((plan.choice.weights < 1).any())
    lighter = "; sites of unequal groups weigh less" if capped else ""
    return (
        f"The contrast's column was centred {centred}{noise if noisy else ''}, so that sites' own "
        f"levels of the outcomes cancel{useless}{lighter}."
    )


def _adjustment(plan: GlmPlan, adjustment: Adjustment) -> str:
    others = _listed([entry.label for entry in plan.columns.covariates_of])
    adjusted = (
        f"It was adjusted for {others} by least squares within sites, from sums that were released "
        "in a round before"
    )
    if plan.shape.noise == 0:
        return f"{adjusted}."
    return (
        f"{adjusted} with noise; the slopes were multiplied by {adjustment.kept:.2f}, one less the "
        "part of their fit that is expected of noise, and at least a half."
    )


def _errors(plan: GlmPlan) -> str:
    chance = (
        "the variance among participants within sites, found from squared differences of random "
        "pairs of a site and drawn to what is usual"
    )
    if plan.shape.noise == 0:
        return f"Standard errors are from {chance} as far as it is chance."
    before = (
        ", and what the noise of the rounds before lets through" if len(plan.releases) > 1 else ""
    )
    return (
        f"The square of a standard error adds up {chance} as far as it is noise, and the variance "
        f"of the noise of privacy, which is known{before}."
    )


def _tests(plan: GlmPlan) -> str:
    parameters = plan.parameters
    rate, level = 100 * parameters.discoveries, 100 * parameters.confidence
    means = ""
    if parameters.averages:
        many = f"{count(len(parameters.averages), 'group')} of outcomes"
        means = f" The means of {many} ({_listed([*parameters.averages])}) were tested likewise, "
        means += "among themselves, with errors from released squares of their own."
    return (
        "Tests are two-sided, on t with degrees of freedom after Satterthwaite; intervals at "
        f"{level:g} % count what is unsure of the divisor, too. False discoveries were kept to a "
        f"rate of {rate:g} % over the {plan.outcomes:,} tests after Benjamini and Hochberg.{means}"
    )


def _listed(names: Sequence[str]) -> str:
    """Return names with commas and an 'and'; only the first if there are many."""
    if len(names) > _SHOWN:
        return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
