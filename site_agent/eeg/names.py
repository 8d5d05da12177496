"""Names in EEG recordings: systems write one channel, and one event, in several ways."""

import re
from collections.abc import Iterable, Mapping

from consortium.errors import DataError

_FORMER = {"t3": "t7", "t4": "t8", "t5": "p7", "t6": "p8"}
"""Names of the first 10-20 system that the extended one changed."""
_DRESS = re.compile(r"^eeg[ _-]*(?=\S)|[-_](ref|le|avg|m1m2|a1a2)$|\.+$")


def plain_channel(name: str) -> str:
    """Bring a channel's name to one form: 'EEG Fp1-REF', 'FP1' and 'Fp1.' are the same."""
    bare = _DRESS.sub("", name.strip().casefold()).strip()
    return _FORMER.get(bare, bare)


def match_channels(wanted: Iterable[str], there: Iterable[str], where: object) -> Mapping[str, str]:
    """Find the study's channels among a recording's.

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

    Raises
    ------
    DataError
        If two of the recording's channels could be meant.
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
