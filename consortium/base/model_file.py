"""A model as a YAML file that explains itself: every field stands below its description."""

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from consortium.base.atomic import write_bytes
from consortium.base.frozen_model import field_texts, first_problem
from consortium.base.strict_yaml import PlainYamlError, read_yaml
from consortium.errors import ConfigurationError, OutputError

_WIDTH = 92
_Model = TypeVar("_Model", bound=BaseModel)


def read_model(path: Path, model: type[_Model]) -> _Model:
    """Read a model from plain YAML: no aliases, no tags, no field twice; empty means defaults.

    Raises ConfigurationError if the file can't be read, or a field is unknown, missing or out of
    range. The message names it.
    """
    try:
        values = read_yaml(path)
    except (OSError, ValueError) as error:
        line = error.line if isinstance(error, PlainYamlError) else None
        place = "" if line is None else f", line {line}"
        raise ConfigurationError(
            f"{path}{place} can't be read as plain YAML. Correct its syntax, write each field "
            "once, use neither aliases nor tags, and keep it to a page."
        ) from error
    if not isinstance(values, dict | None):
        raise ConfigurationError(f"{path} has no fields. Write it as 'name: value' lines.")
    try:
        return model.model_validate(values or {})
    except ValidationError as error:
        problem = first_problem(error, model)
        raise ConfigurationError(f"{path}: {problem}") from error


def write_model(path: Path, model: BaseModel, title: str) -> None:
    """Write a model with its fields' descriptions as comments; `read_model` gives it back.

    Raises ConfigurationError if the file can't be written.
    """
    text = "\n".join([*_comment(title, ""), *_lines(model, "")]) + "\n"
    try:
        write_bytes(path, text.encode())
    except OutputError as error:
        raise ConfigurationError(str(error)) from error


def _lines(model: BaseModel, indent: str) -> Iterator[str]:
    plain = model.model_dump(mode="json", by_alias=True)
    texts = field_texts(type(model))
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        yield from [] if indent else [""]
        yield from _comment(texts[field.alias or name] or name, indent)
        if isinstance(value, BaseModel):
            yield f"{indent}{name}:"
            yield from _lines(value, indent + "  ")
        else:
            yield f"{indent}{name}: {_flow(plain[field.alias or name])}"


def _flow(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False)
    return text.removesuffix("...\n").strip()


def _comment(text: str, indent: str) -> Iterator[str]:
    for line in textwrap.wrap(text, _WIDTH - len(indent)):
        yield f"{indent}# {line}"
