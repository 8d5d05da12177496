"""Models of fewer columns from a finished `glm` that released all coefficients.

Least squares of a model that lacks columns, or whose levels are merged, are those of the whole
model under the restriction R β = 0: β - B Rᵀ (R B Rᵀ)⁻¹ R β, where B is the inverse second moment
of the columns within sites (Seber and Lee 2003, Linear Regression Analysis, section 3.8). All of it
was released, so a refit has no privacy loss. Variances of outcomes are those within sites, which
contain the variance that the removed columns explain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from pydantic import Field

from consortium.algorithms.base import Table
from consortium.algorithms.glm.formula import factors, without_levels, written_out
from consortium.algorithms.glm.kernels.contrast_regression import Estimates, false_discovery
from consortium.base.array import Array
from consortium.base.frozen_model import FrozenModel
from consortium.coordinator.contrast import effects_along, interval
from consortium.errors import OutputError, StudyError
from consortium.report.coefficients import ReleasedCoefficients

_NAMES = ("coefficient", "reference", "view", "entry")
_HEADINGS = (*_NAMES, "effect", "error", "t", "p", "q", "low", "high")


class Refit(FrozenModel):
    """A model that is computed from the coefficients of another."""

    formula: str
    """Columns, the one of interest first. Only terms of the finished model."""
    merge: tuple[str, ...] = Field(default=())
    """Levels that count as one, as ``ward=b+c``."""
    reference: tuple[str, ...] = Field(default=())
    """Level of a column that others are compared with, as ``ward=b``."""
    outcomes: tuple[str, ...] = Field(default=())
    """Patterns of outcomes, as ``Left-*`` or ``view.entry``; all if empty."""


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Effects of the first column of a refit."""

    labels: tuple[tuple[str, str], ...]
    """Name and reference of each coefficient, length C."""
    outcomes: tuple[tuple[str, str], ...]
    """View and entry of each outcome, length V."""
    estimates: tuple[Estimates, ...]
    """Of each coefficient, length V each."""

    @property
    def p(self) -> Array:
        """Two-sided p of all tests, length C V."""
        return np.concatenate([each.p for each in self.estimates])

    def table(self, caption: str, q: Array) -> Table:
        """Return a row for each coefficient and outcome, with the given q, length C V."""
        rows = []
        for place, (label, found) in enumerate(zip(self.labels, self.estimates, strict=True)):
            low, high = interval(found)
            own = q[place * len(found.p) : (place + 1) * len(found.p)]
            columns = (found.effects, found.errors, found.statistics, found.p, own, low, high)
            numbers = np.column_stack(columns).tolist()
            rows += [
                (*label, *outcome, *each)
                for outcome, each in zip(self.outcomes, numbers, strict=True)
            ]
        return Table(caption, _HEADINGS, tuple(rows))


def fit_again(released: ReleasedCoefficients, asked: Refit) -> FittedModel:
    """Compute a model from the coefficients of a finished one.

    Raises StudyError if the formula has other terms, or a level or outcome is unknown. Raises
    OutputError if the run did not release the second moment of its columns.
    """
    if released.inverse_moment is None:
        raise OutputError(
            "The run must have the column 'design' in its table of coefficient errors, and does "
            "not: it has an open cohort, or is of an earlier version. Run the model as a study."
        )
    model = _Model(released, asked)
    chosen = _chosen(released, asked.outcomes)
    labels, directions = model.compared()
    restricted = model.restricted
    found = tuple(effects_along(released, each, chosen, restricted) for each in directions)
    outcomes = tuple(released.labels[place] for place in chosen)
    return FittedModel(labels=labels, outcomes=outcomes, estimates=found)


def discovery_rates(models: Sequence[FittedModel], own: Array) -> list[Array]:
    """Return q of all tests of several refits, counted together with the run's own.

    Parameters
    ----------
    own : array
        p of the run's own contrast.
    """
    sizes = np.cumsum([len(own), *(len(model.p) for model in models)])
    q = false_discovery(np.concatenate([own, *(model.p for model in models)]))
    return np.split(q, sizes)[1 : len(models) + 1]


