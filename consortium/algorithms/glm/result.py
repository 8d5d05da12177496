"""Tables, numbers, maps and texts of a finished study, from its estimates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri, stdtrit

from consortium.algorithms import coverage
from consortium.algorithms.base import Captions, Result, Table
from consortium.algorithms.findings import ImageSet
from consortium.algorithms.glm.agreement import (
    AGREEMENT,
    agreement_numbers,
    agreement_remarks,
    agreement_sentence,
    agreement_table,
)
from consortium.algorithms.glm.biases import (
    bias_sentences,
    contradicted_sentences,
    lost_information,
    possible_biases,
    states_of,
    withheld_by,
)
from consortium.algorithms.glm.centring import (
    Centring,
    count_sentences,
    counted_sentences,
)
from consortium.algorithms.glm.declared import declared_sentences
from consortium.algorithms.glm.estimation import known_effects
from consortium.algorithms.glm.kernels.agreement import HospitalAgreement
from consortium.algorithms.glm.kernels.contrast_regression import Effects, Estimates
from consortium.algorithms.glm.kernels.contrast_rows import Coefficients
from consortium.algorithms.glm.kernels.outcome_correlation import (
    BasisCorrelation,
)
from consortium.algorithms.glm.kernels.with_open import shrink_to_open
from consortium.algorithms.glm.learned import Learned
from consortium.algorithms.glm.methods import methods_text
from consortium.algorithms.glm.open_power import cohort_sentences
from consortium.algorithms.glm.power import DETECTABLE, update_forecast
from consortium.algorithms.glm.smooth import basis_sentences
from consortium.algorithms.glm.tables import (
    averages_table,
    coefficient_tables,
    effect_meaning,
    effect_units,
    effects_table,
    image_views,
)
from consortium.base.array import Array

if TYPE_CHECKING:
    from consortium.algorithms.glm.centre import Glm

_MUCH_EXPLAINED = 0.1
REFITS = (
    "All coefficients are released. So the coordinator can compute models of fewer columns or "
    "outcomes afterwards (consortium refit), without further privacy loss or another approval."
)


@dataclass(frozen=True, eq=False)
class FurtherFindings:
    """Estimates of `glm` in addition to the contrast of single outcomes."""

    coefficients: Coefficients | None = None
    """All coefficients, if the study asks for them."""
    means: Estimates | None = None
    """Effects on means of groups of outcomes, if the study names groups."""
    agreement: HospitalAgreement | None = None
    """How much hospitals' effects differ, if the study asks for it."""


def effects_result(
    plan: Glm, found: Effects, learned: Learned, centring: Centring, more: FurtherFindings
) -> Result:
    """Return arrays, numbers, tables and captions of a finished study.

    Parameters
    ----------
    centring : Centring
        Groups and weights of the sites that answered the last round.
    """
    parameters = plan.parameters
    each = found.each
    biases = possible_biases(plan, found, learned, centring)
    lacking = learned.norms.shares.withheld
    withheld = withheld_by(biases, plan.outcomes) | lacking
    significant = (each.q <= parameters.discoveries) & ~withheld
    own = _arrays(each, parameters.confidence, learned.unit)
    drawn_from = _of_maps(own, withheld)
    own = _published(own, withheld)
    arrays = {
        "loadings": _loadings(plan, drawn_from["effect"]),
        "found": _loadings(plan, significant) > 0,
        "withheld": withheld,
        **own,
        "deviation": learned.scales * plan.columns.units / learned.unit,
        **_with_open(plan, found, learned, withheld),
        **({"coverage": learned.norms.shares.values} if parameters.gaps else {}),
    }
    numbers = {
        "outcomes": plan.outcomes,
        **_basis(plan),
        "discoveries": int(significant.sum()),
        "withheld": int(withheld.sum()),
        **_errors(plan, found, learned, centring),
        **_counted(plan, centring),
        **_learned(learned),
        "advice": "effects that all outcomes have in common are up to "
        f"{100 * plan.clipping.lost:.0f} % too small, because of clipping",
    }
    if more.agreement is not None:
        numbers |= agreement_numbers(more.agreement)
    error = float(numbers["mean_error"])
    found_sentence = _found_sentence(plan, significant)
    headline = (
        *(() if more.agreement is None else (agreement_sentence(plan, more.agreement),)),
        *bias_sentences(biases, plan.outcomes),
        found_sentence,
        _error_sentence(plan, error),
        *counted_sentences(plan, centring),
        *contradicted_sentences(plan, learned),
        *filter(None, [coverage.withheld_sentence(lacking)]),
    )
    captions = Captions(
        "contrast",
        " ".join(headline),
        " ".join([effect_meaning(plan), *remarks_of(plan)]),
        counted=found_sentence,
        found=bool(significant.any()),
        methods=methods_text(plan, learned, centring.groups.persons),
    )
    states = states_of(biases, lacking)
    tables = {f"contrast-{parameters.contrast}": effects_table(plan, arrays, states)}
    tables |= _more(
        plan=plan,
        found=found,
        learned=learned,
        more=more,
        arrays=arrays,
        states=states,
    )
    images = _images(plan, arrays | drawn_from, significant)
    hidden = _loadings(plan, withheld) > 0
    drawn = partial(Result, loadings="loadings", drawn="found", withheld=hidden)
    return drawn(arrays, numbers, tables=tables, captions=captions, images=images)


