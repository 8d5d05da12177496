"""Files whose names are almost those of a study's images, and the difference in words."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from consortium.study.data_section import DataSection
from site_agent.data.names import (
    ENDINGS,
    FIELDS,
    MAGNITUDE,
    VERTEX_SERIES,
    Entities,
    entities,
    index_of,
    is_in_space,
    versions_wanted,
)

_SUFFIX = "bold"
_OTHER_KINDS = {"boldref", "boldmap", "mask", "dseg", "probseg", "sbref", "timeseries", "events"}
"""Suffixes of images that accompany a series."""
_FOREIGN = (".img", ".hdr", ".nii.bz2", ".nii.zst", ".mgz", ".mgh", ".mif", ".head")
"""Endings of other formats of images."""
_NAMED = 3


class _Miss(NamedTuple):
    differences: int
    name: str
    text: str


def near_miss(files: Sequence[Path], data: DataSection) -> str:
    """Return the file whose name is nearest to the study's images, and how it differs.

    Parameters
    ----------
    files : sequence of Path
        All files of one participant.
    data : DataSection
        The study's.

    Returns
    -------
    str
        Such as 'sub-01_task-Rest_bold.nii.gz has task-Rest instead of task-rest', with the other
        spaces if only the space differs. Empty if no file is near.
    """
    misses = sorted(filter(None, (_miss(path, data) for path in files)))
    if not misses:
        return ""
    least = [each for each in misses if each.differences == misses[0].differences]
    others = list(dict.fromkeys(each.text for each in least))
    more = f" Other files differ by {', '.join(others[1:_NAMED])}." if others[1:] else ""
    return f"{least[0].name} has {least[0].text}.{more}"


def _miss(path: Path, data: DataSection) -> _Miss | None:
    """Return how an image's name differs; None if it is not a series or not similar."""
    endings = VERTEX_SERIES if data.mesh else ENDINGS
    known = next((each for each in (*endings, *_FOREIGN) if path.name.lower().endswith(each)), None)
    if known is None:
        return None
    ending = endings[0] if known in _FOREIGN else known
    written = path.name[len(path.name) - len(known) :]
    found = list(_differences(path.with_name(path.name.removesuffix(written) + ending), data))
    if "" in found:
        return None
    if written != ending:
        found.append(f"the ending {written} instead of {ending}")
    return _Miss(len(found), path.name, " and ".join(found)) if found else None


def _differences(path: Path, data: DataSection) -> Iterator[str]:
    """Yield the differences in words; '' if the file is of another kind."""
    named = entities(path)
    key, dash, label = named["suffix"].partition("-")
    named |= {key: label} if dash else {}
    task = named.get("task", "")
    if named["suffix"] != _SUFFIX:
        yield from _other_suffix(named["suffix"]) if task else ("",)
    if task != data.task:
        yield _instead("task", task, data.task)
    if not is_in_space(named, data):
        yield _instead("space", _space(named), data.space) if not data.mesh else _of_mesh(data)
    yield from _other_labels(named, data)


def _other_suffix(suffix: str) -> Iterator[str]:
    if suffix in _OTHER_KINDS:
        yield ""
    elif "-" in suffix:
        yield f"no suffix _{_SUFFIX} after {suffix}"
    else:
        yield f"the suffix _{suffix} instead of _{_SUFFIX}"


def _space(named: Entities) -> str:
    return "+".join(named[key] for key in ("space", "cohort") if key in named)


def _of_mesh(data: DataSection) -> str:
    return f"another space or density than the mesh {data.mesh}"


def _other_labels(named: Entities, data: DataSection) -> Iterator[str]:
    for key, label in versions_wanted(data).items():
        if named.get(key) != label:
            yield _instead(key, named.get(key, ""), label)
    for key, field in FIELDS.items():
        wanted = getattr(data, field)
        if wanted is not None and not _is_label(named.get(key), wanted):
            yield _instead(key, named.get(key, ""), str(wanted))
    if data.echo is not None and index_of(named.get("echo")) != data.echo:
        yield _instead("echo", named.get("echo", ""), str(data.echo))
    if named.get("part", MAGNITUDE) != MAGNITUDE:
        yield f"part-{named['part']}, which is not the magnitude"
    if "echo" in named and data.echo is None:
        yield f"echo-{named['echo']}, which is a single echo"


def _is_label(found: str | None, wanted: str | int) -> bool:
    return index_of(found) == wanted if isinstance(wanted, int) else found == wanted


def _instead(key: str, found: str, wanted: str) -> str:
    return f"{f'{key}-{found}' if found else f'no {key}-'} instead of {key}-{wanted}"
