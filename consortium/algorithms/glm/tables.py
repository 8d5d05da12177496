"""Tables of the results of `glm`, and which of its outcomes become images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import MOST_ROWS, Table
from consortium.algorithms.findings import Cell
from consortium.algorithms.glm.biases import REPORTED
from consortium.algorithms.glm.kernels.contrast_regression import Effects
from consortium.algorithms.glm.kernels.contrast_rows import Coefficients
from consortium.base.array import Array

if TYPE_CHECKING:
    from consortium.algorithms.glm.centre import Glm

COEFFICIENTS = "coefficients"
ERRORS = "coefficients-errors"
"""Names of the tables from which later contrasts are computed."""
_COMMON = ("freedom", "doubt")
_NUMBERS = ("effect", "error", "t", "p", "q", "low", "high")
_EFFECTS = ("view", "entry", *_NUMBERS, "found", "state", "deviation")
_WITH_OPEN = ("open", "with_open", "with_open_error")
_NOT_ALONE = (
    " Columns open and with_open are not only of the hospitals: open is the effect in the open "
    "cohort, and with_open the hospitals' effect shrunk towards it in proportion to noise."
)
_MEANS = ("group", "outcomes", *_NUMBERS, "found", "state")
_MISSING = "n/a"
_NOTE = (
    "Errors include sampling of participants and privacy noise; q is the false discovery rate "
    "(Benjamini-Hochberg)."
)
_UNSURE = (
    "The standard error of a mean is also an estimate, and varies by about a fifth from run to "
    "run (that of a single outcome by less); t, p, q and interval vary with it."
)
_ABOUT = {
    "view": "View of the outcome.",
    "entry": "Name of the outcome in its view, or its number from 1.",
    "group": "Name of the group of outcomes.",
    "outcomes": "Number of outcomes in the group.",
    "effect": "Effect, in the unit of the column deviation.",
    "error": "Standard error of the effect: sampling and privacy noise together.",
    "t": "Effect over its standard error.",
    "p": "Two-sided p of no effect.",
    "q": "Least false discovery rate at which this would be a discovery (Benjamini-Hochberg).",
    "low": "Lower end of the interval.",
    "high": "Upper end of the interval.",
    "found": "Whether q is at most the rate of false discoveries that the study accepts (yes, no, "
    "or withheld).",
    "state": "Whether the row's numbers are reported, or withheld, and why: a bias could exceed "
    "half the effect's standard error, or too few participants have the outcome. Withheld "
    "numbers are missing values (n/a).",
    "deviation": "Unit of the effect: the stated standard deviation of the outcome within groups "
    "and sites; without one, an eighth of the width of its limits times a factor that was learned "
    "for all outcomes together, which is not an estimate of this outcome's own. Times it, effect, "
    "error and interval are in the outcome's own unit.",
    "open": "Effect in the open cohort, which has no noise: not of the hospitals.",
    "with_open": "Effect of the hospitals, shrunk towards that of the open cohort in proportion to "
    "the noise of their difference: not only of the hospitals, and not for discoveries.",
    "with_open_error": "Standard error of with_open, if both populations differ by outcome as "
    "estimated from all outcomes together.",
}


def effect_unit(plan: Glm) -> str:
    """Return the unit in which the tables of `glm` state effects."""
    if plan.in_stated_units:
        return "in the outcome's stated standard deviation within groups and sites"
    return "in the unit of the column deviation, which was learned for all outcomes together"


def effect_units(plan: Glm) -> str:
    """Return the unit in the plural, for use after a number."""
    return "standard deviations" if plan.in_stated_units else "units of the column deviation"


def effect_meaning(plan: Glm) -> str:
    """Return the definition of an effect of `glm`, for captions."""
    unit = effect_unit(plan)
    group = plan.columns.group
    if group.product:
        over = f", over {group.start[1]:g}" if group.start[1] > 1 else ""
        return (
            f"Change of the outcome, {unit}, with the product of both columns{over}: each in "
            "public standard deviations from its public mean, or -1 and 1 for levels."
        )
    if plan.columns.slope:
        return f"Change of the outcome, {unit}, with one public standard deviation of the column."
    one, other = group.compared
    named = f"'{one}' from '{other}'" if one else "the second group from the first"
    own = plan.columns.products.rows
    where = ", at the public means of its factors in products" if (own == group.row).any() else ""
    return f"Difference of {named}, {unit}{where}."


def effects_table(plan: Glm, arrays: Mapping[str, Array], states: Sequence[str]) -> Table:
    """Return a table with one row for each outcome, at most 1,000 with the smallest p."""
    order = np.arange(plan.outcomes)
    if plan.outcomes > MOST_ROWS:
        order = np.sort(np.argsort(arrays["p"], kind="stable")[:MOST_ROWS])
    rows = [
        (
            *plan.columns.labels[v],
            *_numbers(plan, arrays, v, states[v]),
            float(arrays["deviation"][v]),
            *(_number(arrays[name][v]) for name in _WITH_OPEN if name in arrays),
        )
        for v in order.tolist()
    ]
    percent = f"{100 * plan.parameters.confidence:g}"
    names = (*_EFFECTS, *(name for name in _WITH_OPEN if name in arrays))
    return Table(
        f"Effect of '{plan.parameters.contrasted}' on every outcome, adjusted for site and for the "
        f"other columns of the formula, in {effect_units(plan)}, with {percent} % intervals. "
        f"{_NOTE}{_NOT_ALONE if 'open' in arrays else ''}",
        names,
        tuple(rows),
        voxels_of=image_views(plan),
        about={name: _ABOUT[name] for name in names},
    )


def image_views(plan: Glm) -> tuple[str, ...]:
    """Return the views of outcomes that are voxels, or vertices of a mesh.

    Statistics of component maps are excluded, because mixing maps with them as weights has no
    meaning.
    """
    views = plan.parameters.views
    voxels = [view.name for view in views if view.is_image and view.maps_file is None]
    images = [*voxels, *(view.name for view in views if view.mesh_files is not None)]
    return tuple(name for name in plan.parameters.outcome_views if name in images)


def averages_table(plan: Glm, arrays: Mapping[str, Array], withheld: Array) -> Table:
    """Return a table with one row for each group of outcomes."""
    states = np.where(withheld, "withheld: with an outcome of the group", REPORTED).tolist()
    sizes = (plan.columns.averages > 0).sum(axis=1)
    names = list(plan.parameters.averages)
    each = enumerate(zip(names, sizes.tolist(), strict=True))
    rows = [(name, int(n), *_numbers(plan, arrays, g, states[g])) for g, (name, n) in each]
    return Table(
        f"Mean effect of '{plan.parameters.contrasted}' on groups of outcomes, with errors of its "
        f"own: privacy noise averages out, and sampling errors if outcomes are not correlated. "
        f"{_NOTE} "
        f"{_UNSURE if plan.shape.noise > 0 else ''}".rstrip(),
        _MEANS,
        tuple(rows),
        about={name: _ABOUT[name] for name in _MEANS},
    )


def coefficient_tables(
    plan: Glm, found: Effects, every: Coefficients, unit: float, states: Sequence[str]
) -> dict[str, Table]:
    """Return tables of all coefficients of every outcome, and of their error covariances.

    ``unit`` converts the estimates' standard deviation into the reported one.
    """
    columns = plan.columns
    entries = (columns.group, *columns.covariates_of)
    names = tuple(entry.label for entry in entries)
    # Levels are -1 and 1, or 0 and 1 in units of a half: both are two units apart.
    units = np.array([2.0 if entry.levels else 1.0 for entry in entries])
    units[0] = 1.0
    values = unit * units[:, None] * every.values
    both = units[:, None] * units
    blocks = {"chance": every.sampling * both}
    if plan.parameters.refits:
        blocks["noise"] = unit**2 * every.noise * both
        blocks["design"] = every.inverse_moment * both
        blocks["moment"] = every.moment_noise / np.square(both)
    else:  # values contain the open cohort's slopes, and variances lack what its curve explains
        blocks["noise"] = unit**2 * (every.noise + every.usual) * both
    spread = unit**2 * found.sum_variances / found.divisor**2
    missing = (_MISSING,) * (1 + len(values))
    rows: list[tuple[Cell, ...]] = [
        (
            *label,
            *((float(spread[v]), *values[:, v].tolist()) if state == REPORTED else missing),
        )
        for v, (label, state) in enumerate(zip(columns.labels, states, strict=True))
    ]
    errors: list[tuple[Cell, ...]] = [
        (e.label, *e.compared, every.freedom, every.relative_divisor_variance, *numbers)
        for e, numbers in zip(entries, np.hstack([*blocks.values()]).tolist(), strict=True)
    ]
    of = tuple(f"{kind} {name}" for kind in blocks for name in names)
    return {
        COEFFICIENTS: Table(
            f"Every coefficient of every outcome, adjusted for site, in the outcome's "
            f"{effect_units(plan)}: a level against the first one, or per public standard "
            "deviation of a column with limits. 'chance' is the sampling variance of the first. "
            "Withheld outcomes have missing values (n/a), for the reason in the first contrast's "
            "table. `consortium contrast` computes other contrasts from them.",
            ("view", "entry", "chance", *names),
            tuple(rows),
            voxels_of=image_views(plan),
        ),
        ERRORS: Table(
            "Covariances of the coefficients: from sampling, relative to that of the first, and "
            "from privacy noise; the degrees of freedom of the sampling variance, and the variance "
            "of the common divisor relative to its square. 'design' is the inverse of the columns' "
            "second moment within sites, from which `consortium refit` computes models of fewer "
            "columns, and 'moment' the noise variance of each entry of that moment.",
            ("coefficient", "level", "reference", *_COMMON, *of),
            tuple(errors),
        ),
    }


def _number(value: float) -> float | str:
    return _MISSING if np.isnan(value) else float(value)


def _numbers(
    plan: Glm, arrays: Mapping[str, Array], place: int, state: str
) -> tuple[float | str, ...]:
    """Return the numbers of a row, whether it is a discovery, and its state."""
    if state != REPORTED:
        return (*(_MISSING for _ in _NUMBERS), "withheld", state)
    found = "yes" if arrays["q"][place] <= plan.parameters.discoveries else "no"
    return (*(float(arrays[name][place]) for name in _NUMBERS), found, state)
