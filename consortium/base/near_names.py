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
