"""Time from volume to volume of a recording, and the file that states it."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from consortium.base.atomic import DAMAGED
from consortium.base.regular_file import text_of
from consortium.errors import DataError
from site_agent.data.names import ON_MESHES
from site_agent.data.survey import RecordingRun, sidecar_path
from site_agent.images.nifti import open_nifti
from site_agent.images.surfaces import axis_step

_SECONDS = {8: 1.0, 16: 1e-3, 24: 1e-6}
"""By NIfTI's code of the unit of time."""
_UNIT_OF_TIME = 0x38
_SHORTEST = 0.01
_LONGEST = 60.0
AGREE = 0.01
"""Part by which two statements of one repetition time may differ."""
_FIELD = "RepetitionTime"


class Timing(NamedTuple):
    """Repetition time of a recording in s."""

    seconds: float
    origin: Literal["JSON", "header"]
    others: tuple[float, ...] = ()
    """The same by the header, where it states one and the time is that of a JSON file.

    JSON files further away may state other times, as BIDS lets the nearest override them."""

    @property
    def disagrees(self) -> bool:
        """Whether the header differs by more than `AGREE`."""
        return any(abs(other - self.seconds) > AGREE * self.seconds for other in self.others)


def timing_of(run: RecordingRun) -> Timing:
    """Return a recording's repetition time, from the nearest JSON file or its header.

    Raises DataError if a JSON file can't be read, or no file states a time between 0.01 and 60 s.
    """
    stated = next(_stated(run), None)
    try:
        in_header = _header_step(run.bold)
    except DataError:
        if stated is None:
            raise
        in_header = 0.0  # the image itself is refused when it is read
    plausible = [in_header] if _SHORTEST <= in_header <= _LONGEST else []
    if stated is not None:
        return Timing(stated, "JSON", tuple(plausible))
    if not plausible:
        sidecar = sidecar_path(run.bold).name
        raise DataError(
            f"{run.bold}: a repetition time in s is required, and neither a JSON file nor the "
            f"header with its unit states one. Write {_FIELD} into {sidecar}."
        )
    return Timing(plausible[0], "header")


def seconds_apart(run: RecordingRun) -> float:
    """Return the seconds from volume to volume of a recording; raises as `timing_of`."""
    return timing_of(run).seconds


def _stated(run: RecordingRun) -> Iterator[float]:
    """Yield the repetition times in the JSON files of a recording, the nearest first."""
    for path in run.metadata:
        fields = read_metadata(path)
        if _FIELD in fields:
            yield _checked(path, fields[_FIELD])


def read_metadata(path: Path) -> dict[str, Any]:
    """Read a JSON file that describes an image, for its repetition time.

    Raises DataError if it can't be read or is not a JSON object.
    """
    try:
        fields = json.loads(text_of(path))
    except DAMAGED as error:
        raise DataError(
            f"{path} must be a readable JSON file. Correct it, or remove it so the header of the "
            "image is used."
        ) from error
    if not isinstance(fields, dict):
        raise DataError(f"{path} must have a JSON object of fields. Correct it, or remove it.")
    return fields


def _checked(path: Path, value: Any) -> float:
    try:
        step = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        step = math.nan
    if not _SHORTEST <= step <= _LONGEST:
        raise DataError(
            f"{path}: {_FIELD} must be a number of s between {_SHORTEST:g} and {_LONGEST:g}, got "
            f"{str(value)[:40]!r}. Correct the file."
        )
    return step


def _header_step(path: Path) -> float:
    """Return the repetition time in an image's header in s; 0 if it has none with a unit."""
    if path.name.endswith(ON_MESHES):
        return axis_step(path)
    number, unit = _header_number(path)
    # Without a unit the number has no meaning; it is 1 in most files.
    return _SECONDS.get(unit, 0.0) * number


def _header_number(path: Path) -> tuple[float, int]:
    """Return the number in the field of the repetition time, and NIfTI's code of its unit."""
    header = open_nifti(path).header
    return float(header["pixdim"][4]), int(header["xyzt_units"]) & _UNIT_OF_TIME


def number_without_unit(path: Path) -> float | None:
    """Return the number in an image's header that has no unit of time; None if it has one, or is 0.

    Raises DataError if the image can't be opened.
    """
    if path.name.endswith(ON_MESHES):
        return None
    number, unit = _header_number(path)
    return number if number > 0 and unit not in _SECONDS else None
