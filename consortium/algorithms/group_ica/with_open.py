"""Group ICA of a release and an open cohort: maps by both, confirmed by the release alone.

The open cohort has no noise, so it draws the maps. The release states which of them the hospitals
have, and adds networks that only the hospitals have. A map that the release does not confirm is
withheld.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Release, Result, Table
from consortium.algorithms.findings import Finding
from consortium.algorithms.group_ica.kernels.agreement import REACH_WITH_OPEN
from consortium.algorithms.group_ica.kernels.open_posterior import (
    UNLIKE,
    Combined,
    EntryErrors,
    OpenMean,
    Strengths,
    combine,
    measure_strengths,
)
from consortium.algorithms.group_ica.kernels.smooth_null import SmoothNull
from consortium.algorithms.group_ica.result import (
    assemble,
    group_release,
    make_result,
)
from consortium.algorithms.group_ica.separation import (
    GroupRelease,
    Separated,
    open_maps,
    separate_mean,
    separate_release,
)
from consortium.algorithms.open_cohort import OpenDirections
from consortium.base.array import Array
from consortium.base.formatting import count
from consortium.kernels.component_bootstrap import Networks

if TYPE_CHECKING:
    from consortium.algorithms.group_ica.centre import GroupIca

HERE = "found in these hospitals"
NEW = "new in these hospitals"
OPEN_ONLY = "open cohort only"
UNCONFIRMED = "not confirmed"
UNCERTAIN = "too uncertain"
ALIKE = 0.7
"""Least correlation of two maps of the same network."""
_SIDED = 1.96
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class _Maps:
    """Maps of both sources; arrays of shape (R,) for each of them."""

    separated: Separated
    strengths: Strengths
    confirmed: NDArray[np.bool_]
    """Whether the release by itself shows the map."""
    new: NDArray[np.bool_]
    """Whether the open cohort does not have the map."""

    @property
    def states(self) -> list[str]:
        """State of each map, in words."""
        found = self.separated.found
        weaker = self.strengths.ratios + _SIDED * self.strengths.errors < 1.0
        conditions = (found & self.new, found, self.confirmed, weaker)
        words = np.select(conditions, (NEW, HERE, UNCERTAIN, OPEN_ONLY), UNCONFIRMED)
        return [str(word) for word in words]


@lru_cache(maxsize=4)  # a cohort is one object for each space
def mean_of_cohort(cohort: OpenDirections, kept: int) -> OpenMean:
    """Return the mean of the leading directions of an open cohort's participants."""
    return OpenMean.of(cohort.values[:, :, :kept])


def result_with_open(release: Release, plan: GroupIca, cohort: OpenMean) -> Result:
    """Make the result of a release and an open cohort, deterministic for the study's seed.

    Returns
    -------
    Result
        As `make_result`. Maps are of both, and a map that the release does not confirm is withheld.
    """
    generator = np.random.default_rng(plan.parameters.seed)
    alone = plan.by_itself
    released = group_release(release, alone)
    both = combine(cohort, released.matrix, released.deviation, released.persons, generator)
    made = confirmed_result(released, both, cohort, generator)
    if made is None:
        return _described(make_result(release, alone), both, plan, taken=False)
    return _described(made, both, plan, taken=True)


def published_result(release: Release, plan: GroupIca) -> Result:
    """Make the result that a study publishes, with its open cohort if it has one."""
    cohort = plan.open_mean
    if cohort is None:
        return make_result(release, plan)
    return result_with_open(release, plan, cohort)


def confirmed_result(
    released: GroupRelease, both: Combined, cohort: OpenMean, generator: np.random.Generator
) -> Result | None:
    """Make maps of a combination, each confirmed by the hospitals' own data.

    Parameters
    ----------
    released : GroupRelease
        Estimate that contains no open participant, of a plan without an open cohort.

    Returns
    -------
    Result or None
        None if the open cohort differs too much, or if nothing stands out of the noise.
    """
    if both.between > UNLIKE:
        return None
    seed = released.plan.parameters.seed
    by_release = separate_release(released, np.random.default_rng(seed))
    maps = _maps(released, by_release, both, cohort, generator)
    if maps is None:
        return None
    return _with_states(assemble(maps.separated, released, REACH_WITH_OPEN), maps)


