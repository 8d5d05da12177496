"""The interface of an analysis: a plan that is made once, from its parameters and public sizes.

The centre's half is a generator: it yields a `Query`, receives the `Release`, and returns a
`Result`. The site's half is a pure function of the site's own plan, its data and the query. The
engine adds noise and carries out secure aggregation, accounting and the transcript. An analysis
never sees them. Queries, releases, public sizes and results are defined in modules of this package,
and imported from here.

Examples
--------
A whole analysis: the share of participants whose first entry is positive. A site's half receives
the planned bound, and answers with the mean of its participants' values, each within the bound. The
result has the share with its interval, or withholds it if the noise hides it.
`tests/contract/test_example.py` runs the contract tests on this analysis.

>>> import numpy as np
>>> from consortium.algorithms.findings import Finding
>>> from consortium.privacy.bounds import Bound
>>> def positive(plan, data, query, bound):
...     return bound.norm * np.mean(data.table()[:1] > 0, axis=1)
>>> class Share(AnalysisPlan):
...     name, title, takes, needs_means = "positives", "share of positives", "features", True
...     Parameters = AnalysisParameters
...     statistics = {"positive": positive}
...     cases = (Case(views=(("x", 2),)),)
...     releases = (PlannedRelease("share", "positive", 1, Bound(1.0, cone=True), 1, 1.0),)
...
...     def run(self):
...         release = yield Query("share", "positive")
...         share = float(release.values[0]) if release.deviation < 0.1 else np.nan
...         reach = 2 * np.hypot(release.deviation, 0.5 / self.units_in(release).sum() ** 0.5)
...         view, entry = self.shape.entry_names[0]
...         row = (view, entry, Finding(share, share - reach, share + reach))
...         table = Table("Share with its interval.", ("view", "entry", "share"), (row,))
...         return Result({}, {"noise": release.deviation}, tables={"share": table})

The plan is made from public sizes; one participant moves the release by at most √2/500:

>>> shape = Extent(2, views=(("x", 2),)).shape((300, 200), (300, 200), "subject")
>>> plan = Share(AnalysisParameters(), shape)
>>> (planned,) = plan.releases
>>> round(planned.bound.sensitivity(sum(shape.units)), 6)
0.002828

The centre's half sends a query, receives the release, and returns:

>>> run = plan.run()
>>> next(run).statistic
'positive'
>>> try:
...     run.send(Release(np.array([0.25]), deviation=0.01, sites=(0, 1)))
... except StopIteration as stop:
...     stop.value.numbers
{'noise': 0.01}
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.expectation import Expectation
from consortium.algorithms.query import (
    MOST_ENTRIES,
    MOST_ENTRIES_A_ROUND,
    MOST_MOMENT_FEATURES,
    MOST_SOLVED_FEATURES,
    NeighbourAnswers,
    PlannedRelease,
    Query,
    Release,
    Released,
)
from consortium.algorithms.results import MOST_ROWS, Captions, Result, Table
from consortium.algorithms.shape import (
    AnyPlaces,
    Extent,
    Places,
    Shape,
    SurfacePlaces,
    Templates,
    units_of,
)
from consortium.algorithms.units import Units
from consortium.base.array import Array
from consortium.base.frozen_model import FrozenModel
from consortium.privacy.bounds import Unit

__all__ = [
    "MOST_ENTRIES",
    "MOST_ENTRIES_A_ROUND",
    "MOST_MOMENT_FEATURES",
    "MOST_ROWS",
    "MOST_SOLVED_FEATURES",
    "AnalysisParameters",
    "AnalysisPlan",
    "AnyPlaces",
    "Array",
    "Captions",
    "Case",
    "Expectation",
    "Extent",
    "Local",
    "NeighbourAnswers",
    "Places",
    "PlannedRelease",
    "Query",
    "Release",
    "Released",
    "Resolution",
    "Result",
    "Run",
    "Serious",
    "Shape",
    "SiteData",
    "SurfacePlaces",
    "Table",
    "Takes",
    "Templates",
    "units_of",
]

_CLEARLY = 3.0
"""Standard deviations."""
Takes = Literal["series", "features", "any"]
Resolution = Literal["features", "maps"]
Run = Generator[Query, Release, Result]


class Serious(str):
    """A warning for a site's people, despite which they may approve explicitly."""

    __slots__ = ()


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
        """Units of privacy: participants, or volumes."""

    @property
    def person_hashes(self) -> NDArray[np.uint64]:
        """One number per participant, in the order of ``lengths``.

        A participant's number is the same whoever else takes part.
        """

    @property
    def voxels(self) -> int:
        """V, rows of every full-resolution block."""

    def blocks(self, resolution: Resolution = "features") -> Iterator[Array]:
        """Yield one array per subject, each time in the same order.

        D x T_m of the analysed features, or V x T_m of the voxels of full-resolution maps.
        """

    def table(self) -> Array:
        """Return D x M_s, one feature vector per participant; only in a study of features.

        For units with several rows it is K D x M_s: their first rows, below them the second ones.
        """

    def reduced(self, basis: Array) -> Array:
        """Return ``basis.T @ X`` (R x N_s) for a D x R basis, keeping the last one in memory."""


