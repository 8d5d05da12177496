"""Values that a field of a model may have, in plain words, and the field that an error is about."""

from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

_MOST_GIVEN = 40
"""Number of characters of a given value that an error repeats."""
_LARGEST_GIVEN = 10**20
_Limits = Mapping[str, Any]
_LIMITS = ("ge", "gt", "le", "lt", "min_length", "max_length", "pattern")


class FieldPlace(NamedTuple):
    """A field of a model, or an entry in it."""

    path: str
    """Its name in a file, after the names of the fields that it is in."""
    expected: Any
    """Its annotation."""


def field_place(
    model: type[BaseModel],
    loc: Sequence[int | str],
    parts: Mapping[str, type[BaseModel]],
) -> FieldPlace:
    """Return the field that an error of pydantic is about.

    If a field may be of several kinds, pydantic's place also names the kind, which is left out.

    Parameters
    ----------
    parts : mapping of str to type of BaseModel
        Models of those of its fields that are annotated with a base class only.
    """
    path: list[str] = []
    expected: Any = model
    kinds = [expected]
    names: Any = str
    choosing = False
    for part in loc:
        if choosing:
            kinds = _chosen(kinds, part)
            choosing = False
            continue
        if part == "[key]":
            return FieldPlace(f"the name of {'.'.join(path)}", names)
        names = next((get_args(kind)[0] for kind in kinds if get_origin(kind) is dict), str)
        found = [_entry(kind, part) for kind in kinds]
        expected = next((each for each in found if each is not None), Any)
        expected = expected if path else parts.get(str(part), expected)
        path.append(str(part))
        kinds = [*_members(expected)]
        choosing = len(kinds) > 1
    return FieldPlace(".".join(path), expected)


def field_names(
    model: type[BaseModel], loc: Sequence[int | str], parts: Mapping[str, type[BaseModel]]
) -> list[str]:
    """Return the names of the fields that a mapping at a place may have.

    Parameters are those of `field_place`.
    """
    kinds = _members(field_place(model, loc, parts).expected)
    models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return list(dict.fromkeys(name for each in models for name in each.model_fields))


def expected_value(annotation: Any) -> str:
    """State all kinds of value that an annotation allows, with their limits.

    Examples
    --------
    >>> expected_value(Literal["auto"] | int | None)
    "'auto', an integer or null"
    """
    *others, last = dict.fromkeys(_values(annotation, {}))
    return f"{', '.join(others)} or {last}" if others else last


def given_value(value: Any) -> str:
    """Return a given value as a file has it; a list or a mapping by its kind only."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() if abs(value) > _LARGEST_GIVEN:
            return "a longer number"
        case str() | int() | float():
            text = repr(value)
            return text if len(text) <= _MOST_GIVEN else f"{text[:_MOST_GIVEN]}…"
        case dict():
            return "a mapping"
        case list() | tuple():
            return f"a list of {len(value)}"
    return f"a {type(value).__name__}"


def _bare(annotation: Any) -> tuple[Any, _Limits]:
    """Return an annotation without its metadata, and their limits."""
    if get_origin(annotation) is not Annotated:
        return annotation, {}
    bare, *metadata = get_args(annotation)
    limits: dict[str, Any] = {}
    for each in metadata:
        for item in each.metadata if isinstance(each, FieldInfo) else [each]:
            known = {key: getattr(item, key, None) for key in _LIMITS}
            limits |= {key: value for key, value in known.items() if value is not None}
    return bare, limits


def _members(annotation: Any) -> Iterator[Any]:
    """Yield the kinds of value of an annotation, without null."""
    bare, _ = _bare(annotation)
    if get_origin(bare) in (Union, UnionType):
        for each in get_args(bare):
            yield from _members(each)
    elif bare is not NoneType:
        yield bare


def _chosen(kinds: Sequence[Any], label: int | str) -> list[Any]:
    """Return the models that pydantic's name of a kind means; all kinds if it means no model."""
    return [each for each in kinds if label in _labels(each)] or [*kinds]


def _labels(kind: Any) -> set[Any]:
    if not isinstance(kind, type) or not issubclass(kind, BaseModel):
        return set()
    fields = kind.model_fields.values()
    return {kind.__name__, *(tag for field in fields for tag in get_args(field.annotation))}


def _entry(kind: Any, part: int | str) -> Any:
    """Return the annotation of a field or an entry; None if the kind has none of that name."""
    origin = get_origin(kind)
    inner = get_args(kind)
    if origin is dict:
        return inner[1]
    if origin in (tuple, list, frozenset) and isinstance(part, int):
        fixed = origin is tuple and inner[-1] is not Ellipsis
        return inner[part] if fixed and part < len(inner) else inner[0]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            if part in (name, field.alias):
                return Annotated[field.annotation, field]
    return None


def _values(annotation: Any, above: _Limits) -> Iterator[str]:
    bare, own = _bare(annotation)
    limits = {**above, **own}
    origin = get_origin(bare)
    if origin in (Union, UnionType):
        for each in get_args(bare):
            yield from _values(each, limits)
    elif origin is Literal:
        yield from map(repr, get_args(bare))
    elif bare in (None, NoneType):
        yield "null"
    elif bare is bool:
        yield from ("true", "false")
    elif bare is int:
        yield f"an integer{_range(_whole(limits))}"
    elif bare is float:
        yield f"a number{_range(limits)}"
    elif origin is dict or (isinstance(bare, type) and issubclass(bare, BaseModel)):
        yield f"a mapping of 'name: value'{_size(limits, 'entries', ' with')}"
    elif origin in (tuple, list, frozenset):
        fixed = origin is tuple and Ellipsis not in get_args(bare)
        size = f" of {len(get_args(bare))} entries" if fixed else _size(limits, "entries", " of")
        yield f"a list{size}"
    elif getattr(bare, "__name__", "") == "Path":
        yield "a path"
    else:
        pattern = f" that fits the pattern '{limits['pattern']}'" if "pattern" in limits else ""
        yield f"text{pattern}{_size(limits, 'characters', ' of')}"


def _whole(limits: _Limits) -> _Limits:
    """Return the limits of an integer, which are included."""
    ends = {"ge": limits["gt"] + 1} if "gt" in limits else {}
    return {**limits, **ends, **({"le": limits["lt"] - 1} if "lt" in limits else {})}


def _range(limits: _Limits) -> str:
    shown = {key: str(v) if isinstance(v, int) else f"{v:g}" for key, v in limits.items()}
    match shown:
        case {"ge": low, "le": high}:
            return f" from {low} to {high}"
        case {"gt": low, "le": high}:
            return f" above {low} and at most {high}"
        case {"ge": low, "lt": high}:
            return f" of at least {low} and below {high}"
        case {"gt": low, "lt": high}:
            return f" above {low} and below {high}"
        case {"ge": low}:
            return f" of {low} or more"
        case {"gt": low}:
            return f" above {low}"
        case {"le": high}:
            return f" of {high} or less"
        case {"lt": high}:
            return f" below {high}"
    return ""


def _size(limits: _Limits, things: str, word: str) -> str:
    match limits:
        case {"min_length": low, "max_length": high}:
            return f"{word} {low} to {high} {things}" if low < high else f"{word} {low} {things}"
        case {"min_length": low}:
            return f"{word} {low} or more {things}"
        case {"max_length": high}:
            return f"{word} {high} or fewer {things}"
    return ""
