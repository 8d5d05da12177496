"""Changes of single fields of ``site.yaml``, which leave its other lines and comments as they are.

A hospital may have comments of its own there, and the file that ``init`` writes explains itself.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from consortium.base.atomic import write_bytes
from consortium.base.frozen_model import first_problem
from consortium.base.lock import take_turns
from consortium.base.strict_yaml import PlainLoader, parse_yaml
from consortium.errors import ConfigurationError
from site_agent.config import Alias, SiteConfig
from site_agent.layout import CONFIG, DECISIONS

_ALIASES = "aliases"


def set_alias(folder: Path, column: str, alias: Alias | None, still: Callable[[], None]) -> None:
    """Set or remove the site's names of a study's column.

    Raises ConfigurationError if ``site.yaml`` can't be read, or would be invalid.

    Parameters
    ----------
    folder : Path
        The site's.
    column : str
        Column by its name in studies.
    alias : Alias or None
        The site's names; None removes them.
    still : callable
        Raises an error if the file has changed since the staff looked.
    """
    with take_turns(folder, DECISIONS):
        still()
        text, values = _read(folder)
        aliases = dict(values.get(_ALIASES) or {})
        aliases.pop(column, None)
        if alias is not None:
            aliases[column] = alias.model_dump(mode="json", exclude_defaults=True)
        _write(folder, text, {_ALIASES: aliases})


def set_left_out(folder: Path, table: str) -> None:
    """Name the left-out table; called by the holder of the lock of decisions.

    Raises ConfigurationError as `set_alias`.
    """
    text, _ = _read(folder)
    _write(folder, text, {"left_out": table})


def _read(folder: Path) -> tuple[str, dict[str, Any]]:
    path = folder / CONFIG
    SiteConfig.load(folder)  # an invalid file is not changed
    text = path.read_text(encoding="utf-8")
    return text, dict(parse_yaml(text) or {})


def _write(folder: Path, text: str, fields: Mapping[str, object]) -> None:
    """Write the text with other values of some fields, if it is a valid configuration."""
    path = folder / CONFIG
    wanted = {**(parse_yaml(text) or {}), **fields}
    for name, value in fields.items():
        text = _with_field(text, name, value)
    try:
        if parse_yaml(text) != wanted:
            raise ConfigurationError(
                f"{path}: the field {' or '.join(fields)} must be one that a program can change, "
                "and its form is unusual. Edit the file by hand."
            )
        SiteConfig.model_validate(wanted)
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {first_problem(error, SiteConfig)}") from error
    except ValueError as error:
        raise ConfigurationError(f"{path} can't be changed. Edit it by hand.") from error
    mode = path.stat().st_mode & 0o777
    write_bytes(path.resolve(), text.encode(), mode=mode)  # a link stays one


def _with_field(text: str, name: str, value: object) -> str:
    """Return YAML with another value of a field of the highest level."""
    plain = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False)
    plain = plain.removesuffix("...\n").strip()
    for key, node in _fields(text):
        if key.value == name:
            return f"{text[: key.end_mark.index]}: {plain}{text[_end(node) :]}"
    return f"{text.rstrip()}\n\n{name}: {plain}\n"


def _end(node: yaml.Node) -> int:
    """Return where a value ends, without the comments that follow a block."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(node, yaml.MappingNode) else last)
    return int(node.end_mark.index)


def _fields(text: str) -> list[tuple[yaml.Node, yaml.Node]]:
    loader = PlainLoader(text)
    with suppress(yaml.YAMLError):
        node = loader.get_single_node()
        if isinstance(node, yaml.MappingNode):
            return list(node.value)
    return []
