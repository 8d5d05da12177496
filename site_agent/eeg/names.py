"""Names of EEG recordings and of the files that belong to them."""

from pathlib import Path

from site_agent.data.bids import VARIANTS, Entities, entities
from site_agent.data.cache import own_folders
from site_agent.eeg.native_checks import READERS, ending_of

NIFTI = (".nii.gz", ".nii")
ENDINGS = (*READERS, *NIFTI)
"""Endings in the order in which versions of one recording are preferred."""
Run = tuple[tuple[str, str], ...]


def recording_ending(path: Path) -> str | None:
    """Return the ending by which a recording is read, or None if its format is not read."""
    return next((each for each in NIFTI if path.name.endswith(each)), ending_of(path))


def recording_stem(path: Path) -> str:
    """Return an EEG file's name without its ending."""
    ending = recording_ending(path) or path.suffix
    return path.name[: -len(ending)] if ending else path.name


def entities_of(path: Path) -> Entities:
    """Return the BIDS entities in an EEG file's name, with 'suffix' as one more."""
    return entities(Path(recording_stem(path)))


def run_of(path: Path) -> Run:
    """Return the entities that identify an EEG run, not its processing or storage.

    The index of a run is a number, so run-1 and run-01 are one.
    """
    apart = (*VARIANTS, "split", "suffix")
    named = {key: value for key, value in entities_of(path).items() if key not in apart}
    if named.get("run", "").isdecimal():
        named["run"] = str(int(named["run"]))
    return tuple(sorted(named.items()))


def table_beside(path: Path, suffix: str, ending: str = ".tsv") -> Path | None:
    """Return the BIDS file of some kind that applies to a recording, or None if there is none.

    The entities of its name, without those of processing, are some of the recording's, as the BIDS
    principle of inheritance has it. The nearest folder decides, then the longest name, and then the
    processing that is nearest to the recording's. Only the participant's own folders are searched.
    """
    wanted = set(run_of(path))
    own = entities_of(path)
    for folder in own_folders(path):
        files = folder.glob(f"*_{suffix}{ending}")
        fitting = [file for file in sorted(files) if wanted.issuperset(run_of(file))]
        if fitting:
            return max(fitting, key=lambda file: (len(run_of(file)), _likeness(file, own)))
    return None


def _likeness(file: Path, own: Entities) -> int:
    """Return the number of entities of processing in which a file agrees with a recording."""
    named = entities_of(file)
    return sum(named.get(key) == own.get(key) for key in VARIANTS)
