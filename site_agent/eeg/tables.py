"""The two BIDS tables beside an EEG recording: its events and its channels."""

import math
from pathlib import Path

from consortium.errors import DataError
from site_agent.data.tsv import read_lines
from site_agent.eeg.recording import Marker


def read_events(path: Path) -> tuple[Marker, ...]:
    """Read ``_events.tsv``: onset, duration and trial_type, or else value.

    Raises
    ------
    DataError
        If a column or a number is missing.
    """
    rows = read_lines(path)
    name = next((column for column in ("trial_type", "value") if column in rows[0]), None)
    if name is None or "onset" not in rows[0]:
        raise DataError(f"{path} has no columns onset and trial_type; add them.")
    found = []
    for number, row in enumerate(rows[1:], start=2):
        cells = dict(zip(rows[0], row, strict=False))
        onset, duration = _number(cells.get("onset")), _number(cells.get("duration"))
        if onset is None or onset < 0:
            raise DataError(f"{path}, line {number}, tells no onset in seconds; correct the table.")
        found.append(Marker(onset, max(duration or 0.0, 0.0), cells.get(name, "").strip()))
    return tuple(found)


def bad_channels(path: Path | None) -> set[str]:
    """Channels that ``_channels.tsv`` calls bad; none without a table.

    Raises
    ------
    DataError
        If the table can't be read.
    """
    if path is None:
        return set()
    rows = read_lines(path)
    cells = (dict(zip(rows[0], row, strict=False)) for row in rows[1:])
    return {x.get("name", "").strip() for x in cells if x.get("status", "").strip() == "bad"}


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None
