"""JSON files that describe EEG recordings."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consortium.base.atomic import DAMAGED
from consortium.base.regular_file import text_of
from consortium.errors import DataError
from site_agent.eeg.names import recording_stem, table_beside

MICROVOLTS = {"V": 1e6, "mV": 1e3, "µV": 1.0, "μV": 1.0, "uV": 1.0, "nV": 1e-3}
"""µV in one of each unit; both letters for 'micro' are in use."""


@dataclass(frozen=True)
class RecordingSidecar:
    """Facts that a recording's JSON file states."""

    rate: float | None = None
    """Samples per second."""
    names: tuple[str, ...] = ()
    """Names of the channels; only used for NIfTI."""
    unit: str = "µV"
    """Only used for NIfTI."""

    @property
    def factor(self) -> float:
        """Return the µV in one unit."""
        return MICROVOLTS[self.unit]


def read_sidecar(path: Path, *, complete: bool = False) -> RecordingSidecar:
    """Read the JSON file of a recording, if there is one.

    Parameters
    ----------
    path : Path
        The recording.
    complete : bool
        Require rate, channels and unit, as a NIfTI recording does.

    Raises
    ------
    DataError
        If the file exists and can't be read as JSON, or lacks a required field.
    """
    if complete:
        return _complete(path.with_name(f"{recording_stem(path)}.json"))
    file = table_beside(path, "eeg", ".json")
    if file is None:
        return RecordingSidecar()
    try:
        fields: Any = json.loads(text_of(file))
        stated = fields.get("SamplingFrequency")
    except DAMAGED as error:
        raise DataError(f"{file} must be a JSON object. Write it again, or remove it.") from error
    return RecordingSidecar(_possible_rate(stated))


def _possible_rate(stated: object) -> float | None:
    """Return a rate of a JSON file, or None if it is not a number that can be one."""
    if isinstance(stated, bool) or not isinstance(stated, int | float):
        return None
    try:
        rate = float(stated)
    except OverflowError:
        return None
    return rate if 0 < rate < math.inf else None


def _channel_names(stated: object) -> tuple[str, ...]:
    """Return the names of a JSON file; raises TypeError if they are not a list of texts."""
    if not isinstance(stated, list) or not all(isinstance(name, str) for name in stated):
        raise TypeError(stated)
    return tuple(stated)


def _complete(file: Path) -> RecordingSidecar:
    try:
        fields: Any = json.loads(text_of(file))
        names = _channel_names(fields["ChannelNames"])
        rate = _possible_rate(fields["SamplingFrequency"]) or 0.0
        sidecar = RecordingSidecar(rate, names, str(fields.get("Units", "µV")))
        factor = sidecar.factor
    except DAMAGED as error:
        raise DataError(
            f"{file} must state SamplingFrequency in Hz, ChannelNames (a list of texts) and Units "
            "(V, mV, µV or nV) of its recording. Write them."
        ) from error
    if not (0 < rate < 1e6 and names and factor):
        raise DataError(
            f"{file}: SamplingFrequency must be a number above 0 and below 1,000,000 Hz, and "
            "ChannelNames must name a channel. Correct them."
        )
    return sidecar
