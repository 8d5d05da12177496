"""Terms of a formula: columns, products of two of them, and squares.

A square is a covariate whose own effect is not reported. Participants with a large square are
clipped, and the remaining effects of the column itself look like an effect of its square.
"""

import re

from consortium.base.frozen_model import FieldError

_NAME = r"[A-Za-z0-9_.=-]{1,129}"
TERM = rf"^{_NAME}$"
CONTRASTED = rf"^{_NAME}(:{_NAME})?$"
_SQUARE = re.compile(rf"I\(\s*({_NAME})\s*\*\*\s*2\s*\)")
_PRODUCT = re.compile(rf"({_NAME})\s*([*:])\s*({_NAME})")
_REFUSED = (
    "write columns, products of two and squares with + between them, as in diagnosis * "
    "age + I(age**2) + sex"
)


def written_out(formula: str) -> tuple[str, ...]:
    """Return the terms of a formula; ``a * b`` is ``a + b + a:b``, each once.

    Raises ValueError if it is not such a sum, or has a product or a square without its columns.

    Examples
    --------
    >>> written_out("diagnosis * age + I(age ** 2) + sex")
    ('diagnosis', 'age', 'diagnosis:age', 'I(age**2)', 'sex')
    """
    found: list[str] = []
    for part in formula.split("+"):
        terms = _terms(part.strip())
        if len(terms) == 1 and terms[0] in found:
            raise FieldError("formula", f"{terms[0]} is named twice. Name each term once.")
        found += [term for term in terms if term not in found]
    for term in found:
        for column in factors(term):
            if column not in found:
                raise FieldError("formula", f"{term} requires the column {column}. Add it.")
    return tuple(found)


def factors(term: str) -> tuple[str, ...]:
    """Return the columns that a term is the product of: one, or two."""
    square = _SQUARE.fullmatch(term)
    return (square[1], square[1]) if square else tuple(term.split(":"))


def without_levels(term: str) -> str:
    """Return the term of the formula that ``column=level``, or a product of such, belongs to."""
    return ":".join(part.partition("=")[0] for part in term.split(":"))


def _terms(part: str) -> list[str]:
    if re.fullmatch(_NAME, part):
        return [part]
    if square := _SQUARE.fullmatch(part):
        return [f"I({square[1]}**2)"]
    product = _PRODUCT.fullmatch(part)
    if product is None:
        raise FieldError("formula", _REFUSED)
    one, sign, other = product.groups()
    if one == other:
        raise FieldError("formula", f"write the square of {one} as I({one}**2)")
    return [f"{one}:{other}"] if sign == ":" else [one, other, f"{one}:{other}"]