class _Model:
    """A refit's terms, levels and restrictions within the whole model."""

    def __init__(self, released: ReleasedCoefficients, asked: Refit) -> None:
        self._released = released
        self._terms = [without_levels(each.name) for each in released.entries]
        self._formula = _formula(asked.formula, self._terms)
        self._merged = self._levels(asked.merge, "merge")
        self._reference = self._levels(asked.reference, "reference")
        for column, groups in self._reference.items():
            if len(groups) > 1 or len(groups[0]) > 1:
                raise StudyError(
                    f"--reference: must be one level of '{column}', as in ward=b. Name one."
                )

    def _levels(self, texts: Sequence[str], option: str) -> dict[str, list[list[str]]]:
        """Return the levels that options name, by column.

        Raises StudyError if a column has no such levels, or is part of a product.
        """
        found = dict[str, list[list[str]]]()
        for text in texts:
            column, _, levels = text.partition("=")
            known = self._levels_of(column)
            named = levels.split("+")
            wrong = [level for level in named if level not in known]
            if wrong or column not in self._formula:
                raise StudyError(
                    f"--{option}: must be a column of the formula and levels of it, as in "
                    f"ward=b+c, got '{text}'. {self._known_levels}"
                )
            if any(column in factors(term) for term in self._formula if term != column):
                raise StudyError(
                    f"--{option}: '{column}' is part of a product in the formula, so its levels "
                    "must stay. Remove the product."
                )
            found.setdefault(column, []).append(named)
        for column, groups in found.items():
            taken = [level for group in groups for level in group]
            if len(taken) > len(set(taken)):
                raise StudyError(f"--{option}: a level of '{column}' is named twice.")
        return found

    @property
    def _known_levels(self) -> str:
        columns = [term for term in dict.fromkeys(self._terms) if self._levels_of(term)]
        each = (f"{column} ({', '.join(self._levels_of(column))})" for column in columns)
        return f"Columns with levels are {'; '.join(each) or 'none'}."

    def _levels_of(self, column: str) -> dict[str, int | None]:
        """Return the coefficient of each level of a column; the reference has none."""
        places = [place for place, term in enumerate(self._terms) if term == column]
        entries = [self._released.entries[place] for place in places]
        if not entries or not entries[0].level:
            return {}
        own: dict[str, int | None] = {entries[0].reference: None}
        return own | {e.level: p for e, p in zip(entries, places, strict=True)}

    @property
    def restricted(self) -> Array:
        """Matrix that turns the whole model's coefficients into those of the refit, K x K."""
        count = len(self._terms)
        unit = np.eye(count)
        rows = [unit[place] for place, term in enumerate(self._terms) if term not in self._formula]
        for column, groups in self._merged.items():
            levels = self._levels_of(column)
            for group in groups:
                first = self._direction(levels[group[0]])
                rows += [first - self._direction(levels[level]) for level in group[1:]]
        if not rows:
            return unit
        restrictions = np.array(rows)
        design = np.asarray(self._released.inverse_moment)
        across = design @ restrictions.T
        return np.asarray(unit - across @ np.linalg.solve(restrictions @ across, restrictions))

    def _direction(self, place: int | None) -> Array:
        """Return the coefficient of a level as a direction; 0 for the reference."""
        found = np.zeros(len(self._terms))
        if place is not None:
            found[place] = 1.0
        return found

    def compared(self) -> tuple[tuple[tuple[str, str], ...], list[Array]]:
        """Return names and directions of the coefficients of the first term."""
        term = self._formula[0]
        levels = self._levels_of(term)
        if not levels:
            places = [place for place, each in enumerate(self._terms) if each == term]
            names = tuple((self._released.entries[place].name, "") for place in places)
            return names, [self._direction(place) for place in places]
        groups = {level: [level] for level in levels}
        for group in self._merged.get(term, []):
            groups |= dict.fromkeys(group, group)
        ((chosen,),) = self._reference.get(term, [[next(iter(levels))]])
        reference = groups[chosen]
        distinct = [group for level, group in groups.items() if group[0] == level]
        others = [group for group in distinct if group is not reference]
        if not others:
            raise StudyError(f"--merge: at least two levels of '{term}' must remain.")
        base = self._direction(levels[reference[0]])
        names = tuple((f"{term}={'+'.join(group)}", "+".join(reference)) for group in others)
        return names, [self._direction(levels[group[0]]) - base for group in others]


def _formula(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return the terms of a refit's formula, the first one of interest.

    Raises StudyError if it is no formula, has a term that the whole model lacks, or asks for the
    effect of a square.
    """
    try:
        terms = written_out(text)
    except ValueError as error:
        raise StudyError(f"--{error}") from error
    strange = [term for term in terms if term not in known]
    if strange:
        raise StudyError(
            f"--formula: must have only terms of the finished model, "
            f"{', '.join(dict.fromkeys(known))}, got '{strange[0]}'. A new term requires a study."
        )
    if len(set(factors(terms[0]))) < len(factors(terms[0])):
        raise StudyError(
            f"--formula: the first term must not be a square, got '{terms[0]}', because clipping "
            "changes effects of squares. Name the column of interest first."
        )
    return terms


def _chosen(released: ReleasedCoefficients, patterns: Sequence[str]) -> list[int]:
    """Return places of the outcomes that any pattern names.

    Raises StudyError if a pattern names none.
    """
    if not patterns:
        return list(range(len(released.labels)))
    found = set[int]()
    for pattern in patterns:
        own = {
            place
            for place, (view, entry) in enumerate(released.labels)
            if fnmatchcase(entry, pattern) or fnmatchcase(f"{view}.{entry}", pattern)
        }
        if not own:
            shown = ", ".join(entry for _, entry in released.labels[:5])
            raise StudyError(
                f"--outcomes: must name outcomes that are not withheld, as {shown}, got "
                f"'{pattern}'."
            )
        found |= own
    return sorted(found)
