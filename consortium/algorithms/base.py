"""The one shape of an algorithm.

The centre's half is a generator: it yields a `Query`, is sent the
`Release`, and returns a `Result`. The site's half is a pure function of the site's
data and the query. Noise, secure aggregation, accounting and the transcript are
the engine's business; an algorithm never sees them. What the two halves exchange, what is public
of the data, and what comes out are defined beside this file, and imported from here.

Examples
--------
A whole analysis: the share of persons whose first entry is positive. A site's half is given the
planned bound, and answers with a mean over its persons, none of whom counts for more.

>>> import numpy as np
>>> from consortium.base.frozen_model import FrozenModel
>>> def positive(data, query, bound):
...     return bound.norm * np.mean(data.table()[:1] > 0, axis=1)
>>> class Share:
...     name, title, takes, needs_means = "share", "share of positives", "features", True
...     Parameters = FrozenModel
...     statistics = {"positive": positive}
...     cases = (Case(views=(("x", 2),)),)
...
...     def releases(self, parameters, shape):
...         return (PlannedRelease("share", "positive", 1, Bound(1.0, cone=True), 1, 1.0),)
...
...     def run(self, parameters, shape):
...         release = yield Query("share", "positive")
...         return Result({"share": release.values}, {"noise": release.deviation})

The plan is made from public sizes; one person moves what is released by √2/500 at the most:

>>> shape = Extent(2, views=(("x", 2),)).shape((300, 200), (300, 200), "subject")
>>> (planned,) = Share().releases(FrozenModel(), shape)
>>> round(planned.bound.sensitivity(sum(shape.units)), 6)
0.002828

The centre's half asks, is sent what was released, and returns:

>>> run = Share().run(FrozenModel(), shape)
>>> next(run).statistic
'positive'
>>> try:
...     run.send(Release(np.array([0.25]), deviation=0.01, sites=(0, 1)))
... except StopIteration as stop:
...     stop.value.numbers
{'noise': 0.01}
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import BaseModel

from consortium.algorithms.expectation import Expectation
from consortium.algorithms.query import (
    MOST_ENTRIES,
    MOST_ENTRIES_A_ROUND,
    MOST_MOMENT_FEATURES,
    MOST_SOLVED_FEATURES,
    Argument,
    Array,
    Fixed,
    Form,
    NeighbourAnswers,
    PlannedRelease,
    Query,
    Release,
    Released,
    form_of,
    forms_of,
)
from consortium.algorithms.results import MOST_ROWS, Captions, Result, Table
from consortium.algorithms.shape import Extent, Places, Shape, Templates, units_of
from consortium.privacy.bounds import Bound, Unit

__all__ = [
    "MOST_ENTRIES",
    "MOST_ENTRIES_A_ROUND",
    "MOST_MOMENT_FEATURES",
    "MOST_ROWS",
    "MOST_SOLVED_FEATURES",
    "Algorithm",
    "Argument",
    "Array",
    "Captions",
    "Case",
    "ChecksSizes",
    "Compares",
    "Expectation",
    "Expects",
    "Extent",
    "Fixed",
    "Foretells",
    "Form",
    "Local",
    "NamesSites",
    "NamesTemplates",
    "NeighbourAnswers",
    "Places",
    "PlannedRelease",
    "Query",
    "Release",
    "Released",
    "Remarks",
    "Resolution",
    "Result",
    "Run",
    "Shape",
    "SiteData",
    "Table",
    "Takes",
    "Templates",
    "Withholds",
    "form_of",
    "forms_of",
    "units_of",
]

Takes = Literal["series", "features", "any"]
Resolution = Literal["features", "maps"]
Run = Generator[Query, Release, Result]


class SiteData(Protocol):
    """A site's data as its algorithms see it: blocks that are read one at a time."""

    @property
    def unit(self) -> Unit:
        """Unit of privacy."""

    @property
    def extent(self) -> Extent:
        """Numbers of features and voxels, and the views."""

    @property
    def features(self) -> int:
        """D, rows of every block."""

    @property
    def lengths(self) -> Sequence[int]:
        """Volumes of each subject."""

    @property
    def units(self) -> int:
        """Units of privacy: persons, or volumes."""

    @property
    def voxels(self) -> int:
        """V, rows of every full-resolution block."""

    def blocks(self, resolution: Resolution = "features") -> Iterator[Array]:
        """Yield one array per subject, each time in the same order.

        D x T_m of what is analysed, or V x T_m of the voxels of full-resolution maps.
        """

    def table(self) -> Array:
        """D x M_s, one feature vector per person; of a study of features only."""

    def reduced(self, basis: Array) -> Array:
        """Return ``basis.T @ X`` (R x N_s) for a D x R basis, keeping the last one in memory."""


