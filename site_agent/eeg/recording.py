"""One EEG recording as numbers, whichever file it came from.

Native formats are read through MNE, which is imported when the first file is opened.
"""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consortium.base.regular_file import MOST_VALUES, regular, sizes_unpacked, text_of
from consortium.errors import ConfigurationError, DataError

Signals = NDArray[np.float64]


@dataclass(frozen=True)
class Marker:
    """Something that happened."""

    onset: float
    duration: float
    """Seconds, from the recording's first sample."""
    name: str
    """Trial type or marker; one that begins with 'bad' marks a span that is not to be used."""

    @property
    def is_bad(self) -> bool:
        """Whether it marks a span that is not to be used."""
        return self.name.casefold().startswith("bad")


@dataclass(frozen=True, eq=False)
class Recording:
    """One run."""

    path: Path
    """Its file."""
    rate: float
    """Samples per second."""
    channels: tuple[str, ...]
    """The study's channels that it has, by the study's names."""
    signals: Signals
    """Shape (C, N). In µV."""
    markers: tuple[Marker, ...]

    @property
    def seconds(self) -> float:
        """Its length."""
        return float(self.signals.shape[1] / self.rate)

    def onsets(self, events: Sequence[str]) -> list[float]:
        """Times in s of the events of some names, in any way of writing them."""
        wanted = {*events, *map(plain_event, events)}
        chosen = [m for m in self.markers if m.name in wanted or plain_event(m.name) in wanted]
        return sorted(marker.onset for marker in chosen)

    def spoilt(self, start: float, stop: float) -> bool:
        """Whether a span in s touches one that is marked as bad, or a channel is constant in it."""
        bad = (marker for marker in self.markers if marker.is_bad)
        if any(m.onset < stop and start < m.onset + m.duration for m in bad):
            return True
        span = self.signals[:, max(round(start * self.rate), 0) : round(stop * self.rate)]
        return not span.size or bool((np.ptp(span, axis=1) == 0).any())


_FORMER = {"t3": "t7", "t4": "t8", "t5": "p7", "t6": "p8"}
"""Names of the first 10-20 system that the extended one changed."""
_DRESS = re.compile(r"^eeg[ _-]*(?=\S)|[-_](ref|le|avg|m1m2|a1a2)$|\.+$")


def plain_channel(name: str) -> str:
    """Bring a channel's name to one form: 'EEG Fp1-REF', 'FP1' and 'Fp1.' are the same."""
    bare = _DRESS.sub("", name.strip().casefold()).strip()
    return _FORMER.get(bare, bare)


def match_channels(wanted: Iterable[str], there: Iterable[str], where: object) -> Mapping[str, str]:
    """Find the study's channels among a recording's.

    Raises DataError if two of the recording's channels could be meant.

    Parameters
    ----------
    wanted : iterable of str
        The study's names.
    there : iterable of str
        The recording's.
    where : object
        What to call the recording in an error.

    Returns
    -------
    mapping of str to str
        The recording's name by the study's; channels that are not there are left out.
    """
    names = list(there)
    found: dict[str, str] = {}
    for channel in wanted:
        exact = [name for name in names if name == channel]
        alike = exact or [name for name in names if plain_channel(name) == plain_channel(channel)]
        if len(alike) > 1:
            raise DataError(
                f"{where} has {len(alike)} channels that may be {channel}; name one of them so."
            )
        if alike:
            found[channel] = alike[0]
    return found


def plain_event(name: str) -> str:
    """Bring an event's name to one form: 'Stimulus/S  1' and 'S1' are the same."""
    return "".join(name.rsplit("/", 1)[-1].split())


READERS = {
    ".vhdr": "read_raw_brainvision",
    ".edf": "read_raw_edf",
    ".bdf": "read_raw_bdf",
    ".set": "read_raw_eeglab",
    ".fif": "read_raw_fif",
}
"""Name of MNE's reader by the file's ending."""
_PARTS = (*READERS, ".eeg", ".dat", ".vmrk", ".fdt")
_MOST_UNPACKED = 8 * MOST_VALUES
_COMPRESSED = 15  # MATLAB's code of an element
_VOLT = 107
"""FIFF's code of the unit."""

Native = tuple[list[str], float, Signals, set[str], tuple[Marker, ...]]


def load_mne() -> Any:
    """Import MNE, which costs a second or two, and only who reads EEG should pay.

    Raises ConfigurationError if it is not installed.
    """
    try:
        import mne
        import mne.filter
    except ImportError as error:
        raise ConfigurationError(
            "EEG recordings need the package mne; install cape-consortium with its extra 'eeg'."
        ) from error
    return mne


