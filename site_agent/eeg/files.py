"""Search of EEG recordings in a BIDS data set."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from consortium.study.data_section import DataSection
from site_agent.data.bids import first_recordings, has_entities, homes_in, misplaced_file
from site_agent.data.folders import foreign_home, tree_of
from site_agent.data.survey import NobodyError, Reason, SkippedPerson
from site_agent.eeg.names import ENDINGS, Run, entities_of, recording_ending, run_of

_OTHERS = (".cnt", ".eeg", ".gdf", ".mff", ".edf.gz", ".fif.gz", *(e.upper() for e in ENDINGS))
"""Endings of EEG files that are not read."""


@dataclass(frozen=True)
class Choice:
    """Versions of one recording. One of them is read."""

    chosen: Path
    others: tuple[Path, ...] = ()


def find_recordings(
    folder: Path, task: str, data: DataSection
) -> dict[str, tuple[Path, ...] | SkippedPerson]:
    """Find every participant's recordings of a task, from names of files only.

    Raises NobodyError if no participant has one.

    Parameters
    ----------
    folder : Path
        A BIDS data set, raw or derivatives, with files ``sub-*/**/*_task-TASK_*eeg.*``.
    data : DataSection
        The study's; its session, run, acquisition, direction and runs choose files.

    Returns
    -------
    dict of str to tuple of Path or Skipped
        Recordings by label, or the reason why a participant has none or why they can't be used.
    """
    found = find_choices(folder, task, data)
    people = {
        label: each if isinstance(each, SkippedPerson) else tuple(x.chosen for x in each)
        for label, each in found.items()
    }
    if not any(isinstance(each, tuple) or each.reason == "unusable" for each in people.values()):
        hints = (each.hint for each in people.values() if isinstance(each, SkippedPerson))
        hint = next(filter(None, hints), "")
        raise NobodyError(
            f"{folder} has no sub-*_task-{task}_eeg file. Check path and task. {hint}".rstrip()
        )
    return people


def find_choices(
    folder: Path, task: str, data: DataSection
) -> dict[str, tuple[Choice, ...] | SkippedPerson]:
    """Find every participant's recordings as `find_recordings` does, with their other versions."""
    people: dict[str, tuple[Choice, ...] | SkippedPerson] = {}
    for home in homes_in(folder):
        label = home.name.removeprefix("sub-")
        foreign = foreign_home(home, folder)
        if foreign is not None:
            people[label] = SkippedPerson(label, "unusable", foreign)
        else:
            people[label] = _choices_in(home, folder, task, data)
    return people


def _choices_in(
    home: Path, folder: Path, task: str, data: DataSection
) -> tuple[Choice, ...] | SkippedPerson:
    label = home.name.removeprefix("sub-")
    tree = tree_of(home, folder)
    files = tree.files
    found = _fitting(files, task, data)
    problem = misplaced_file(home, found) or _ambiguous(found)
    if problem is not None:
        return SkippedPerson(label, "unusable", problem)
    if found:
        choices = {each.chosen: each for each in _versions(found)}
        return tuple(choices[path] for path in sorted(first_recordings(choices, data)))
    reason: Reason = "no-view"
    if _fitting(files, task, data.of_any_recording):
        reason = "not-chosen"
    hints = _near_miss(files, task) if reason == "no-view" else []
    hints += [f"{each.path} {each.reason}." for each in tree.passed_over[:1]]
    detail = " ".join([f"{folder}: sub-{label} has no EEG of task-{task}.", *hints])
    return SkippedPerson(label, reason, detail, " ".join(hints))


def _versions(paths: Iterable[Path]) -> list[Choice]:
    """Return one choice for each recording."""
    versions: dict[Run, list[Path]] = defaultdict(list)
    for path in paths:
        versions[run_of(path)].append(path)
    ranked = (sorted(each, key=_preference) for each in versions.values())
    return [Choice(first, tuple(others)) for first, *others in ranked]


def _ambiguous(paths: Sequence[Path]) -> str | None:
    """Return a sentence about two files whose run is one number in two spellings, if any."""
    spelled: dict[tuple[Run, str], Path] = {}
    for path in paths:
        for key in ("run", "split"):
            number = entities_of(path).get(key, "")
            other = spelled.setdefault((run_of(path), key), path)
            before = entities_of(other).get(key, "")
            if number != before and number.isdecimal() and before.isdecimal():
                return (
                    f"{path}: the {key} must be another number than that of {other.name}, got "
                    f"{key}-{number} and {key}-{before}. Remove or rename one of the files."
                )
    return None


def _fitting(files: Iterable[Path], task: str, data: DataSection) -> list[Path]:
    """List the recordings of a task that the study uses, in all their versions."""
    found = []
    for path in files:
        if recording_ending(path) is None:
            continue
        named = entities_of(path)
        fits = named["suffix"] == "eeg" and named.get("task") == task and has_entities(named, data)
        # Later parts of a split FIF file are read with the first.
        if fits and named.get("split", "01").lstrip("0") in ("", "1"):
            found.append(path)
    return found


def _near_miss(files: Sequence[Path], task: str) -> list[str]:
    """Return a sentence about the file that most resembles a recording of the task, if any."""
    eeg = [path for path in files if path.name.endswith((*ENDINGS, *_OTHERS))]
    eeg = [path for path in eeg if path.parent.name == "eeg" or _loosely(path)["suffix"] == "eeg"]
    tasks = {path: _loosely(path).get("task", "") for path in eeg}
    for path, other in tasks.items():
        if other != task and other.casefold() == task.casefold():
            return [f"{path.name} is of task-{other}. Rename it, or state that task in the study."]
    for path, other in tasks.items():
        if other == task:
            return [_unread(path)]
    named = sorted({*tasks.values()} - {""})
    if named:
        return [f"There are recordings of task-{', task-'.join(named[:5])}."]
    return [f"{eeg[0].name} is not named by its task. Rename it as BIDS requires."] if eeg else []


def _loosely(path: Path) -> dict[str, str]:
    """Return the entities in a name that may break the rules of BIDS."""
    parts = path.name.partition(".")[0].split("_")
    pairs = dict(part.split("-", 1) for part in parts if "-" in part)
    return {**{key.casefold(): value for key, value in pairs.items()}, "suffix": parts[-1].lower()}


def _unread(path: Path) -> str:
    """Return why a file of the study's task is not read."""
    stem, _, ending = path.name.partition(".")
    small = f".{ending.lower()}"
    if small in ENDINGS and recording_ending(path) is None:
        return f"{path.name} must end with {small}, in small letters. Rename it."
    if not stem.endswith("_eeg"):
        return f"{path.name} must end with _eeg before its format. Rename it."
    if _loosely(path).get("split", "01").lstrip("0") not in ("", "1"):
        return f"{path.name} is a later part of a recording whose first part is missing. Add it."
    if small == ".eeg":
        return f"{path.name} has no header file (.vhdr) in its folder. Add it."
    return f"{path.name} is in a format that is not read. Export it as {', '.join(ENDINGS)}."


def _preference(path: Path) -> tuple[bool, bool, int, str]:
    description = entities_of(path).get("desc")
    ending = str(recording_ending(path))
    return description != "preproc", description is not None, ENDINGS.index(ending), path.name
