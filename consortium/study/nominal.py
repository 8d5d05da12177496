"""Nominal numbers of participants, which are stated before any counting."""

import math
from collections.abc import Mapping

from consortium.errors import StudyError
from consortium.study.spec import Study


def nominal_size(size: float) -> int:
    """Round a number of participants to a nominal size, which reveals no count.

    Sizes are multiples of 10 below 100, at least 10, and have two significant digits above.

    Examples
    --------
    >>> [nominal_size(size) for size in (0, 3, 47, 96, 157, 1234)]
    [0, 10, 50, 100, 160, 1200]
    """
    if size <= 0:
        return 0
    step = 10 if size < 100 else 10 ** (math.floor(math.log10(size)) - 1)
    return max(10, step * math.floor(size / step + 0.5))


def check_nominal(size: int, where: str) -> int:
    """Return a nominal number of participants after a check.

    Raises StudyError if it has other digits than a nominal size.

    Parameters
    ----------
    where : str
        Option or field for the error's sentence.

    Examples
    --------
    >>> check_nominal(160, "--participants")
    160
    """
    if size < 1 or nominal_size(size) != size:
        raise StudyError(
            f"{where}: multiples of 10 below 100 and two significant digits above are required to "
            f"reveal no true number, got {size}. Write {max(nominal_size(size), 10)}."
        )
    return size


def stated_participants(study: Study, where: str) -> dict[str, int]:
    """Return the numbers of participants that a study states; raises StudyError if it states none.

    Parameters
    ----------
    where : str
        First words of the error.
    """
    if study.participants is None:
        lines = ", ".join(f"{site}: 100" for site in study.sites)
        raise StudyError(
            f"{where}: field 'participants': the nominal number of participants of each site is "
            f"required. Add for example the line 'participants: {{{lines}}}'."
        )
    return study.participants


def check_participants(study: Study, where: str) -> dict[str, int]:
    """Return a study's nominal numbers of participants by site.

    Raises StudyError if it states none, or one is not a nominal size.

    Parameters
    ----------
    where : str
        The study's file.
    """
    sizes = stated_participants(study, where)
    for site, size in sizes.items():
        check_nominal(size, f"{where}: field 'participants.{site}'")
    return sizes


def differing_sizes(study: Study, stated: Mapping[str, int]) -> list[str]:
    """Return a sentence for each site whose nominal number is another than it stated itself.

    Parameters
    ----------
    stated : mapping of str to int
        Of the roster.
    """
    sizes = study.participants or {}
    return [
        f"{site} stated {stated[site]} participants when it joined, and the study has {size}. A "
        "nominal number that follows a true number reveals it, so keep it unless the site asks."
        for site, size in sizes.items()
        if site in stated and stated[site] != size
    ]