def _with_open(plan: Glm, found: Effects, learned: Learned, withheld: Array) -> dict[str, Array]:
    """Return the open cohort's effects, and those of both, with errors; none if it has none."""
    if plan.open is None or not plan.open.knows_contrast:
        return {}
    fit = plan.open.fit
    opened = learned.unit * known_effects(plan, learned)[0]
    both = shrink_to_open(
        effects=learned.unit * found.each.effects,
        errors=learned.unit * found.each.errors,
        opened=opened,
        error=fit.error,
        between=fit.between,
        freedom=min(plan.outcome_correlation.freedom, plan.outcomes),
    )
    combined = {"with_open": both.values, "with_open_error": both.errors}
    return {"open": opened, **_published(combined, withheld)}


def _published(arrays: dict[str, Array], withheld: Array) -> dict[str, Array]:
    """Return estimates with missing values where they are withheld."""
    return {name: np.where(withheld, np.nan, own) for name, own in arrays.items()}


def _of_maps(arrays: dict[str, Array], withheld: Array) -> dict[str, Array]:
    """Return estimates with those of no effect where they are withheld, as maps have no gaps."""
    none: dict[str, Array | float] = {"p": 1.0, "q": 1.0, "error": arrays["error"]}
    return {name: np.where(withheld, none.get(name, 0.0), own) for name, own in arrays.items()}


def _more(
    plan: Glm,
    found: Effects,
    learned: Learned,
    more: FurtherFindings,
    arrays: dict[str, Array],
    states: tuple[str, ...],
) -> dict[str, Table]:
    """Return the tables of means and coefficients, if asked for; the means also join ``arrays``.

    A mean is withheld if any of its outcomes is.
    """
    tables = dict[str, Table]()
    if more.means is not None:
        means = _arrays(more.means, plan.parameters.confidence, learned.unit)
        withheld = np.asarray((plan.columns.averages[:, arrays["withheld"]] > 0).any(axis=1))
        means = _published(means, withheld)
        arrays |= {f"average_{name}": values for name, values in means.items()}
        tables[f"averages-{plan.parameters.contrast}"] = averages_table(plan, means, withheld)
    if more.agreement is not None:
        tables[AGREEMENT] = agreement_table(plan, more.agreement)
    if more.coefficients is not None:
        tables |= coefficient_tables(plan, found, more.coefficients, learned.unit, states)
    return tables


def _errors(
    plan: Glm, found: Effects, learned: Learned, centring: Centring
) -> dict[str, float | int | str]:
    """Return the mean standard error and its components."""
    error = learned.unit * float(np.sqrt(np.mean(found.each.errors**2)))
    return {
        "mean_error": error,
        "forecast_error": learned.ratio * update_forecast(plan, learned, centring).error,
        "detectable": DETECTABLE * error,
        "noise_part": float(found.privacy / (found.sampling + found.privacy + found.leak)),
        "explained_by_covariates": learned.adjustment.explained,
        "clipped": lost_information(found, learned),
    }


def _basis(plan: Glm) -> dict[str, float | int | str]:
    """Return numbers on the smooth basis, if there is one."""
    if not isinstance(plan.outcome_correlation, BasisCorrelation):
        return {}
    return {
        "smooth_maps": plan.outcome_correlation.released,
        "finest_detail_mm": plan.outcome_correlation.cutoff / 2,
        "smoothed_away": 1 - plan.outcome_correlation.resolved,
        "height_kept": plan.outcome_correlation.kept,
    }


def _counted(plan: Glm, centring: Centring) -> dict[str, float | int | str]:
    """Return the fraction of all participants with the contrast's level, if it was released."""
    groups = centring.groups
    if plan.columns.slope:
        return {}
    return {"counted_share": float(groups.proportions @ groups.persons / groups.persons.sum())}


def _learned(learned: Learned) -> dict[str, float | int | str]:
    """Return the shift and factor from the initial to the learned location and scale."""
    norms = learned.norms
    return {
        "learned_shift": float(np.sqrt(np.mean(np.square(norms.shift)))),
        "learned_scale": norms.factor,
    }


