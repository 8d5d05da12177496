"""YAML files that users write: only plain ones, without features that a reader may overlook."""

from collections.abc import Mapping
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from consortium.base.atomic import write_bytes

MOST_TEXT = 1_000_000
"""Characters; whatever people write by hand is a page."""
_MOST_VALUE = 10_000
"""Characters of one value: YAML 1.1 reads 1:1:1 in base 60, in a time that grows as the square."""
_MOST_NODES = 20_000
"""Values of a file: the largest roster has 2,300, and half a million of them take ten seconds."""


class PlainYamlError(ValueError):
    """The text is not plain YAML; ``line`` is where, from 1, if known."""

    def __init__(self, line: int | None) -> None:
        super().__init__()
        self.line = line


class PlainLoader(yaml.SafeLoader):
    """YAML without aliases, tags, merged fields and fields written twice."""

    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Refuse aliases, which may expand to billions of values, tags, and infinite numbers.

        PyYAML raises foreign errors for some values of a tag. No file name has a null character.
        """
        event = self.peek_event()  # type: ignore[no-untyped-call]
        self.nodes += 1
        long = isinstance(event, yaml.ScalarEvent) and len(event.value) > _MOST_VALUE
        endless = long or self.nodes > _MOST_NODES
        unfit = isinstance(event, yaml.AliasEvent) or "\0" in getattr(event, "value", "")
        if unfit or endless or getattr(event, "tag", None) is not None:
            raise yaml.MarkedYAMLError(problem_mark=event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuse a field that is written twice, or merged: YAML would take one in silence."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and (key.value in seen or key.value == "<<"):
                raise yaml.MarkedYAMLError(problem_mark=key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


def parse_yaml(text: str) -> Any:
    """Read plain YAML; raises PlainYamlError if it is too long, not YAML, or not plain."""
    if len(text) > MOST_TEXT:
        raise PlainYamlError(None)
    try:
        return deepcopy(_loaded(text))
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        raise PlainYamlError(None if line is None else line + 1) from error


@lru_cache(maxsize=16)  # milliseconds, and a few texts are read at every step
def _loaded(text: str) -> Any:
    return yaml.load(text, Loader=PlainLoader)  # noqa: S506 - a stricter SafeLoader


def read_limited(path: Path) -> bytes:
    """Read a file that another party may have sent, up to a little more than `MOST_TEXT`.

    Raises OSError if it can't be read.
    """
    with path.open("rb") as file:
        return file.read(4 * MOST_TEXT + 1)


def read_yaml(path: Path) -> Any:
    """Read a plain YAML file, without anchors, tags or repeated keys.

    Raises OSError if the file can't be read. Raises ValueError if it is not text, or `parse_yaml`
    refuses it.
    """
    return parse_yaml(read_limited(path).decode("utf-8"))


def write_yaml(path: Path, content: Mapping[str, Any]) -> None:
    """Write a YAML file whole; raises OutputError if it can't be written."""
    write_bytes(path, yaml.safe_dump(dict(content), sort_keys=False).encode())
