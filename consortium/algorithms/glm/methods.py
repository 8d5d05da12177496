"""Description of a finished regression for the methods section of a paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from consortium.algorithms.glm.agreement import METHODS as AGREEMENT_METHODS
from consortium.algorithms.glm.entries import COVARIATE_LIMIT
from consortium.algorithms.glm.kernels.contrast_regression import TOTAL_DEVIATION
from consortium.algorithms.glm.kernels.covariate_adjustment import Adjustment
from consortium.algorithms.glm.kernels.outcome_correlation import (
    BasisCorrelation,
    EqualCorrelation,
)
from consortium.algorithms.glm.learned import Learned
from consortium.algorithms.glm.open_table import OpenNorms
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.base.array import Array
from consortium.base.formatting import count, number

if TYPE_CHECKING:
    from consortium.algorithms.glm.centre import Glm

_SHOWN = 10  # names in a sentence


def methods_text(plan: Glm, learned: Learned, persons: Array) -> str:
    """Return the text on model, clipping, adjustment, standard errors and tests.

    Parameters
    ----------
    persons : array, length S
        n_s of the sites that answered the last round, and 0 for the others.
    """
    sentences = (
        _model(plan, persons),
        _units(plan, learned),
        *(
            (_basis(plan.outcome_correlation),)
            if isinstance(plan.outcome_correlation, BasisCorrelation)
            else ()
        ),
        *((_open(plan, plan.open),) if plan.open is not None else ()),
        *((_clipping(plan),) if plan.shape.noise > 0 else ()),
        _sites(plan),
        *((_adjustment(plan, learned.adjustment),) if plan.covariates else ()),
        _errors(plan),
        _tests(plan),
        *((AGREEMENT_METHODS,) if plan.parameters.agreement else ()),
    )
    return " ".join(sentences)


def _model(plan: Glm, persons: Array) -> str:
    parameters = plan.parameters
    answering = int((persons > 0).sum())
    group = plan.columns.group
    asked = f"how the outcome changes with {group.label}"
    if not plan.columns.slope:
        one, other = group.compared
        asked = f"the difference of '{one}' from '{other}'" if one else f"that of {group.label}"
    every = " Every other coefficient was also released." if parameters.importance else ""
    basis = plan.outcome_correlation
    what = basis.places if isinstance(basis, BasisCorrelation) else "outcomes"
    return (
        f"Each of {plan.outcomes:,} {what} was regressed on {_listed(parameters.terms)} by "
        f"least squares, with a constant of its own for every site, over "
        f"{_units_of(parameters, int(persons.sum()))} at {count(answering, 'site')}. The contrast "
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
        "other correlations)"
    )


def _units(plan: Glm, learned: Learned) -> str:
    explaining = (plan.columns.group, *plan.columns.covariates_of)
    limited = any(not entry.levels for entry in explaining)
    columns = f"; columns with limits at {COVARIATE_LIMIT:g} of their own" if limited else ""
    norms = plan.parameters.norms
    start = "the middle and an eighth of the width of their limits"
    if plan.open is not None:
        start = "those of the open cohort"
    elif norms.complete:
        start = "stated norms"
    elif norms.location is not None or norms.deviation is not None:
        start = "norms that were stated in part"
    factor = number(learned.norms.factor)
    noisy = plan.shape.noise > 0
    drawn = ", and shrunk towards these values in proportion to their noise" if noisy else ""
    cut = f", and clipped at {plan.design.outcome_limit:g} of them{columns}" if noisy else ""
    unit = "stated" if plan.in_stated_units else "learned"
    if plan.open is not None:
        unit = "the open cohort's"
    return (
        f"Outcomes' locations, and one factor of all standard deviations ({factor}), were learned "
        f"in the first round, starting from {start}{drawn}. Outcomes were expressed in total "
        f"standard deviations{cut}; effects are reported in {unit} standard deviations within "
        f"groups and sites, which were assumed to be {number(1 / TOTAL_DEVIATION)} of these."
    )


def _basis(basis: BasisCorrelation) -> str:
    return (
        f"The images have a stated smoothness of {number(basis.smoothness)} mm (full width at "
        f"half maximum). The coefficients of {count(basis.released, 'map')} were released, an "
        f"orthonormal basis of {basis.described} with a shortest wavelength of "
        f"{number(basis.cutoff)} mm, and statistics of all {basis.places} were computed from "
        "them: effects and intervals are those of images that were smoothed by this basis."
    )


def _open(plan: Glm, found: OpenNorms) -> str:
    labels = [plan.columns.group.label, *(e.label for e in plan.columns.covariates_of)]
    known = [label for label, varies in zip(labels, found.fit.varied, strict=True) if varies]
    curve = ""
    if known:
        curve = (
            f" Its least-squares slopes on {_listed(known)} within its sites, multiplied by a "
            "participant's columns, were subtracted from the outcomes before clipping, and its "
            "slope of the contrast was added to the effects again."
        )
    second = ""
    if found.knows_contrast:
        second = (
            " A second estimate shrinks the effects towards the open cohort's, in proportion to "
            "the noise of the difference (empirical Bayes)."
        )
    return (
        f"Locations, standard deviations and correlations of the outcomes were taken from "
        f"{count(found.persons, 'participant')} of an open cohort at "
        f"{count(found.sites, 'site')}.{curve}{second}"
    )


def _clipping(plan: Glm) -> str:
    weighed = "the inverse fourth root of their covariance"
    if not isinstance(plan.outcome_correlation, BasisCorrelation):
        correlation = number(plan.parameters.norms.correlation)
        weighed = f"the inverse fourth root of their stated correlation ({correlation})"
    if plan.open is not None:
        weighed = "the inverse fourth root of their correlation in the open cohort"
        if isinstance(plan.outcome_correlation, EqualCorrelation):
            weighed += f" (mean {correlation})"
    columns = ""
    tails = ""
    if plan.design.tail_shares:
        where = "at both ends of the column" if plan.columns.slope else "in both groups"
        tails = (
            " The loss of long tails by clipping was estimated from three released sums, under the "
            f"assumption that it has the same direction {where}, and added to effects."
        )
    if plan.design.clipped_columns:
        reach = number(plan.design.covariate_reach)
        columns = f" Predictors were clipped together to a norm of at most {reach}."
    return (
        f"A participant's outcomes, weighted by {weighed} and multiplied by the participant's "
        f"weight in the contrast, were clipped to a norm of at most {plan.clipping.height:g} "
        "times the usual norm; effects were divided by a released sum that was clipped in the "
        f"same way.{columns}{tails}"
    )


def _sites(plan: Glm) -> str:
    centred = "by each site's share of the group, from counts"
    declared = plan.columns.slope and not plan.released_means[0]
    if plan.columns.slope:
        centred = "by each site's declared mean" if declared else "by each site's mean"
    noisy = plan.shape.noise > 0 and not declared
    noise = ", which was released with noise and shrunk to its usual value in proportion to noise"
    none = int(((plan.groups.spread == 0) & (plan.groups.persons > 0)).sum())
    useless = f"; {count(none, 'site')} of one group only contributed nothing to it" if none else ""
    capped = plan.shape.noise > 0 and bool((plan.clipping.weights < 1).any())
    lighter = "; sites of unequal groups weigh less" if capped else ""
    return (
        f"The contrast's column was centred {centred}{noise if noisy else ''}, so sites' own "
        f"levels of the outcomes cancel{useless}{lighter}."
    )


def _adjustment(plan: Glm, adjustment: Adjustment) -> str:
    others = _listed([entry.label for entry in plan.columns.covariates_of])
    adjusted = (
        f"It was adjusted for {others} by least squares within sites, from sums that were released "
        "in an earlier round"
    )
    if plan.shape.noise == 0:
        return f"{adjusted}."
    return (
        f"{adjusted} with noise. The slopes were multiplied by {adjustment.kept:.2f}, which is 1 "
        "minus the fraction of their fit that is expected from noise, and at least 0.5."
    )


def _errors(plan: Glm) -> str:
    chance = (
        "the sampling variance among participants within sites, estimated from squared differences "
        "of random pairs of a site and shrunk towards its usual value"
    )
    if plan.shape.noise == 0:
        return f"Standard errors are from {chance} in proportion to its own sampling error."
    before = ", and the variance from noise of earlier rounds" if len(plan.releases) > 1 else ""
    return (
        f"The square of a standard error is the sum of {chance} in proportion to its error, and "
        f"the known variance of the privacy noise{before}."
    )


def _tests(plan: Glm) -> str:
    parameters = plan.parameters
    rate = 100 * parameters.discoveries
    level = 100 * parameters.confidence
    means = ""
    if parameters.averages:
        many = f"{count(len(parameters.averages), 'group')} of outcomes"
        means = f" The means of {many} ({_listed([*parameters.averages])}) were tested in the same "
        means += "way, as a separate family, with errors from released squares of their own."
    return (
        "Tests are two-sided, based on t with Satterthwaite degrees of freedom; intervals at "
        f"{level:g} % include the uncertainty of the divisor. The false discovery rate was "
        f"controlled at {rate:g} % over the {plan.outcomes:,} tests after Benjamini and "
        f"Hochberg.{means}"
    )


def _listed(names: Sequence[str]) -> str:
    """Return names with commas and an 'and'; only the first if there are many."""
    if len(names) > _SHOWN:
        return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
