"""Finding EEG recordings in a BIDS data set, and reading one of them.

The two BIDS tables beside an EEG recording: its events and its channels.
"""

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from consortium.base.atomic import DAMAGED
from consortium.base.regular_file import text_of
from consortium.errors import DataError
from consortium.study.data_section import DataSection
from site_agent.data.bids import (
    VARIANTS,
    Entities,
    entities,
    first_recordings,
    has_entities,
    misplaced_file,
)
from site_agent.data.survey import Reason, SkippedPerson
from site_agent.data.tsv import read_lines
from site_agent.eeg.recording import (
    READERS,
    Marker,
    Recording,
    Signals,
    match_channels,
    read_native,
)
from site_agent.images.nifti import open_nifti, read_whole


def read_events(path: Path) -> tuple[Marker, ...]:
    """Read ``_events.tsv``: onset, duration and trial_type, or else value.

    Raises DataError if a column or a number is missing.
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

    Raises DataError if the table can't be read.
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


NIFTI = (".nii.gz", ".nii")
ENDINGS = (*READERS, *NIFTI)
"""In the order in which versions of one recording are preferred."""
MICROVOLTS = {"V": 1e6, "mV": 1e3, "µV": 1.0, "μV": 1.0, "uV": 1.0, "nV": 1e-3}


def find_recordings(
    folder: Path, task: str, data: DataSection
) -> dict[str, tuple[Path, ...] | SkippedPerson]:
    """Find every person's recordings of a task; reads names of files only.

    Raises DataError if nobody has one.

    Parameters
    ----------
    folder : Path
        A BIDS data set, raw or derivatives, with files ``sub-*/**/*_task-TASK_*eeg.*``.
    data : DataSection
        The study's; its session, run, acquisition, direction and runs choose files.

    Returns
    -------
    dict of str to tuple of Path or Skipped
        By label; why a person has none, or why it can't be used, as one that is named as another's.
    """
    people: dict[str, tuple[Path, ...] | SkippedPerson] = {}
    for home in sorted(path for path in folder.glob("sub-*") if path.is_dir()):
        label, found = home.name.removeprefix("sub-"), _fitting(home, task, data)
        strange = misplaced_file(home, found)
        versions: dict[tuple[tuple[str, str], ...], list[Path]] = defaultdict(list)
        for path in found:
            versions[_run(_entities(path))].append(path)
        chosen = (min(paths, key=_preference) for paths in versions.values())
        if strange is not None:
            people[label] = SkippedPerson(label, "unusable", strange)
        elif found:
            people[label] = tuple(sorted(first_recordings(chosen, data)))
        else:
            reason: Reason = "no-view"
            if _fitting(home, task, data.of_any_recording):
                reason = "not-chosen"
            detail = f"{folder}: sub-{label} has no EEG of task-{task}."
            people[label] = SkippedPerson(label, reason, detail)
    if not any(isinstance(found, tuple) or found.reason == "unusable" for found in people.values()):
        raise DataError(f"{folder} holds no sub-*_task-{task}_eeg file; check path and task.")
    return people


def _fitting(home: Path, task: str, data: DataSection) -> list[Path]:
    """List a folder's recordings of a task that the study takes, in all their versions."""
    found = []
    for path in sorted(home.rglob("*_eeg.*")):
        named = _entities(path)
        # Later parts of a split FIF file are read with the first.
        later = named.get("split", "01").lstrip("0") not in ("", "1")
        fits = named.get("task") == task and has_entities(named, data)
        if path.name.endswith(ENDINGS) and fits and not later:
            found.append(path)
    return found


