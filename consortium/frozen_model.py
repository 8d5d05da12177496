"""The base of every model that a person or a party writes: frozen, strict, and clear when wrong."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict, ValidationError

_KIND = re.compile(r"^(constrained-|function-|(dict|tuple|list|nullable)\[|(str|float|int|bool)$)")
"""Parts of a place that name none of a field but one of the kinds that it may be of."""


class FrozenModel(BaseModel):
    """A value with checked fields: unknown ones are errors, and so are infinities."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def first_problem(error: ValidationError, remedy: str = "") -> str:
    """Say in a sentence which field of a model is wrong.

    Parameters
    ----------
    error : ValidationError
    remedy : str, optional
        What follows a problem that does not name its own.
    """
    problems = error.errors(include_url=False, include_input=False)
    problems.sort(key=lambda each: each["type"] != "extra_forbidden")  # a misspelt name explains
    problem = problems[0]
    field = ".".join(str(part) for part in problem["loc"] if not _KIND.match(str(part)))
    if problem["type"] == "extra_forbidden":
        return f"field '{field}' is unknown; remove it or correct its name."
    if problem["type"] == "missing":
        return f"field '{field}' is missing; add it."
    text = problem["msg"].removeprefix("Value error, ")
    ending = "" if problem["type"] == "value_error" else remedy
    return f"field '{field}': {text}{ending}." if field else f"{text}{ending}."
