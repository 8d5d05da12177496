"""Numbers as people write them, the same on the page and on the command line."""

import math
from collections.abc import Mapping
from datetime import datetime

_THOUSAND = 1e3
_MILLION = 1e6
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def count(many: int, what: str) -> str:
    """Return a number and its noun for people: 1 participant, 1,204 participants."""
    return f"{many:,} {what}{'' if many == 1 else 's'}"


def number(value: float) -> str:
    """Write a number for people: three digits, and infinity as a word.

    From a thousand to a million it has no exponent: 5,740.
    """
    if math.isinf(value):
        return "infinite"
    short = f"{value:.3g}"
    large = _THOUSAND <= abs(float(short)) < _MILLION
    return f"{float(short):,.0f}" if large else short


def power_of_ten(value: float) -> str:
    """Write a small number for people: 0.00001 as 10⁻⁵, 0.00002 as 2·10⁻⁵."""
    mantissa, exponent = f"{value:.2e}".split("e")
    raised = "10" + str(int(exponent)).translate(_SUPERSCRIPTS)
    mantissa = mantissa.rstrip("0").rstrip(".")
    return raised if mantissa == "1" else f"{mantissa}·{raised}"


def percent(share: float) -> str:
    """Write a share in percent; 100 % is kept for certainty."""
    if 0.9995 <= share < 1:
        return "more than 99.9 %"
    return f"{100 * share:.3g} %"


def moment(at: float) -> str:
    """Write a Unix time down for people, in local time."""
    return datetime.fromtimestamp(at).astimezone().isoformat(sep=" ", timespec="seconds")


def said_together(sentences: Mapping[str, str]) -> list[str]:
    """Join sentences for people that differ in the name of their site only.

    Parameters
    ----------
    sentences : mapping of str to str
        A sentence by site, which begins with the site and a space.

    Examples
    --------
    >>> said_together({"a": "a is away.", "b": "b has left.", "c": "c is away."})
    ['a, c: each is away.', 'b has left.']
    """
    sites = dict[str, list[str]]()
    for site, sentence in sentences.items():
        sites.setdefault(sentence.removeprefix(f"{site} "), []).append(site)
    return [
        f"{own[0]} {rest}" if len(own) == 1 else f"{', '.join(own)}: each {rest}"
        for rest, own in sites.items()
    ]


def begun(text: str) -> str:
    """Return a text with a capital first letter, as the beginning of a sentence."""
    return text[:1].upper() + text[1:]