def _maps(
    released: GroupRelease,
    by_release: Separated,
    both: Combined,
    cohort: OpenMean,
    generator: np.random.Generator,
) -> _Maps | None:
    """Return maps of both sources, and those that only the release has found; None if no map."""
    persons = max(round(both.persons), 1)
    shape = replace(released.shape, subjects=(persons,), samples=(persons,), sites=())
    drawn = separate_mean(
        replace(released, matrix=both.matrix, deviation=both.deviation, shape=shape),
        EntryErrors(cohort.vectors, np.sqrt(both.stated)),
        generator,
    )
    if drawn.networks is None:
        return None
    sources = _Sources(
        released=released,
        cohort=cohort,
        nulls=released.nulls(by_release.directions),
        open_maps=open_maps(released.plan, cohort.matrix, released.paint),
    )
    openly, known = sources.counterparts(drawn.networks.weights)
    strengths = sources.strengths(openly)
    confirmed = strengths.confirmed(np.where(known, 0.0, both.chance))
    drawn = replace(drawn, found=drawn.found & confirmed)
    maps = _Maps(drawn, strengths, confirmed, ~known & strengths.only_here)
    return _with_more(maps, by_release, sources)


@dataclass(frozen=True, eq=False)
class _Sources:
    """A release and an open cohort, for measuring maps in both."""

    released: GroupRelease
    cohort: OpenMean
    nulls: Sequence[SmoothNull]
    """Participants without networks that are most like the release."""
    open_maps: Array
    """Weights of the open cohort's own maps, shape (d, R')."""

    def counterparts(self, weights: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return the open cohort's map of each network, or the map itself; and whether it has one.

        The release's noise has not chosen a map of the open cohort.
        """
        alike = _correlations(self.released, weights, self.open_maps)
        known = alike.max(axis=1, initial=0.0) >= ALIKE
        return np.where(known, self.open_maps[:, alike.argmax(axis=1)], weights), known

    def strengths(self, weights: Array) -> Strengths:
        """Return the strengths of maps (d x R) in both."""
        return measure_strengths(
            release=self.released.matrix,
            cohort=self.cohort,
            weights=weights,
            nulls=self.nulls,
            deviation=self.released.deviation,
            persons=self.released.persons,
        )


def _correlations(released: GroupRelease, first: Array, second: Array) -> Array:
    """Return absolute correlations of painted maps, shape (R, R')."""
    ours, others = (each - each.mean(axis=0) for each in map(released.paint, (first, second)))
    norms = np.outer(np.linalg.norm(ours, axis=0), np.linalg.norm(others, axis=0))
    return np.asarray(np.abs(ours.T @ others) / np.maximum(norms, _TINY))


def _with_more(maps: _Maps, by_release: Separated, sources: _Sources) -> _Maps:
    """Add the networks that the release alone has found and that no found maps explain."""
    drawn = maps.separated.networks
    extra = by_release.networks
    if extra is None or drawn is None:
        return maps
    found = drawn.weights[:, maps.separated.found]
    explained = _explained(sources.released, extra.weights, found)
    more = by_release.found & (explained < ALIKE)
    if not more.any():
        return maps
    weights = extra.weights[:, more]
    _, known = sources.counterparts(weights)
    own = sources.strengths(weights)
    return _Maps(
        separated=replace(
            maps.separated,
            networks=_joined(drawn, extra, more),
            expected=np.concatenate([maps.separated.expected, by_release.expected[more]]),
            found=np.concatenate([maps.separated.found, by_release.found[more]]),
        ),
        strengths=maps.strengths.joined(own),
        confirmed=np.concatenate([maps.confirmed, by_release.found[more]]),
        new=np.concatenate([maps.new, own.only_here & ~known]),
    )


def _explained(released: GroupRelease, weights: Array, others: Array) -> Array:
    """Return the multiple correlation of each painted map with the others, shape (R,)."""
    ours, basis = (each - each.mean(axis=0) for each in map(released.paint, (weights, others)))
    axes = np.linalg.qr(basis)[0]
    norms = np.linalg.norm(ours, axis=0)
    return np.asarray(np.linalg.norm(axes.T @ ours, axis=0) / np.maximum(norms, _TINY))


def _joined(first: Networks, second: Networks, chosen: NDArray[np.bool_]) -> Networks:
    return Networks(
        np.hstack([first.weights, second.weights[:, chosen]]),
        np.hstack([first.correlations, second.correlations[:, chosen]]),
        np.concatenate([first.replayed, second.replayed[:, :, chosen]], axis=2),
        np.concatenate([first.contrast, second.contrast[chosen]]),
    )


def _with_states(made: Result, maps: _Maps) -> Result:
    """Add each map's strength in the hospitals, and its state, to table and headline."""
    table = made.tables["components"]
    states = maps.states
    strengths = [
        Finding(ratio, ratio - _SIDED * error, ratio + _SIDED * error)
        for ratio, error in zip(
            maps.strengths.ratios.tolist(), maps.strengths.errors.tolist(), strict=True
        )
    ]
    rows = tuple(
        (*row[:-1], strength, state, row[-1])
        for row, strength, state in zip(table.rows, strengths, states, strict=True)
    )
    caption = (
        f"{table.caption} Strength in hospitals: that of the map in the hospitals' release by "
        "itself, divided by that in the open cohort, with an interval of 95 %. A map that the "
        "release does not confirm, and that is surely weaker there, is of the open cohort only. "
        "A network that only the release shows is new in these hospitals."
    )
    names = (*table.columns[:-1], "strength in hospitals", "network", table.columns[-1])
    return replace(
        made,
        numbers={**made.numbers, "confirmed": int(maps.confirmed.sum())},
        tables={"components": Table(caption, names, rows)},
        captions=replace(
            made.captions, headline=_headline(states), found=HERE in states or NEW in states
        ),
    )


def _headline(states: Sequence[str]) -> str:
    """State how many networks each source shows."""
    words = (HERE, NEW, OPEN_ONLY, UNCONFIRMED, UNCERTAIN)
    many = {state: states.count(state) for state in words}
    parts = [f"{count(many[HERE] + many[NEW], 'network')} found in these hospitals"]
    if new := many[NEW]:
        parts.append(f"{new} of them {'is' if new == 1 else 'are'} not in the open cohort")
    if unconfirmed := many[OPEN_ONLY] + many[UNCONFIRMED]:
        parts.append(
            f"{count(unconfirmed, 'map')} of the open cohort not confirmed by the hospitals"
        )
    if uncertain := many[UNCERTAIN]:
        parts.append(f"{count(uncertain, 'map')} too uncertain to be shown")
    return f"{'; '.join(parts)}."


def _described(result: Result, both: Combined, plan: GroupIca, *, taken: bool) -> Result:
    """Add how the two sources compare."""
    cohort = plan.open_cohort
    assert cohort is not None  # noqa: S101 - for the type checker
    numbers = {
        "open_participants": cohort.persons,
        "release_weight": both.release_weight if taken else 1.0,
        "between_populations": both.between,
        "directions_apart": both.apart.shape[1],
    }
    sentence = _source_sentence(both, cohort.persons, taken=taken)
    table = result.tables.get("components")
    tables = dict(result.tables)
    if table is not None:
        tables["components"] = replace(table, caption=f"{table.caption} {sentence}")
    return replace(result, numbers={**result.numbers, **numbers}, tables=tables)


def cohort_remark(cohort: OpenDirections) -> str:
    """Explain the open cohort of a study of `group_ica` to a hospital's people."""
    source = f" ({cohort.source})" if cohort.source else ""
    return (
        f"The study's file of an open cohort has {count(cohort.persons, 'participant')}{source}. "
        "It is a constant of the study and changes no privacy loss. If one of them is also in a "
        "hospital, the file is public as before, and the release protects this participant like "
        "any other."
    )


def _source_sentence(both: Combined, persons: int, *, taken: bool) -> str:
    if not taken:
        return (
            f"The study's open cohort of {count(persons, 'participant')} differs too much from the "
            f"hospitals' participants ({both.between:.2f} of a participant's variance; at most "
            f"{UNLIKE:g} is allowed), so nothing was taken from it."
        )
    return (
        f"The maps are of both sources: {both.release_weight:.0%} of the weight is the "
        f"release's, the rest that of {count(persons, 'open participant')}. The two populations "
        f"differ by {both.between:.2f} of a participant's variance."
    )
