"""The base of every model that a user or a party writes: frozen, strict, with clear errors."""

import ast
import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

_KIND = re.compile(
    r"^(constrained-|function-|(dict|tuple|list|nullable|literal)\[|(str|float|int|bool)$)"
)
"""Parts of a place that name none of a field but one of the kinds that it may be of."""
_MAPPING = "a mapping of 'name: value'"
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("tuple_type", "list_type", "set_type"), "a list"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), _MAPPING),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "string_type": "text (in quotes, if it looks like a number)",
    "none_required": "nothing",
    "literal_error": "{expected}",
}
"""Expected values, for errors about values of another kind."""
_LIMITS: Mapping[str, str] = {
    "finite_number": "a finite number",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "a number of {ge} or more",
    "less_than": "a number below {lt}",
    "less_than_equal": "a number of {le} or less",
    "too_short": "{min_length} or more entries",
    "too_long": "{max_length} entries or fewer",
    "string_too_short": "{min_length} or more characters",
    "string_too_long": "{max_length} characters or fewer",
    "string_pattern_mismatch": "text that fits the pattern '{pattern}'",
}
"""The same where it is of the right kind."""
_Problem = Mapping[str, Any]


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("this is one line of printable characters; correct it")
    return text


Line = Annotated[str, AfterValidator(_printable)]
"""Text that a hospital's people read as it is: nothing in it moves their screen or ends a line."""


class FrozenModel(BaseModel):
    """A value with checked fields: unknown ones are errors, and so are infinities."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

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


def first_problem(error: ValidationError, remedy: str = "") -> str:
    """State in a sentence which field of a model is wrong.

    Parameters
    ----------
    remedy : str, optional
        Added to a problem without a remedy of its own.
    """
    problems: list[_Problem] = [*error.errors(include_url=False, include_input=False)]
    problems.sort(key=lambda each: each["type"] != "extra_forbidden")  # a misspelt name explains
    field, same = _furthest(problems)
    problem = same[0]
    if problem["type"] == "extra_forbidden":
        return f"field '{field}' is unknown; remove it or correct its name."
    if problem["type"] == "missing":
        return f"field '{field}' is missing; add it."
    ending = "" if problem["type"] == "value_error" else remedy
    wanted = _wanted(same)
    text = f"give {wanted}" if wanted else f"{_own_words(problem)}{ending}"
    return f"field '{field}': {text}." if field else f"{text}."


def _furthest(problems: Sequence[_Problem]) -> tuple[str, list[_Problem]]:
    """Return the first wrong field and all its problems.

    A field that may be of several kinds has problems for each. The deepest ones are reported, as
    they belong to the intended kind.
    """
    fields = [_field(problem) for problem in problems]
    first = fields[0]
    if problems[0]["type"] in _KINDS:
        inside = [field for field in fields if f"{field}.".startswith(f"{first}.")]
        first = max(inside, key=lambda field: field.count("."))
    same = [p for p, field in zip(problems, fields, strict=True) if field == first]
    return first, sorted(same, key=lambda each: each["type"] in _KINDS)


def _field(problem: _Problem) -> str:
    return ".".join(str(part) for part in problem["loc"] if not _KIND.match(str(part)))


def _wanted(problems: Sequence[_Problem]) -> str:
    """Return the expected value of a field in words; empty if its problem is another."""
    known = _LIMITS if problems[0]["type"] in _LIMITS else _KINDS
    if problems[0]["type"] not in known:
        return ""
    expected = [
        known[each["type"]].format(**_numbers(each)) for each in problems if each["type"] in known
    ]
    return " or ".join(dict.fromkeys(expected))


def _numbers(problem: _Problem) -> dict[str, str]:
    context = problem.get("ctx", {})
    return {n: f"{v:g}" if isinstance(v, int | float) else str(v) for n, v in context.items()}


def _own_words(problem: _Problem) -> str:
    """Return the message of a problem, or pydantic's in plain form."""
    if problem["type"] == "union_tag_invalid":
        context = problem["ctx"]
        key = context["discriminator"].strip("'")
        return f"{key} '{context['tag']}' is not known; choose one of {context['expected_tags']}"
    if problem["type"] == "union_tag_not_found":
        return f"{problem['ctx']['discriminator']} is missing; add it"
    return str(problem["msg"]).removeprefix("Value error, ")
