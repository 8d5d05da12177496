"""A part of the page, and what several parts hold: cards with facts and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from consortium.report.pictures import Drawing

NOT_TOLD_APART = "Not told apart from the noise, and not drawn."
Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Parameters
    ----------
    template : str
        Name of its template; of a part with a heading, where links to it point, too.
    values : mapping
        What the template fills in.
    heading : str
        Of a part that the page's navigation leads to.
    """

    template: str
    values: Mapping[str, object]
    heading: str = ""


@dataclass(frozen=True)
class Card:
    """One map, component or column as the page shows it.

    Parameters
    ----------
    ident : str
        Where links on the page point to.
    name : str
    facts : tuple of (str, str)
        Terms and what they are.
    drawings : tuple of Drawing
        None if there is nothing that may be drawn.
    note : str
        Instead of drawings.
    """

    ident: str
    name: str
    facts: Facts
    drawings: tuple[Drawing, ...] = ()
    note: str = ""


def cards_section(cards: tuple[Card, ...]) -> Section | None:
    """Show cards, if there are any."""
    return Section("cards", {"cards": cards}) if cards else None


def peak_text(peak: tuple[float, ...]) -> str:
    """Write a place: whole millimetres with a true minus sign, and never minus zero."""
    return ", ".join(f"{round(value):d}".replace("-", "−") for value in peak) + " mm"