Local = Callable[[Any, SiteData, Query, Any], Array]
"""Statistic of the site's own plan, its data, the query, and the `Bound` of its answer."""


@dataclass(frozen=True)
class Case:
    """An example of an analysis with few participants, which ends in a moment.

    Tests of the contract, of sensitivities and of hostile queries, and the searches of
    `benchmarks` and `tests.long`, run every case of every analysis.

    Examples
    --------
    >>> Case({"target": "age", "bound": 1.5}, views=(("x", 4), ("age", 1))).unit
    'subject'
    """

    analysis: Mapping[str, Any] = field(default_factory=dict)
    """A study file's ``analysis``."""
    unit: Unit = "subject"
    views: tuple[tuple[str, int], ...] = ()
    """Name and number of entries of every view; none for a study of image series."""
    templates: int = 0
    """Public maps next to the study file, if the analysis names any."""
    mesh: bool = False
    """Whether image series are on the cortex's surface."""
    voxels: bool = False
    """Whether they are in voxels, whose places are known; those of regions have none."""

    @property
    def rows(self) -> int:
        """Rows of a unit."""
        return int(self.analysis["units"]["most_rows"]) if "units" in self.analysis else 1


class AnalysisParameters(FrozenModel):
    """A study's ``analysis``; what most analyses don't state has an answer here."""

    @property
    def may_lack(self) -> tuple[str, ...]:
        """Views whose entries a participant may lack."""
        return ()

    @property
    def grouped(self) -> Units | None:
        """Definition of a unit of privacy, if a unit may have several rows."""
        return None

    @property
    def refits(self) -> bool:
        """Whether further models can be computed from the result, without another release."""
        return False

    @property
    def template_file(self) -> str | None:
        """File of public maps next to the study file."""
        return None

    @property
    def open_file(self) -> str | None:
        """File of an open cohort next to the study file."""
        return None

    @property
    def without_global_signal(self) -> bool:
        """Whether the mean over all voxels is removed from each participant's series."""
        return False

    @property
    def declared(self) -> tuple[str, ...]:
        """Information that a study makes public by stating it, in words."""
        return ()

    def check_sites(self, sites: Sequence[str]) -> None:
        """Raise StudyError if sites that are named don't fit the study's."""

    def check_sizes(self, participants: Mapping[str, int]) -> None:
        """Raise StudyError if sizes that are named contradict a study's nominal ones."""

    def joined(self, sites: Sequence[str], more: Sequence[str]) -> Self | None:
        """Return the same for a study with more sites of the mean size, or None if impossible."""
        del sites, more
        return self


P = TypeVar("P", bound=AnalysisParameters)


