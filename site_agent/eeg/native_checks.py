"""Checks of native EEG files before MNE reads them.

MNE reads the rest of a file that was cut short, and follows names of files in other folders.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from consortium.base.regular_file import MOST_VALUES, regular, sizes_unpacked, text_of
from consortium.errors import DataError
from site_agent.data.cache import own_folders
from site_agent.eeg.edf_clock import edf_layout

READERS: Mapping[str, str] = {
    ".vhdr": "read_raw_brainvision",
    ".edf": "read_raw_edf",
    ".bdf": "read_raw_bdf",
    ".set": "read_raw_eeglab",
    ".fif": "read_raw_fif",
}
"""Name of MNE's reader by the file's ending."""
IN_CAPITALS = (".edf", ".bdf", ".set", ".fif")
"""Endings that MNE also reads in capital letters."""
_PARTS = (*READERS, ".eeg", ".dat", ".vmrk", ".fdt")
_MOST_UNPACKED = 8 * MOST_VALUES
_LABEL = re.compile(r"(?:^|(?<=[_ ]))sub-([^\W_]+)", re.I)
"""A participant's label at any place of a name."""
_COMPRESSED = 15  # MATLAB's code of an element


def ending_of(path: Path) -> str | None:
    """Return the key of `READERS` that an EEG file's name ends with, or None if there is none."""
    small = path.suffix.lower()
    return small if path.suffix in READERS or small in IN_CAPITALS else None


def check_parts(path: Path) -> None:
    """Refuse a folder where a file that an EEG recording may name is not a regular one."""
    for each in (path, *path.parent.iterdir()):
        if each.suffix.lower() in _PARTS and each.exists():
            regular(each)


def check_opened(path: Path, raw: Any, channels: int) -> None:
    """Refuse a recording of other folders' or participants' files, or one longer than memory.

    A few bytes of FIF may claim hours of omitted data, and EDF's slow channels become fast.
    """
    home = path.parent.resolve()
    if any(Path(each).parent.resolve() != home for each in raw.filenames if each):
        raise DataError(f"{path} names data in another folder. Put them next to it.")
    for each in filter(None, raw.filenames):
        check_part(path, Path(each).name)
    if raw.n_times * max(channels, 1) > MOST_VALUES:
        raise DataError(f"{path} claims more than {MOST_VALUES:,} values. Give a shorter one.")


def check_part(path: Path, name: str) -> None:
    """Refuse a part of an EEG recording that is named as another participant's.

    A header that was copied from another folder would count that participant twice. A part whose
    name has no participant is accepted.
    """
    own = _LABEL.search(path.name) or _LABEL.search(own_folders(path)[-1].name)
    named = _LABEL.search(name)
    if own and named and own[1] != named[1]:
        raise DataError(
            f"{path}: the parts of a recording of {own[0]} must be {own[0]}'s, and {name} is named "
            f"as {named[0]}'s. Copy the recording again, or correct the name in its header."
        )


def check_matlab(path: Path) -> None:
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
                    raise DataError(f"{path} unpacks to more than a recording. Export it again.")


def check_whole(path: Path) -> None:
    """Refuse EDF, BDF and BrainVision files that are shorter than stated.

    MNE reads the rest of them.
    """
    if ending_of(path) in (".edf", ".bdf"):
        layout = edf_layout(path)
        needed = layout.header + layout.records * layout.bytes
        size = path.stat().st_size
    elif path.suffix == ".vhdr":
        needed, size = _brainvision_size(path)
    else:
        return
    if size < needed:
        raise DataError(f"{path} is cut short: its header asks for more. Copy the file again.")


def _check_named(path: Path, name: str) -> None:
    """Refuse the name of a part that is in another folder or another participant's."""
    if {"/", "\\"} & set(name):
        raise DataError(
            f"{path} names a file in another folder. Put it into the recording's folder."
        )
    check_part(path, name)


def _brainvision_size(path: Path) -> tuple[int, int]:
    """Return the bytes that a BrainVision header requires, and those of its data.

    Without a number of points, a last sample of too few channels still shows.
    """
    fields: dict[str, str] = {}
    for line in text_of(path, errors="replace").splitlines():
        key, separator, value = line.partition("=")
        if separator:
            fields.setdefault(key.strip(), value.strip())
        if key.strip().lower() in ("datafile", "markerfile"):
            _check_named(path, value.strip())
    if fields.get("DataFormat", "BINARY") != "BINARY":
        return 0, 0
    name = fields["DataFile"].replace("$b", path.stem)
    size = (path.parent / name).stat().st_size
    width = 4 if fields.get("BinaryFormat") == "IEEE_FLOAT_32" else 2
    frame = int(fields["NumberOfChannels"]) * width
    if "DataPoints" in fields:
        return int(fields["DataPoints"]) * frame, size
    return size + size % frame, size
