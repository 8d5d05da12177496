"""Outputs of a finished study, and their display in Prefect."""

from collections.abc import Callable
from dataclasses import dataclass

from consortium.algorithms.base import Result
from consortium.engine.session import Round
from consortium.study.plan import Plan


@dataclass(frozen=True)
class PublishedTexts:
    """Texts of a result that Prefect shows, which are all published in the output folder."""

    summary: str
    """Markdown."""
    picture: str = ""
    """Address of the first map, as ``data:``."""
    link: str = ""
    """Address of the report, if it is served."""


@dataclass(frozen=True)
class Outputs:
    """Outputs of a finished study; ``publish`` writes the output folder."""

    publish: Callable[[Plan, list[Round], Result], PublishedTexts]
    progress: Callable[[int, int], None]