class AnalysisPlan(ABC, Generic[P]):
    """A whole analysis, made once from its parameters and the public sizes; `REGISTRY` has all.

    Parameters
    ----------
    parameters : AnalysisParameters
        Of the analysis' own model.
    """

    name: ClassVar[str]
    """Key in the registry and value of a study's ``algorithm``."""
    title: ClassVar[str]
    """Name for people."""
    takes: ClassVar[Takes]
    """Image series, D x T_m numbers per participant; feature vectors, D each; or either."""
    needs_means: ClassVar[bool] = False
    """Whether it makes no sense on detrended data."""
    Parameters: ClassVar[type[AnalysisParameters]]
    """Model of a study's ``analysis``."""
    statistics: ClassVar[Mapping[str, Local]]
    """Site's half: the mean over the site's units of a statistic clipped to the bound."""
    cases: ClassVar[Sequence[Case]]
    """Examples that together ask for every statistic, in every unit that it is for."""

    def __init__(self, parameters: P, shape: Shape) -> None:
        self.parameters = parameters
        self.shape = shape

    @property
    @abstractmethod
    def releases(self) -> tuple[PlannedRelease, ...]:
        """Every release that `run` can make, at the worst."""

    @abstractmethod
    def run(self) -> Run:
        """Carry out the centre's half."""

    def present(self, release: Release) -> tuple[int, ...]:
        """Return indices of the sites whose answers are in a release."""
        return release.sites or tuple(range(len(self.shape.units)))

    def units_in(self, release: Release) -> Array:
        """Return estimated numbers of units of the sites in a release, in the order of its rows.

        Returns
        -------
        array of float, one for each of `present`
            Nominal numbers where nothing was counted.
        """
        units = release.units or self.shape.units
        return np.array([units[site] for site in self.present(release)], dtype=np.float64)

    def sites_with_units(self, release: Release) -> tuple[int, ...]:
        """Return the sites in a release whose estimated number of units differs from zero.

        A constant of any other site would have no participants to be estimated from.
        """
        pairs = zip(self.present(release), self.units_in(release), strict=True)
        found = tuple(site for site, many in pairs if many > _CLEARLY * release.units_deviation)
        return found or self.present(release)

    def estimated_shape(self, release: Release) -> Shape:
        """Return public sizes with the estimated numbers of units in place of the nominal ones.

        Volumes of a participant stay as the study states them. Numbers are rounded.
        """
        return self.shape.with_units(release.units) if release.units else self.shape

    def planned(self) -> tuple[PlannedRelease, ...]:
        """Return every release of a study that is expected to find something.

        Raises StudyError if the parameters don't fit the sizes, or the forecast finds nothing.
        """
        releases = self.releases
        self.refuse_hopeless()
        return releases

    def refuse_hopeless(self) -> None:
        """Raise StudyError if nothing is expected to be seen."""

    def foretell(self) -> Table | None:
        """Return the forecast of the study, and of similar ones; None without a forecast."""
        return None

    def expect(self) -> tuple[Expectation, ...]:
        """Return forecasts of the study, the most important number first; may be empty."""
        return ()

    def withheld(self) -> str:
        """Return which forecasts are omitted, and why, in a sentence; empty if none is."""
        return ""

    def worth(self) -> str:
        """Return the worth of the releases to a hospital in participants, a sentence or empty."""
        return ""

    @property
    def computed(self) -> Mapping[str, Array | float]:
        """Numbers that a plan searches, draws or solves for, by name.

        Another version of a library may find others. Before the first round sites and centre
        compare them to about six digits.
        """
        return {}

    def remarks(self) -> tuple[str, ...]:
        """Return further public information that the name doesn't suggest, a sentence each.

        For plans, and for a site's people before their approval.
        """
        return ()

    def compare(self, site: int, data: SiteData) -> tuple[str, ...]:
        """Return public numbers that a site's data contradict, for its people before approval.

        No message of the site may depend on it: a refusal would reveal single participants.
        """
        del site, data
        return ()
