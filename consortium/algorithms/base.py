"""The one shape of an algorithm.

The centre's half is a generator: it yields a `Query`, is sent the
`Release`, and returns a `Result`. The site's half is a pure function of the site's
data and the query. Noise, secure aggregation, accounting and the transcript are
the engine's business; an algorithm never sees them.

Examples
--------
A whole analysis: the share of persons whose first entry is positive. A site's half is given the
planned bound, and answers with a mean over its persons, none of whom counts for more.

>>> from consortium.frozen_model import FrozenModel
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

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from consortium.algorithms.findings import Cell, Finding, ImageSet
from consortium.errors import StudyError
from consortium.privacy.bounds import Bound, Unit

Array = NDArray[Any]
Argument = Array | float | int | str
Released = Literal["sum", "each"]
Takes = Literal["series", "features", "any"]
Resolution = Literal["features", "maps"]
Form = tuple[int, ...] | type[float] | type[int] | type[str]
Fixed = Mapping[str, Argument | Callable[[], Array]]

MOST_ENTRIES = 50_000_000
"""Of a message: 400 MB."""
MOST_ENTRIES_A_ROUND = 5_000_000
"""Of a message of which there are hundreds: 40 MB each."""
MOST_MOMENT_FEATURES = 6_000
"""Whose second moment is released: 18 million numbers, 144 MB a message and 288 MB in memory."""
MOST_SOLVED_FEATURES = 3_000
"""Whose second moment is solved as a whole: 4.5 million numbers a message."""
MOST_ROWS = 1_000
"""Of a table in a result."""


def units_of(unit: Unit, lengths: Sequence[int]) -> int:
    """Units of privacy of persons with so many volumes each."""
    return len(lengths) if unit == "subject" else sum(lengths)


@dataclass(frozen=True, eq=False)
class Places:
    """Where the voxels of a study are: public.

    Parameters
    ----------
    coordinates : array, shape (D, 3)
        Centres of the features' voxels in mm.
    volume : float
        Of a voxel, in mm³.
    fine : array, shape (V, 3), optional
        Centres of the voxels of full-resolution maps; by default the same.
    """

    coordinates: Array
    volume: float
    fine: Array | None = None


@dataclass(frozen=True)
class Extent:
    """How many numbers describe a person, whoever it is: public.

    Parameters
    ----------
    features : int
        D, rows of every data block (voxels in the study's mask, regions, entries of all views).
    voxels : int
        V, rows of a full-resolution map; 0 if they are the features.
    views : tuple of (str, int)
        Name and number of entries of every view of a study of feature vectors.
    places : Places, optional
        Where the features are, if they are voxels.
    """

    features: int
    voxels: int = 0
    views: tuple[tuple[str, int], ...] = ()
    places: Places | None = field(default=None, compare=False, repr=False)

    def shape(self, subjects: Sequence[int], samples: Sequence[int], unit: Unit) -> Shape:
        """Put the sites' sizes beside it."""
        sizes = tuple(subjects), tuple(samples)
        return Shape(self.features, *sizes, unit, self.voxels, self.views, places=self.places)


@dataclass(frozen=True)
class Shape:
    """What is public about the data: never derived from anybody's values.

    Parameters
    ----------
    features : int
        D, rows of every data block (voxels in the study's mask).
    subjects : tuple of int
        M_s, persons per site, in the order of the study's sites.
    samples : tuple of int
        N_s, volumes per site.
    unit : {'subject', 'timepoint'}
    voxels : int
        V, rows of a full-resolution map; 0 if they are the features.
    views : tuple of (str, int)
        Name and number of entries of every view of a study of feature vectors, which stacks them:
        their sum is D.
    sites : tuple of str
        Names of the sites that take part; a plan fills them in.
    noise : float
        Standard deviation over sensitivity of a release that uses the whole budget; a plan fills
        it in, and 0 stands for no noise.
    places : Places, optional
        Where the features are, if they are voxels.

    Examples
    --------
    >>> views = (("clinic", 3), ("age", 1))
    >>> shape = Shape(4, (30, 20), (30, 20), "subject", views=views)
    >>> shape.units, shape.view_slice("clinic", "analysis.view"), shape.mean_length
    ((30, 20), slice(0, 3, None), 1.0)
    >>> shape.single_entry("age", "analysis.target", "name a view of one number")
    3
    """

    features: int
    subjects: tuple[int, ...]
    samples: tuple[int, ...]
    unit: Unit
    voxels: int = 0
    views: tuple[tuple[str, int], ...] = ()
    sites: tuple[str, ...] = ()
    noise: float = 0.0
    places: Places | None = field(default=None, compare=False, repr=False)

    @property
    def map_rows(self) -> int:
        """Rows of a full-resolution map."""
        return self.voxels or self.features

    @property
    def units(self) -> tuple[int, ...]:
        """Units of privacy per site."""
        return self.subjects if self.unit == "subject" else self.samples

    @property
    def mean_length(self) -> float:
        """Mean number of volumes per person."""
        return sum(self.samples) / sum(self.subjects)

    def view_slice(self, name: str, field: str) -> slice:
        """Entries of a view within a person's vector.

        Parameters
        ----------
        name : str
            The view's name in the study.
        field : str
            Field of the study that names it, for the message.

        Raises
        ------
        StudyError
            If the study has no such view.
        """
        start = 0
        for view, size in self.views:
            if view == name:
                return slice(start, start + size)
            start += size
        known = ", ".join(view for view, _ in self.views) or "none"
        raise StudyError(f"field '{field}': there is no view '{name}'; name one of {known}.")

    def single_entry(self, name: str, field: str, remedy: str) -> int:
        """Place of a view of one entry within a person's vector.

        Parameters
        ----------
        name, field
            As in `view_slice`.
        remedy : str
            What to do if the view has more, for the message.

        Raises
        ------
        StudyError
            If the study has no such view, or it has more entries.
        """
        found = self.view_slice(name, field)
        if found.stop - found.start != 1:
            raise StudyError(
                f"field '{field}': view '{name}' has {found.stop - found.start} entries; {remedy}."
            )
        return int(found.start)


@dataclass(frozen=True)
class PlannedRelease:
    """One or more equal releases that an algorithm may make, known before any data is read.

    ``share`` is the part of the whole budget (of μ²) that all ``rounds``
    together may use; the shares of an algorithm add up to one. ``arguments`` holds
    the form of every argument that a query of this stage has: the shape of an array,
    or the type of anything else. A site refuses a query of another form unread. ``fixed`` holds the
    value of each argument that study and sizes decide, or a function that works a large one out: a
    site refuses a query with another value, and computes with its own. ``released`` says what
    is: one noisy sum over everyone, or each site's own answer with noise enough to stand
    alone. ``neighbours`` holds each site's: before it answers, a site reads what they and it itself
    answered in the rounds before, from them and not from the centre.
    """

    stage: str
    statistic: str
    entries: int
    bound: Bound
    rounds: int
    share: float
    arguments: Mapping[str, Form] = field(default_factory=dict)
    released: Released = "sum"
    neighbours: tuple[tuple[int, ...], ...] = ()
    fixed: Fixed = field(default_factory=dict, compare=False)  # arrays have no one truth value


def form_of(value: Argument) -> Form:
    """Shape of an array, or the type of anything else."""
    return value.shape if isinstance(value, np.ndarray) else type(value)


def forms_of(arguments: Mapping[str, Argument]) -> dict[str, Form]:
    """Form of every argument."""
    return {name: form_of(value) for name, value in arguments.items()}


@dataclass(frozen=True)
class NeighbourAnswers:
    """What a site and its neighbours answered so far in a stage among neighbours.

    Parameters
    ----------
    site : int
        Index of the site that listens.
    answers : array, shape (rounds, sites, entries)
        In the statistic's units, noise and all. Whoever missed a round is there with the answer
        before, or with zeros; so is, with zeros, who is no neighbour.
    """

    site: int
    answers: Array


@dataclass(frozen=True)
class Query:
    """What the centre asks of every site in one round.

    Parameters
    ----------
    stage : str
        Name of the planned release that this round draws on.
    statistic : str
        Key of the algorithm's ``statistics``.
    arguments : mapping
        Public arguments (arrays, numbers, names).
    neighbour_answers : NeighbourAnswers, optional
        Put in by the site that is asked, if the stage is among neighbours; the centre sends none.
    site : int
        Index of the site that is asked; put in by that site, and never sent.
    """

    stage: str
    statistic: str
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    neighbour_answers: NeighbourAnswers | None = None
    site: int = 0


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


@dataclass(frozen=True)
class Release:
    """What the centre learns of a query: the noisy mean over all units of all sites.

    Parameters
    ----------
    values : array
        Flat, with the planned number of entries; for a release of each site, one row per site.
    deviation : float
        Standard deviation of the noise in each entry, of the noisiest row; 0 without privacy.
    sites : tuple of int
        Whose answers are in it, in the order of the rows, as indices into the study's sites.
    """

    values: Array
    deviation: float
    sites: tuple[int, ...] = ()


Run = Generator[Query, Release, "Result"]
Local = Callable[[SiteData, Query, Bound], Array]


@dataclass(frozen=True)
class Table:
    """A result as a table.

    Parameters
    ----------
    caption : str
        One sentence for readers.
    columns : tuple of str
        Headings.
    rows : tuple of tuple
        Numbers, words, and findings, which may stay untold.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Captions:
    """What people call an algorithm's results.

    Parameters
    ----------
    column : str
        One column of the loadings: component, pair, mean.
    headline : str
        The finding in one sentence, or empty; it leads the page.
    meaning : str
        What a number of the loadings is, in one sentence.
    sign : bool
        Whether a column may as well be turned around in all views.
    found : bool
        Whether anything stands out of noise and chance; if not, the page says so first.
    columns_found : tuple of bool
        Whether each column of the loadings does; one that does not is listed, but not drawn. Empty:
        all do, or none.
    """

    column: str = "component"
    headline: str = ""
    meaning: str = "Weight of each feature in a component."
    sign: bool = False
    found: bool = True
    columns_found: tuple[bool, ...] = ()

    def is_found(self, column: int) -> bool:
        """Whether a column of the loadings, counted from 0, stands out."""
        return self.columns_found[column] if self.columns_found else self.found


@dataclass(frozen=True)
class Result:
    """What an algorithm returns: public arrays by name, and numbers for the report."""

    arrays: Mapping[str, Array]
    numbers: Mapping[str, float | int | str] = field(default_factory=dict)
    maps: str = ""
    """Name of the array that is to be written as images, or empty: D x R, or V x R if `fine`."""
    variances: str = ""
    """Name of the array with what each map explains, by which the page orders them, most first; of
    maps without, their squares do."""
    shares: tuple[Finding, ...] = ()
    """Of each map, its part of the data's variance; empty: the page tells its part of the maps'."""
    fine: bool = False
    noise: float = 0.0
    """Standard deviation of the privacy noise in every entry of the maps; 0 if it can't be told."""
    loadings: str = ""
    """Name of the D x K array over all views' entries that is to be written view by view."""
    told: str = ""
    """Name of a D x K array that is true where loadings stand out of noise and chance: the page
    draws no others. Empty: all do."""
    tables: Mapping[str, Table] = field(default_factory=dict)
    """Tables for the report and for TSV files. Where the first heading is `captions.column`, a row
    tells about the column of the loadings with that number."""
    captions: Captions = field(default_factory=Captions)
    images: Mapping[str, ImageSet] = field(default_factory=dict)
    """Named sets of maps, each written as one image file, with what is known of each map."""


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

    Examples
    --------
    >>> Case({"target": "age", "bound": 1.5}, views=(("x", 4), ("age", 1))).unit
    'subject'
    """

    analysis: Mapping[str, Any] = field(default_factory=dict)
    unit: Unit = "subject"
    views: tuple[tuple[str, int], ...] = ()


@runtime_checkable
class NamesSites(Protocol):
    """Parameters that name sites of the study."""

    def check_sites(self, sites: Sequence[str]) -> None:
        """Raise StudyError if they don't fit the study's sites."""


@runtime_checkable
class Foretells(Protocol):
    """An algorithm that says before a run what its study will see."""

    def foretell(self, parameters: Any, shape: Shape) -> Table:
        """What to expect of the study, and of the nearest others."""


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
