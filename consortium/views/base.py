"""The common base of all kinds of views: the types of their fields, and their descriptions.

A new kind consists of three files of one name: a model here, one in ``consortium/report/views`` for
its pictures and files, and a reader for a site, which `site_agent.loading.feature_vectors` lists.
Each has a line in its registry. No other code depends on the kind of a view
(``tests/contract/test_views.py``).

Examples
--------
>>> from consortium.views.table import TableView
>>> limits = {"age": {"low": 18, "high": 90}, "sex": {"levels": ["F", "M"]}}
>>> view: BaseView = TableView(name="who", source="table", columns=limits)
>>> view.size(70_000, 0), view.labels, view.heading
(2, ('age', 'sex'), 'who (columns of participants.tsv)')
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated

from pydantic import StringConstraints

from consortium.base.frozen_model import FieldError, FrozenModel, Line
from consortium.views.column import Column
from consortium.views.meshes import MeshFiles

Label = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
ViewName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]{0,31}$")]
BesideName = Annotated[Line, StringConstraints(min_length=1, max_length=200)]


class BaseView(FrozenModel):
    """A view as a study file names it: public, and known without any data."""

    name: ViewName
    """Name of the view."""
    source: str

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """Names of the entries; none if they are places in an image, which have numbers."""

    def names_of(self, size: int) -> tuple[str, ...]:
        """Return the names of its ``size`` entries; none if they are places in an image."""
        del size
        return self.labels

    @abstractmethod
    def size(self, image_features: int, maps: int) -> int:
        """Return the number of entries of the view.

        Parameters
        ----------
        image_features : int
            Rows of a participant's images: voxels, or regions of the study's atlas.
        maps : int
            Maps in `maps_file`, or vertices of `mesh_files`; 0 without either.
        """

    def known_sums(self, size: int) -> Iterator[tuple[range, float]]:
        """Yield entries, of ``size``, whose sum is one public number for all, and the number.

        No study can estimate separate effects of such entries.
        """
        del size
        yield from ()

    @property
    def columns_read(self) -> tuple[tuple[str, str], ...]:
        """Tables and columns that it reads, each by its own name."""
        return ()

    @property
    @abstractmethod
    def heading(self) -> str:
        """Name and kind, for a report."""

    @abstractmethod
    def methods_sentence(self, size: int) -> str:
        """Return how its ``size`` numbers were made, as a clause for a methods section."""

    @property
    def is_image(self) -> bool:
        """Whether it comes from images, and can be painted as one."""
        return False

    @property
    def is_of_edges(self) -> bool:
        """Whether its entries are pairs of regions or of maps."""
        return False

    @property
    def is_series(self) -> bool:
        """Whether it is measured in image series, which are prepared as the study says."""
        return False

    @property
    def maps_file(self) -> str | None:
        """File next to the study file with the maps whose strengths are the entries."""
        return None

    @property
    def mesh_files(self) -> MeshFiles | None:
        """Mesh of the cortex whose vertices the entries are."""
        return None

    @property
    def files(self) -> tuple[str, ...]:
        """Files next to the study file that it names."""
        own = self.mesh_files.named if self.mesh_files else ()
        return (self.maps_file, *own) if self.maps_file else own

    @property
    def stated_gaps(self) -> float:
        """Fraction of the entries that the study states a participant may lack."""
        return 0.0

    @property
    def most_missing(self) -> float:
        """Fraction of the entries that a participant may lack, in an analysis that allows it."""
        return self.stated_gaps

    @property
    def single_columns(self) -> tuple[tuple[str, Column], ...]:
        """Columns of a table that the entries are, in their order, each with its limits."""
        return ()

    def usual(self, size: int) -> tuple[float, float]:
        """Return the usual mean and standard deviation of an entry among participants.

        Parameters
        ----------
        size : int
            Entries of the view. If it is normalized, their squares add up to one.
        """
        del size
        return 0.0, 1.0

    def unfit(self, standardize: str, atlas: bool) -> FieldError | None:
        """Return why the preparation of images removes its values, or None."""
        del standardize, atlas
        return None
