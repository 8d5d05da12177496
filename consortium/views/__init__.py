"""Feature vectors: what a study of participants, instead of volumes, knows of each of them.

A view is one vector per participant: columns of a table, functional images, vertices of the cortex,
EEG. Names and numbers of entries follow from the study file and the files beside it alone, so they
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
"""What a study file may name, told apart by ``source``."""
VIEWS: Mapping[str, type[BaseView]] = {
    kind.model_fields["source"].annotation.__args__[0]: kind for kind in AnyView.__args__
}
"""The kinds of views by ``source``."""


def files_of(views: Iterable[BaseView]) -> tuple[str, ...]:
    """Files beside the study file that its views name."""
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
