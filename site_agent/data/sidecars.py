"""JSON files that describe an image, by the inheritance principle of BIDS.

Source: BIDS 1.10, "The Inheritance Principle". A file applies to all images in its folder and below
that have its suffix and all of its entities. The nearest folder takes precedence, and in one folder
the file with the most entities.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from site_agent.data.names import Entities, entities


class Sidecar(NamedTuple):
    """JSON file with its folder and the entities of its name."""

    path: Path
    folder: str
    """The folder's path with a final slash; empty for the working directory."""
    named: Entities


def described(paths: Iterable[Path]) -> list[Sidecar]:
    """Return the JSON files among some paths."""
    found = (path for path in paths if path.name.endswith(".json"))
    return [Sidecar(path, f"{path.parent}/".removeprefix("./"), entities(path)) for path in found]


def sidecars_of(image: Path, known: Sequence[Sidecar]) -> tuple[Path, ...]:
    """Return the JSON files that apply to an image, the nearest first."""
    named = entities(image).items()
    where = str(image)
    found = [
        each for each in known if where.startswith(each.folder) and each.named.items() <= named
    ]
    found.sort(key=lambda each: (-len(each.folder), -len(each.named), each.path.name))
    return tuple(each.path for each in found)
