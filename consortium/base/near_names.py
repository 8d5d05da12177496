"""Names whose spelling is most similar to a name that is unknown."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

_OPPOSITES = (
    "left right",
    "lh rh",
    "l r",
    "anterior posterior",
    "superior inferior",
    "medial lateral",
    "dorsal ventral",
    "rostral caudal",
    "pre post",
    "ant post",
    "sup inf",
    "med lat",
    "min max",
    "mean std",
    "mean sd",
    "thickness area",
    "thickness volume",
    "area volume",
    "thick surf",
    "first last",
    "before after",
    "patient control",
)
"""Pairs of words that name different sides, directions or measures."""
_SHORT = 2
"""Letters of a word that counts only where no other letter precedes or follows it."""


_LISTED = 12
"""Names that an error lists."""


def known_names(name: str, names: Sequence[str]) -> str:
    """Return the end of an error about an unknown name: those that exist, and the nearest one.

    Examples
    --------
    >>> known_names("Age", ["sex", "age"])
    "There are 'sex' and 'age'. Did you mean 'age'?"
    """
    if not names:
        return "There are none."
    shown = [f"'{each}'" for each in names[:_LISTED]]
    shown += [f"{len(names) - _LISTED} more"] if len(names) > _LISTED else []
    some = f"{', '.join(shown[:-1])} and {shown[-1]}" if shown[1:] else shown[0]
    verb = "are" if len(names) > 1 else "is"
    return f"There {verb} {some}.{did_you_mean(name, names)}"


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """Return a question for the nearest name, after a space; empty if none is near."""
    like = nearest_name(name, names)
    return f" Did you mean '{like}'?" if like is not None else ""


def nearest_name(name: str, names: Sequence[str]) -> str | None:
    """Return the name with the most similar spelling, in any letter case.

    A name of the other hemisphere, of another direction or with another number is never returned.
    """
    small = {each.lower(): each for each in reversed(names) if not names_differ(name, each)}
    found = get_close_matches(name.lower(), small, n=1, cutoff=0.75)
    return small[found[0]] if found else None


def names_differ(one: str, other: str) -> bool:
    """Return whether two names are of different things, although their spelling may be similar."""
    a = one.casefold()
    b = other.casefold()
    if re.findall(r"\d+", a) != re.findall(r"\d+", b):
        return True
    apart = {frozenset(pair) for pair in zip(a, b, strict=False) if pair[0] != pair[1]}
    if len(a) == len(b) and apart == {frozenset("lr")}:  # Lthal and Rthal
        return True
    for words in _OPPOSITES:
        first = [_contains(a, word) for word in words.split()]
        second = [_contains(b, word) for word in words.split()]
        if any(first) and first == second[::-1] and first != second:
            return True
    return False


def _contains(text: str, word: str) -> bool:
    if len(word) > _SHORT:
        return word in text
    return re.search(rf"(?<![a-z]){word}(?![a-z])", text) is not None