def remarks_of(plan: Glm) -> tuple[str, ...]:
    """Return sentences on further public numbers, and on details that are smoothed away."""
    return (
        *basis_sentences(plan.outcome_correlation),
        *count_sentences(plan),
        *declared_sentences(plan.parameters),
        *cohort_sentences(plan),
        *((REFITS,) if plan.parameters.refits else ()),
        *agreement_remarks(plan),
        *(() if plan.parameters.units is None else (plan.parameters.units.explained,)),
    )


def _arrays(found: Estimates, confidence: float, unit: float) -> dict[str, Array]:
    half = stdtrit(found.freedom, (1 + confidence) / 2) * found.widths
    return {
        "effect": unit * found.effects,
        "error": unit * found.errors,
        "t": found.statistics,
        "p": found.p,
        "q": found.q,
        "low": unit * (found.effects - half),
        "high": unit * (found.effects + half),
    }


def stopped_result(plan: Glm, learned: Learned, reason: str, centring: Centring) -> Result:
    """Return the result of a study that stops before its last round, as that would be useless."""
    explained = learned.adjustment.explained
    numbers: dict[str, float | int | str] = {
        "explained_by_covariates": explained,
        **_learned(learned),
        "stopped": reason,
    }
    if explained > _MUCH_EXPLAINED:
        share = f"about {100 * explained:.0f} %"
        reason = f"the covariates explain {share} of the contrast, and then {reason}"
    sentence = f"Stopped before the outcomes, with most of the budget unspent: {reason}."
    headline = " ".join((sentence, *counted_sentences(plan, centring)))
    captions = Captions("contrast", headline, found=False)
    return Result({}, numbers, captions=captions)


def _loadings(plan: Glm, values: Array) -> Array:
    """Return values in the rows of the outcomes, and 0 elsewhere."""
    found = np.zeros((plan.shape.features, 1))
    found[plan.columns.outcomes, 0] = values
    return found


def _images(plan: Glm, arrays: dict[str, Array], significant: Array) -> dict[str, ImageSet]:
    """Return maps of every statistic for outcomes that are images, with discoveries coloured."""
    name = plan.parameters.contrast
    maps = _maps(arrays, effect_meaning(plan))
    found = {}
    for view in image_views(plan):
        rows = plan.columns.labels.of(view)
        hidden = np.where(significant[rows], 0.0, np.inf)[:, None]
        for stat, (values, caption) in maps.items():
            found[f"{view}_contrast-{name}_stat-{stat}"] = ImageSet(
                values[rows][:, None],
                caption,
                (name,),
                {"contrast": name, "stat": stat},
                units=stat if stat in ("t", "z") else "arbitrary",
                view=view,
                found=(bool(significant[rows].any()),),
                drawn=stat == "t",
                threshold=hidden if stat == "t" else 0.0,
            )
        if "coverage" in arrays:
            found[f"{view}_coverage"] = coverage.share_map(arrays["coverage"][rows], view)
    return found


def _maps(arrays: dict[str, Array], effect: str) -> dict[str, tuple[Array, str]]:
    signs = np.sign(arrays["effect"])
    return {
        "effect": (arrays["effect"], effect),
        "variance": (np.square(arrays["error"]), "Square of the effect's standard error."),
        "t": (arrays["t"], "t: effect over its standard error, from sampling and privacy noise."),
        "z": (-signs * ndtri(arrays["p"] / 2), "Normal deviate with the same p."),
        "p": (arrays["p"], "Two-sided p of no effect."),
        "q": (arrays["q"], "Least false discovery rate at which this would be a discovery."),
    }


def _found_sentence(plan: Glm, significant: Array) -> str:
    """Return the number of discoveries."""
    verb = "follow" if plan.columns.slope else "differ by"
    what = f"{plan.outcomes:,} outcomes"
    if isinstance(plan.outcome_correlation, BasisCorrelation):
        places = plan.outcome_correlation.places
        numbers = plan.outcome_correlation.released
        what = f"{plan.outcomes:,} {places}, in maps computed from {numbers:,} numbers,"
    return f"{int(significant.sum()):,} of {what} {verb} '{plan.parameters.contrast}'."


def _error_sentence(plan: Glm, error: float) -> str:
    """Return the false discovery rate and the mean standard error."""
    rate = 100 * plan.parameters.discoveries
    smoothed = "smoothed " if isinstance(plan.outcome_correlation, BasisCorrelation) else ""
    return (
        f"The false discovery rate is {rate:g} %, and {smoothed}effects have a standard error of "
        f"{error:.2f} {effect_units(plan)} (sampling and privacy noise together)."
    )
