"""Results of an algorithm: arrays, numbers, tables, sets of maps, and their captions."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from consortium.algorithms.findings import Cell, Finding, ImageSet
from consortium.base.array import Array

MOST_ROWS = 1_000
"""Maximum number of rows of a table in a result."""


@dataclass(frozen=True)
class Table:
    """A table of an analysis's result."""

    caption: str
    """One sentence for readers."""
    columns: tuple[str, ...]
    """Headings."""
    rows: tuple[tuple[Cell, ...], ...]
    """Numbers, words, and findings, which may stay untold."""
    voxels_of: tuple[str, ...] = ()
    """Views of voxels. Rows whose first cell names one of them are left to the TSV, which adds
    where a voxel is to its number in the column ``entry``: the page shows the peaks of their
    maps."""
    about: Mapping[str, str] = field(default_factory=dict)
    """Description of a column for the TSV's sidecar, where it is needed."""
    curve: tuple[str, str] | None = None
    """Columns of x and y, between 0 and 1, that the page draws with the diagonal, or None."""


@dataclass(frozen=True)
class Captions:
    """Captions of an analysis's results, for figures and tables."""

    column: str = "component"
    """One column of the loadings: component, pair, mean."""
    headline: str = ""
    """The finding in one sentence, or empty; it leads the page."""
    meaning: str = "Weight of each feature in a component."
    """Meaning of a number of the loadings, in one sentence."""
    sign: bool = False
    """Whether a column may as well be turned around in all views."""
    found: bool = True
    """Whether anything stands out of noise and chance; if not, the page says so first."""
    columns_found: tuple[bool, ...] = ()
    """Whether each column of the loadings does; one that does not is listed, but not drawn. Empty:
    all do, or none."""
    methods: str = ""
    """Description of the computation for a paper's methods section, before the part that all
    analyses share."""
    persons: bool = False
    """Whether each column of the loadings is a real or simulated participant. Values from a table
    are then reported in their columns' units."""
    counted: str = ""
    """Sentence of the headline that counts findings; a page that lists them leaves it out."""

    def is_found(self, column: int) -> bool:
        """Return whether a column of the loadings, counted from 0, was found."""
        return self.columns_found[column] if self.columns_found else self.found


@dataclass(frozen=True)
class Result:
    """Result of an algorithm: public arrays by name, and numbers for the report."""

    arrays: Mapping[str, Array]
    numbers: Mapping[str, float | int | str] = field(default_factory=dict)
    maps: str = ""
    """Name of the array that is to be written as images, or empty: D x R, or V x R if `fine`."""
    variances: str = ""
    """Name of the array with each map's explained share, by which the page orders them, largest
    first. Without it, their squares do."""
    shares: tuple[Finding, ...] = ()
    """Fraction of the data's variance of each map; if empty, the page reports that of the maps'."""
    fine: bool = False
    noise: float = 0.0
    """Standard deviation of the privacy noise in every entry of the maps; 0 if unknown."""
    loadings: str = ""
    """Name of the D x K array over all views' entries that is to be written view by view."""
    drawn: str = ""
    """Name of a D x K array that is true where loadings stand out of noise and chance: the page
    draws no others. Empty: all do."""
    withheld: Array | None = None
    """D x K, true where loadings are withheld. They are missing values (n/a) in tables, and 0 in
    maps, which have no gaps. None: no loading is withheld."""
    tables: Mapping[str, Table] = field(default_factory=dict)
    """Tables for the report and for TSV files. If the first heading is `captions.column`, a row
    describes the column of the loadings with that number."""
    captions: Captions = field(default_factory=Captions)
    images: Mapping[str, ImageSet] = field(default_factory=dict)
    """Named sets of maps, each written as one image file, with information about each map."""