def read_recording(path: Path, channels: Sequence[str]) -> Recording:
    """Read the study's channels of a run, and its events.

    Events come from the BIDS table beside it, or else from the file's own markers. Channels that
    the BIDS table of channels or the file calls bad count as missing. Raises DataError if the file
    or a table beside it is damaged, or a value is not finite.

    Parameters
    ----------
    path : Path
        BrainVision, EDF, BDF, EEGLAB or FIF file, or a NIfTI image of channels by time.

    Returns
    -------
    Recording
    """
    if path.name.endswith(NIFTI):
        names, rate, signals = _read_nifti(path)
        bad: set[str] = set()
        markers: tuple[Marker, ...] = ()
    else:
        names, rate, signals, bad, markers = read_native(path, channels)
    bad |= bad_channels(_beside(path, "channels"))
    found = match_channels(channels, names, path)
    kept = {mine: names.index(theirs) for mine, theirs in found.items() if theirs not in bad}
    chosen = np.asarray(signals, dtype=np.float64)[list(kept.values())]
    if not np.isfinite(chosen).all():
        raise DataError(f"{path} has a value that is not finite; export the recording again.")
    if kept and not chosen.any():
        raise DataError(f"{path} is zero throughout; export the recording again.")
    table = _beside(path, "events")
    recording = Recording(path, rate, tuple(kept), chosen, read_events(table) if table else markers)
    _check_markers(recording)
    return recording


def _check_markers(recording: Recording) -> None:
    """Refuse events from behind the end, which tell of a file cut short or another run's table."""
    last = max((m.onset for m in recording.markers), default=0.0)
    if last > recording.seconds:
        raise DataError(
            f"{recording.path} is {recording.seconds:.1f} s long and has an event at {last:.1f} s; "
            "copy the recording, or its events table, again."
        )


def _read_nifti(path: Path) -> tuple[list[str], float, Signals]:
    """Read an image of channels by time; what else there is to know comes from its sidecar."""
    names, rate, factor = _sidecar(path)
    values = read_whole(path, open_nifti(path))
    table = values.reshape([length for length in values.shape if length > 1] or [1])
    if table.ndim == 1:
        table = table.reshape(len(names), -1) if len(names) == 1 else table[None]
    if table.ndim == 2 and table.shape[0] != len(names) == table.shape[1]:
        table = table.T
    if table.ndim != 2 or table.shape[0] != len(names):
        raise DataError(
            f"{path} has shape {values.shape}, which is not its {len(names)} channels by time; "
            "correct the sidecar's ChannelNames or the image."
        )
    return names, rate, factor * table


def _sidecar(path: Path) -> tuple[list[str], float, float]:
    """Names of the channels, samples per second, and µV per unit of a NIfTI recording."""
    sidecar = path.with_name(f"{_stem(path)}.json")
    try:
        fields: Any = json.loads(text_of(sidecar))
        names, rate = (
            [str(name) for name in fields["ChannelNames"]],
            float(fields["SamplingFrequency"]),
        )
        factor = MICROVOLTS[str(fields.get("Units", "µV"))]
    except DAMAGED as error:
        raise DataError(
            f"{sidecar} must tell SamplingFrequency in Hz, ChannelNames and Units (V, mV, µV or "
            "nV) of its recording; write them."
        ) from error
    if not 0 < rate < 1e6 or not names:
        raise DataError(f"{sidecar} tells no usable SamplingFrequency or ChannelNames; correct it.")
    return names, rate, factor


def _beside(path: Path, suffix: str) -> Path | None:
    """Find the BIDS table of a recording: of the same run, whatever its version."""
    run = _run(_entities(path))
    for table in sorted(path.parent.glob(f"*_{suffix}.tsv")):
        if _run(_entities(table)) == run:
            return table
    return None


def _entities(path: Path) -> Entities:
    return entities(Path(_stem(path)))


def _stem(path: Path) -> str:
    for ending in (*ENDINGS, ".tsv"):
        if path.name.endswith(ending):
            return path.name.removesuffix(ending)
    return path.name


def _run(named: Entities) -> tuple[tuple[str, str], ...]:
    """Return what makes a run: all entities that are not a matter of processing or storage."""
    apart = (*VARIANTS, "split", "suffix")
    return tuple(sorted(pair for pair in named.items() if pair[0] not in apart))


def _preference(path: Path) -> tuple[bool, bool, int, str]:
    description = _entities(path).get("desc")
    ending = next(n for n, each in enumerate(ENDINGS) if path.name.endswith(each))
    return description != "preproc", description is not None, ending, path.name