def read_native(path: Path, channels: Sequence[str]) -> Native:
    """Read the study's channels, as far as they are there.

    Raises DataError if the file is damaged or cut short, or not of volts. Raises ConfigurationError
    if MNE is not installed.

    Parameters
    ----------
    path : Path
        With one of the endings of `READERS`.

    Returns
    -------
    names : list of str
        The file's.
    rate : float
        Samples per second.
    signals : array, shape (C, N)
        In µV, in the order of ``names``.
    bad : set of str
        Channels that the file calls bad.
    markers : tuple of Marker
    """
    mne = load_mne()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _check_parts(path)
            _check_whole(path)
            if path.suffix == ".set":
                _check_matlab(path)
            raw = getattr(mne.io, READERS[path.suffix])(path, preload=False, verbose="ERROR")
            names = list(match_channels(channels, raw.ch_names, path).values())
            _check_opened(path, raw, len(names))
            if any(raw.info["chs"][raw.ch_names.index(x)]["unit"] != _VOLT for x in names):
                raise DataError(f"{path} has channels that are not in volts; correct their units.")
            signals = 1e6 * raw.get_data(picks=names, verbose="ERROR") if names else _nothing(raw)
            markers = _annotated(raw) or _triggered(mne, raw)
    except DataError:
        raise
    except Exception as error:  # MNE's readers raise anything on files that are not what they say
        raise DataError(
            f"{path} can't be read as a continuous EEG recording; check that it and the files that "
            "belong to it are there, whole."
        ) from error
    return names, float(raw.info["sfreq"]), signals, set(raw.info["bads"]), markers


def _nothing(raw: Any) -> Signals:
    empty: Signals = raw.get_data(picks=[0], verbose="ERROR")[:0]
    return empty


def _annotated(raw: Any) -> tuple[Marker, ...]:
    """Annotations; MNE counts them from where the amplifier's clock started."""
    return tuple(
        Marker(float(x["onset"]) - raw.first_time, float(x["duration"]), str(x["description"]))
        for x in raw.annotations
    )


def _triggered(mne: Any, raw: Any) -> tuple[Marker, ...]:
    """Steps of the trigger channel; a marker's name is its number."""
    if "stim" not in raw.get_channel_types():
        return ()
    found = mne.find_events(raw, shortest_event=1, verbose="ERROR")
    first, rate = raw.first_samp, raw.info["sfreq"]
    return tuple(Marker((sample - first) / rate, 0.0, str(code)) for sample, _, code in found)


def _check_parts(path: Path) -> None:
    """Refuse a folder where a file that a recording may name is no regular one."""
    for each in (path, *path.parent.iterdir()):
        if each.suffix in _PARTS and each.exists():
            regular(each)


def _check_opened(path: Path, raw: Any, channels: int) -> None:
    """Refuse a recording of other folders' files, or one that is longer than memory.

    A few bytes of FIF may claim hours that were left out, and EDF's slow channels become fast.
    """
    home = path.parent.resolve()
    if any(Path(each).parent.resolve() != home for each in raw.filenames if each):
        raise DataError(f"{path} names data in another folder; put its own beside it.")
    if raw.n_times * max(channels, 1) > MOST_VALUES:
        raise DataError(f"{path} claims more than {MOST_VALUES:,} values; give a shorter one.")


def _check_matlab(path: Path) -> None:
    """Refuse a file of EEGLAB that unpacks to more than a recording has."""
    left = _MOST_UNPACKED
    with path.open("rb") as file:
        order = {b"IM": "little", b"MI": "big"}.get(file.read(128)[126:])
        while order and len(tag := file.read(8)) == 8:
            kind, size = (int.from_bytes(tag[k : k + 4], order) for k in (0, 4))  # type: ignore[arg-type]
            if kind != _COMPRESSED:
                file.seek(size, 1)
                continue
            for part in sizes_unpacked(file.read(size)):
                left -= part
                if left < 0:
                    raise DataError(f"{path} unpacks to more than a recording; export it again.")


def _check_whole(path: Path) -> None:
    """Refuse EDF, BDF and BrainVision files that are shorter than they say.

    MNE reads what is left of them.
    """
    if path.suffix in (".edf", ".bdf"):
        needed, size = _edf_size(path), path.stat().st_size
    elif path.suffix == ".vhdr":
        needed, size = _brainvision_size(path)
    else:
        return
    if size < needed:
        raise DataError(f"{path} is cut short: its header asks for more; copy the file again.")


def _edf_size(path: Path) -> int:
    """Bytes that the header of an EDF or BDF file asks for; 0 if it does not know."""
    with path.open("rb") as file:
        fixed = file.read(256)
        header, records, signals = int(fixed[184:192]), int(fixed[236:244]), int(fixed[252:256])
        file.seek(256 + 216 * signals)
        samples = sum(int(file.read(8)) for _ in range(signals))
    width = 3 if path.suffix == ".bdf" else 2
    return header + max(records, 0) * samples * width


def _brainvision_size(path: Path) -> tuple[int, int]:
    """Bytes that a BrainVision header asks for, and those that its data have.

    Without a number of points, a last sample of too few channels still shows.
    """
    fields: dict[str, str] = {}
    for line in text_of(path, errors="replace").splitlines():
        key, separator, value = line.partition("=")
        if separator:
            fields.setdefault(key.strip(), value.strip())
        if key.strip().lower() in ("datafile", "markerfile") and {"/", "\\"} & set(value):
            raise DataError(f"{path} names a file in another folder; put its own beside it.")
    if fields.get("DataFormat", "BINARY") != "BINARY":
        return 0, 0
    name = fields["DataFile"].replace("$b", path.stem)
    size = (path.parent / name).stat().st_size
    width = 4 if fields.get("BinaryFormat") == "IEEE_FLOAT_32" else 2
    frame = int(fields["NumberOfChannels"]) * width
    if "DataPoints" in fields:
        return int(fields["DataPoints"]) * frame, size
    return size + size % frame, size
