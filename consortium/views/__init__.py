"""Feature vectors: the data of each participant in a study without image series.

A view is one vector per participant: columns of a table, functional images, vertices of the cortex,
EEG. Names and numbers of entries follow only from the study file and the files next to it, so they
are public.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import Field

from consortium.views.base import BaseView
from consortium.views.eeg import EegView
from consortium.views.fmri import FmriView
from consortium.views.surface import SurfaceView
from consortium.views.table import TableView

AnyView = TableView | FmriView | SurfaceView | EegView
"""One line for each kind."""
View = Annotated[AnyView, Field(discriminator="source")]
"""Views that a study file may name, distinguished by ``source``."""
VIEWS: Mapping[str, type[BaseView]] = {
    kind.model_fields["source"].annotation.__args__[0]: kind for kind in AnyView.__args__
}
"""The kinds of views by ``source``."""


def files_of(views: Iterable[BaseView]) -> tuple[str, ...]:
    """Return the files next to the study file that its views name."""
    return tuple(file for view in views for file in view.files)


__all__ = [
    "VIEWS",
    "AnyView",
    "BaseView",
    "EegView",
    "FmriView",
    "SurfaceView",
    "TableView",
    "View",
    "files_of",
]
