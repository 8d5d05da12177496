"""Feature vectors: what a study of persons, instead of volumes, knows of each of them.

A view is one vector per person, made from a table, from functional images or from EEG. A study of
several views stacks them. Names and numbers of entries follow from the study file and the files
beside it alone, so they are public.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from consortium.views.eeg import EegView
from consortium.views.fmri import FmriView
from consortium.views.table import TableView

View = Annotated[TableView | FmriView | EegView, Field(discriminator="source")]
"""What a study file may name, told apart by ``source``."""


def files_of(views: tuple[TableView | FmriView | EegView, ...]) -> tuple[str, ...]:
    """Files beside the study file that its views name."""
    return tuple(v.components for v in views if isinstance(v, FmriView) and v.components)


__all__ = ["EegView", "FmriView", "TableView", "View", "files_of"]