Local = Callable[[SiteData, Query, Bound], Array]


@dataclass(frozen=True)
class Case:
    """An example of an analysis: a few persons' data are enough, and it ends in a moment.

    Tests of the contract, of sensitivities and of hostile queries, and the searches of
    `benchmarks` and `tests.long`, run every case of every analysis.

    Parameters
    ----------
    analysis : mapping
        A study file's ``analysis``.
    unit : {'subject', 'timepoint'}
    views : tuple of (str, int)
        Name and number of entries of every view; none for a study of image series.
    templates : int
        Public maps beside the study file, if the analysis names any.

    Examples
    --------
    >>> Case({"target": "age", "bound": 1.5}, views=(("x", 4), ("age", 1))).unit
    'subject'
    """

    analysis: Mapping[str, Any] = field(default_factory=dict)
    unit: Unit = "subject"
    views: tuple[tuple[str, int], ...] = ()
    templates: int = 0


@runtime_checkable
class NamesSites(Protocol):
    """Parameters that name sites of the study."""

    def check_sites(self, sites: Sequence[str]) -> None:
        """Raise StudyError if they don't fit the study's sites."""


@runtime_checkable
class ChecksSizes(Protocol):
    """Parameters that state how many persons sites have."""

    def check_sizes(self, sites: Sequence[str], subjects: Sequence[int]) -> None:
        """Raise StudyError if a plan is asked for other numbers than those stated.

        Not for a run: a site that has others answers all the same.
        """


@runtime_checkable
class NamesTemplates(Protocol):
    """Parameters that name a file of public maps beside the study file."""

    @property
    def templates(self) -> str:
        """The file's name."""


@runtime_checkable
class Foretells(Protocol):
    """An algorithm that says before a run what its study will see."""

    def foretell(self, parameters: Any, shape: Shape) -> Table:
        """What to expect of the study, and of the nearest others."""


@runtime_checkable
class Expects(Protocol):
    """An algorithm whose forecast is numbers, for any study near a given one."""

    def expect(self, parameters: Any, shape: Shape) -> tuple[Expectation, ...]:
        """What the study is expected to reach; the most important number first."""


@runtime_checkable
class Withholds(Protocol):
    """An algorithm that leaves something out of its forecast, or has none."""

    def withheld(self, parameters: Any, shape: Shape) -> str:
        """What is not foretold, and why, in a sentence; empty if nothing is left out."""


@runtime_checkable
class Remarks(Protocol):
    """An algorithm that says, before a run, what more becomes public than its name lets expect."""

    def remarks(self, parameters: Any, shape: Shape) -> tuple[str, ...]:
        """A sentence each, for plans and for a site's people before they say yes."""


@runtime_checkable
class Compares(Protocol):
    """An algorithm whose study states public numbers that a site's own data may contradict."""

    def compare(self, parameters: Any, shape: Shape, site: int, data: SiteData) -> tuple[str, ...]:
        """What differs, a sentence each, for the site's own people before they say yes.

        Nothing that the site sends may depend on it: a refusal would tell of single persons.
        """


class Algorithm(Protocol):
    """A whole algorithm; `REGISTRY` maps its name to one of these."""

    @property
    def name(self) -> str:
        """Key in the registry and value of a study's ``algorithm``."""

    @property
    def title(self) -> str:
        """Name for people."""

    @property
    def takes(self) -> Takes:
        """Image series, D x T_m numbers per person; feature vectors, D per person; or either."""

    @property
    def needs_means(self) -> bool:
        """Whether it makes no sense on detrended data."""

    @property
    def Parameters(self) -> type[BaseModel]:  # noqa: N802 - a class
        """Model of a study's ``analysis``."""

    @property
    def statistics(self) -> Mapping[str, Local]:
        """Site's half: the mean over the site's units of a statistic clipped to the bound."""

    @property
    def cases(self) -> Sequence[Case]:
        """Examples that together ask for every statistic, in every unit that it is for."""

    def releases(self, parameters: Any, shape: Shape) -> tuple[PlannedRelease, ...]:
        """Every release that `run` can make, at the worst."""

    def run(self, parameters: Any, shape: Shape) -> Run:
        """Centre's half."""
