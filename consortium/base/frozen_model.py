"""The base of every model that a user or a party writes: frozen, strict, with clear errors."""

import ast
import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    TypeAdapter,
    ValidationError,
)

from consortium.base.expected_values import (
    FieldPlace,
    expected_value,
    field_names,
    field_place,
    given_value,
)
from consortium.base.near_names import did_you_mean

_KIND = re.compile(r"\w+_(type|parsing)|int_from_float|none_required|literal_error")
"""Types of errors about values of another kind."""
_MOST_NAME = 80
"""Number of characters of an unknown field's name that an error repeats."""
_NO_SCHEMA = ("default", "metadata", "expected", "serialization")
"""Entries of a schema that contain values."""
_Problem = Mapping[str, Any]


class FieldError(ValueError):
    """A field's value that contradicts others: raised by a validator of the whole model.

    Parameters
    ----------
    field : str
        Name in a file, as seen from the model: a field, or one of a section in it.
    sentence : str
        Requirement, given value and remedy, without the field's name and a full stop.
    """

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(f"{field}: {sentence}")
        self.field = field
        self.sentence = sentence


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be a single line of printable characters")
    return text


Line = Annotated[str, AfterValidator(_printable)]
"""Text that a hospital's people read as it is: nothing in it moves their screen or ends a line."""


def _number(value: Any) -> Any:
    """Return the value of a number, and text for a boolean, which pydantic would read as 1."""
    return str(value).lower() if isinstance(value, bool) else value


_CHECKED: Any = TypeAdapter(Annotated[int, BeforeValidator(_number)]).core_schema


def _without_booleans(node: Any) -> Any:
    """Return a schema in which every number is checked by `_number` first."""
    if isinstance(node, list):
        return [_without_booleans(each) for each in node]
    if not isinstance(node, dict) or node.get("function") == _CHECKED["function"]:
        return node
    inside = {key: node[key] if key in _NO_SCHEMA else _without_booleans(node[key]) for key in node}
    return {**_CHECKED, "schema": inside} if node.get("type") in ("int", "float") else inside


class FrozenModel(BaseModel):
    """A value with checked fields: unknown ones, infinities and booleans as numbers are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> Any:
        """Return pydantic's own schema, in which numbers are not booleans."""
        return _without_booleans(handler(source))

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """Return its JSON schema, with the descriptions of the fields in the code."""
        schema = super().model_json_schema(*args, **options)
        kinds = {cls.__name__: cls}
        ahead = [FrozenModel]
        while ahead:
            kind = ahead.pop()
            kinds.setdefault(kind.__name__, kind)
            ahead += kind.__subclasses__()
        parts = schema.get("$defs", {})
        for name, section in {cls.__name__: schema, **parts}.items():
            texts = field_texts(kinds[name]) if name in kinds else {}
            for field, about in section.get("properties", {}).items():
                of_part = parts.get(about.get("$ref", "").rpartition("/")[2], {}).get("description")
                if texts.get(field) not in ("", None, of_part):
                    known = {"description": texts[field], **about}
                    section["properties"][field] = dict(sorted(known.items()))
        return schema


@cache
def field_texts(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the description of each field of a model, by its name in a file.

    It is the field's description or the string below it, which is read from the code only when it
    is needed: pydantic would read every model's code when a program starts.
    """
    below: dict[str, str] = {}
    for kind in reversed(model.__mro__[: model.__mro__.index(BaseModel)]):
        try:
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
        except (OSError, TypeError):  # typed in, or here without its code
            continue
        for field, text in pairwise(body.body if isinstance(body, ast.ClassDef) else ()):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(ast.Constant(str() as said)):
                    below[name] = " ".join(said.split())
    fields = model.model_fields.items()
    return {f.alias or name: f.description or below.get(name, "") for name, f in fields}


def first_problem(
    error: ValidationError,
    model: type[BaseModel],
    parts: Mapping[str, type[BaseModel]] | None = None,
    *,
    secret: bool = False,
) -> str:
    """State in a sentence which field of a model is wrong.

    Parameters
    ----------
    model : type of BaseModel
        The model that raised the error.
    parts : mapping of str to type of BaseModel, optional
        Models of those of its fields that are annotated with a base class only.
    secret : bool
        Whether the given value is left out, because it may be a password.
    """
    problems: list[_Problem] = [*error.errors(include_url=False)]
    problems.sort(key=lambda each: each["type"] != "extra_forbidden")  # a misspelt name explains
    places = [_place(model, problem, parts or {}) for problem in problems]
    problem, place = _furthest(problems, places)
    kind = problem["type"]
    field = place.path
    if kind == "extra_forbidden":
        *above, name = problem["loc"]
        like = did_you_mean(str(name)[:_MOST_NAME], field_names(model, above, parts or {}))
        return f"field '{field[:_MOST_NAME]}' is unknown. Remove it or correct its name.{like}"
    if kind == "missing":
        return f"field '{field}' is missing. Add it."
    if text := _own_words(problem):
        return f"field '{field}': {text}." if field else f"{text}."
    given = "" if secret else f", got {given_value(problem['input'])}"
    return f"{field or 'the content'} must be {_wanted(problem, place)}{given}."


def _place(
    model: type[BaseModel], problem: _Problem, parts: Mapping[str, type[BaseModel]]
) -> FieldPlace:
    """Return the field of a problem, which a validator of several fields names itself."""
    place = field_place(model, problem["loc"], parts)
    cause = problem.get("ctx", {}).get("error")
    if not isinstance(cause, FieldError):
        return place
    return FieldPlace(f"{place.path}.{cause.field}".removeprefix("."), Any)


def _furthest(
    problems: Sequence[_Problem], places: Sequence[FieldPlace]
) -> tuple[_Problem, FieldPlace]:
    """Return the problem of the first wrong field, and its place.

    A field that may be of several kinds has problems for each. The deepest ones are reported, as
    they belong to the intended kind.
    """
    first = places[0].path
    if _KIND.fullmatch(problems[0]["type"]):
        inside = [place.path for place in places if f"{place.path}.".startswith(f"{first}.")]
        first = max(inside, key=lambda path: path.count("."))
    same = [pair for pair in zip(problems, places, strict=True) if pair[1].path == first]
    return min(same, key=lambda pair: bool(_KIND.fullmatch(pair[0]["type"])))


def _wanted(problem: _Problem, place: FieldPlace) -> str:
    expected = expected_value(place.expected)
    if problem["type"] == "finite_number":
        return expected.replace("a number", "a finite number")
    if problem["type"] == "string_type" and isinstance(problem["input"], int | float):
        return f"{expected} (text in quotes, if it looks like a number)"
    return expected


def _own_words(problem: _Problem) -> str:
    """Return a problem's sentence; empty if a value is not of the field's kind or in its limits."""
    if problem["type"] == "union_tag_invalid":
        context = problem["ctx"]
        key = context["discriminator"].strip("'")
        return f"{key} '{context['tag']}' is not known. Choose one of {context['expected_tags']}"
    if problem["type"] == "union_tag_not_found":
        return f"{problem['ctx']['discriminator']} is missing. Add it"
    if problem["type"] == "value_error":
        cause = problem["ctx"]["error"]
        return cause.sentence if isinstance(cause, FieldError) else str(cause)
    return {"json_invalid": "it must be JSON", "invalid_key": "its name must be text"}.get(
        problem["type"], ""
    )
