"""Summary of a site's images as a study reads them, from names and headers.

`site-agent check` prints it. A file that can't be read is left out of the summary, since loading
names it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import nibabel as nib
import numpy as np
from nibabel.affines import voxel_sizes
from numpy.typing import NDArray

from consortium.algorithms.base import Serious
from consortium.base.formatting import count
from consortium.errors import DataError
from consortium.space.atlas import Target
from consortium.space.nifti import has_orientation
from consortium.space.study_space import ViewSpace
from consortium.study.data_section import DataSection
from consortium.views.fmri import FmriView
from consortium.views.surface import SurfaceView
from site_agent.data.folders import Tree, homes_in, tree_of
from site_agent.data.names import ON_MESHES
from site_agent.data.survey import RecordingRun, SkippedPerson, Subject
from site_agent.data.tsv import column_names
from site_agent.data.understood import Fact, Understanding
from site_agent.images.choices import (
    Choices,
    choices_of,
    home_of,
    link_facts,
    link_notes,
    name_notes,
)
from site_agent.images.measures import contrast_of
from site_agent.images.nifti import open_nifti, read_whole
from site_agent.images.plausibility import Scales, copy_notes, form_notes, forms_disagree
from site_agent.images.preprocess import DEGREES, frequencies_outside
from site_agent.images.recordings import volumes_of
from site_agent.images.repetition import Timing, number_without_unit, read_metadata, timing_of
from site_agent.images.surfaces import map_values, maps_of

_NAMED = 3


@dataclass
class _Tally:
    """Participants by value, in the order in which values are met."""

    people: dict[str, set[str]] = field(default_factory=dict)

    def add(self, value: str, label: str) -> None:
        """Count a participant for a value."""
        self.people.setdefault(value, set()).add(label)

    def fact(self, topic: str) -> Iterator[Fact]:
        """Yield the values with their numbers of participants, the most frequent first."""
        values = sorted(self.people, key=lambda value: (-len(self.people[value]), value))
        if values:
            parts = (f"{value} ({_many(self.people[value])})" for value in values)
            yield Fact(topic, ", ".join(parts))


@dataclass
class _Seen:
    """Facts about recordings, collected one by one."""

    data: DataSection
    target: Target | None
    uses_time: bool
    times: _Tally = field(default_factory=_Tally)
    voxels: _Tally = field(default_factory=_Tally)
    faults: _Tally = field(default_factory=_Tally)
    volumes: dict[str, int] = field(default_factory=dict)
    left: list[tuple[int, int, str]] = field(default_factory=list)
    """Degrees of freedom left, volumes and label of each run."""

    def add(self, label: str, run: RecordingRun) -> None:
        """Read the headers of a recording."""
        with suppress(DataError):
            self._add_image(label, run.bold)
        timing = self._timing(label, run)
        with suppress(DataError, IndexError):
            volumes = self._volumes(run)
            self.volumes[label] = self.volumes.get(label, 0) + volumes
            used = _regressors(run, self.data, volumes, timing)
            self.left.append((volumes - used, volumes, label))

    def _add_image(self, label: str, path: Path) -> None:
        if path.name.endswith(ON_MESHES):
            return
        image = open_nifti(path)
        self.voxels.add(voxels_in_words(image), label)
        _add_orientation(label, image, self.faults)

    def _volumes(self, run: RecordingRun) -> int:
        if self.target is not None:
            return volumes_of(run, self.target)
        return int(open_nifti(run.bold).shape[3])

    def _timing(self, label: str, run: RecordingRun) -> Timing | None:
        try:
            timing = timing_of(run)
        except DataError:
            if not all(_is_readable(path) for path in run.metadata):
                self.faults.add("unreadable", label)
            self.times.add(_unknown(run.bold), label)
            return None
        self.times.add(f"{timing.seconds:.4g} s from the {timing.origin}", label)
        if timing.disagrees:
            self.faults.add("disagreement", label)
        if timing.origin == "header" and timing.seconds == 1:
            self.faults.add("default", label)
        return timing


def _unknown(path: Path) -> str:
    """Return the finding of a recording whose repetition time is unknown."""
    with suppress(DataError):
        number = number_without_unit(path)
        if number is not None:
            return f"unknown, since the header states {number:.4g} without a unit of time"
    return "unknown"


def _is_readable(path: Path) -> bool:
    try:
        read_metadata(path)
    except DataError:
        return False
    return True


def summarize_series(
    subjects: Sequence[Subject],
    data: DataSection,
    target: Target | None = None,
    *,
    uses_time: bool | None = None,
) -> Understanding:
    """Summarize the recordings of participants, from names and headers.

    Parameters
    ----------
    subjects : sequence of Subject
        The participants who take part.
    data : DataSection
        The study's.
    target : Target, optional
        The study's voxels or vertices, which recordings on a mesh need.
    uses_time : bool, optional
        Whether the study uses repetition times. By default it does if it filters frequencies. A
        view with ``measure: alff`` also uses them.

    Returns
    -------
    Understanding
    """
    filters = data.high_pass is not None or data.low_pass is not None
    seen = _Seen(data, target, filters if uses_time is None else uses_time)
    for subject in subjects:
        for run in subject.runs:
            seen.add(subject.label, run)
    choices, trees = choices_of(subjects, data)
    facts = (*_series_facts(seen, subjects), *choices.facts(), *link_facts(trees))
    homes = filter(None, map(home_of, subjects))
    folders = *link_notes(trees), *name_notes(home.parent for home in homes)
    notes = (*choices.notes(), *folders, *_time_notes(seen), *_unoriented(seen.faults))
    return Understanding(facts, notes)


def _series_facts(seen: _Seen, subjects: Sequence[Subject]) -> Iterator[Fact]:
    yield from seen.times.fact("repetition time")
    yield from seen.voxels.fact("voxels and orientation")
    if seen.volumes:
        most = sorted(seen.volumes.values())
        spread = f", {most[0]} to {most[-1]}" if most[0] < most[-1] else ""
        yield Fact("volumes", f"median {median(most):g}{spread}, of {_many(seen.volumes)}")
    if seen.left:
        left, volumes, label = min(seen.left)
        yield Fact("least degrees of freedom left", f"{left} of {volumes} volumes (sub-{label})")
    runs = _Tally()
    for subject in subjects:
        runs.add(count(len(subject.runs), "recording"), subject.label)
    yield from runs.fact("recordings of a participant")


def _time_notes(seen: _Seen) -> Iterator[str]:
    kind: Callable[[str], str] = Serious if seen.uses_time else str
    faults = seen.faults.people
    if people := faults.get("disagreement"):
        yield kind(
            f"{_who(people)}: the repetition times in the nearest JSON file and in the header "
            "differ by more than 1 %. The JSON file is used. Correct the wrong one."
        )
    if (people := faults.get("default")) and seen.uses_time:
        yield Serious(
            f"{_who(people)}: the repetition time is exactly 1 s in the header and no JSON file "
            "states it. Converters write 1 where they have no value. Write RepetitionTime into a "
            "JSON file next to each image."
        )
    if people := faults.get("unreadable"):
        yield kind(
            f"{_who(people)}: a JSON file that applies to the images can't be read. Correct it, or "
            "remove it."
        )


def _unoriented(faults: _Tally) -> Iterator[str]:
    if people := faults.people.get("orientation"):
        yield Serious(
            f"{_who(people)}: sform_code and qform_code are both 0, so the images do not state "
            "where left and right are. They are used only if site.yaml has 'accept_unoriented: "
            "true', with an orientation that nibabel guesses. Compare them with the original scans."
        )
    yield from form_notes(faults.people.get("sides", set()))


def summarize_images(source: Path, view: ViewSpace[FmriView], data: DataSection) -> Understanding:
    """Summarize the single images of a view, from names, headers and values.

    Parameters
    ----------
    source : Path
        The data set.
    view : ViewSpace
        A view with ``measure: image``.
    data : DataSection
        The study's.
    """
    ending = str(view.view.image)
    voxels = _Tally()
    faults = _Tally()
    scales = Scales(view.name)

    def files(home: Path) -> list[Path]:
        found = contrast_of(home, source, data, ending)
        if isinstance(found, SkippedPerson):
            return []
        label = home.name.removeprefix("sub-")
        with suppress(DataError):
            _add_volume(label, found, voxels, faults)
            scales.add(label, _values(found))
        return [found]

    found = _summarize_files(source, view.name, data, files)
    facts = *found.facts, *voxels.fact("voxels and orientation"), *scales.facts()
    return Understanding(facts, (*found.notes, *_unoriented(faults), *scales.notes()))


def summarize_maps(source: Path, view: ViewSpace[SurfaceView], data: DataSection) -> Understanding:
    """Summarize the maps of a view of surfaces, from their names and values.

    Parameters
    ----------
    source : Path
        The data set.
    view : ViewSpace
        A view of surfaces.
    data : DataSection
        The study's.
    """
    scales = Scales(view.name)

    def files(home: Path) -> list[Path]:
        found = maps_of(home, source, data, view)
        if isinstance(found, SkippedPerson):
            return []
        with suppress(DataError):
            scales.add(home.name.removeprefix("sub-"), map_values(home, found, view))
        return found

    found = _summarize_files(source, view.name, data, files)
    return Understanding((*found.facts, *scales.facts()), (*found.notes, *scales.notes()))


def _summarize_files(
    source: Path, view: str, data: DataSection, files: Callable[[Path], list[Path]]
) -> Understanding:
    """Summarize the choice among the files of every participant's folder."""
    choices = Choices(data)
    trees = dict[str, Tree]()
    kinds = _Tally()
    chosen: dict[str, list[Path]] = {}
    for home in homes_in(source):
        label = home.name.removeprefix("sub-")
        found = files(home)
        if found:
            chosen[label] = found
            trees[label] = tree_of(home, source)
        for path in found:
            choices.add(label, path)
            kinds.add("".join(path.suffixes[-2:]), label)
    facts = *kinds.fact(f"files of view '{view}'"), *choices.facts(), *link_facts(trees)
    names = *_without_space(choices), *_of_tasks(choices), *name_notes([source])
    notes = *choices.notes(), *names, *link_notes(trees), *copy_notes(view, chosen)
    return Understanding(facts, notes)


def _of_tasks(choices: Choices) -> Iterator[str]:
    """Yield a warning if the files are of several tasks, which `data.task` does not choose."""
    tasks = choices.chosen.get("task", {})
    if len(tasks) > 1:
        parts = (
            f"{f'task-{task}' if task else 'without task-'} ({_many(tasks[task])})"
            for task in sorted(tasks)
        )
        yield Serious(
            f"The participants' files are of different tasks: {', '.join(parts)}. data.task does "
            "not choose among single images. Remove the files of other tasks, or have the "
            "coordinator write more of the end of the name in the view."
        )


def _values(path: Path) -> NDArray[np.float64]:
    """Return the values of one volume; none of a series, which loading refuses."""
    image = open_nifti(path)
    if len(image.shape) > 3 and max(image.shape[3:]) > 1:
        return np.zeros(0)
    return read_whole(path, image)


def _add_volume(label: str, path: Path, voxels: _Tally, faults: _Tally) -> None:
    image = open_nifti(path)
    voxels.add(voxels_in_words(image), label)
    _add_orientation(label, image, faults)


def _add_orientation(label: str, image: nib.Nifti1Image, faults: _Tally) -> None:
    if not has_orientation(image):
        faults.add("orientation", label)
    forms = (form(coded=True) for form in (image.header.get_sform, image.header.get_qform))
    if forms_disagree(*(affine if code else None for affine, code in forms)):
        faults.add("sides", label)


def _without_space(choices: Choices) -> Iterator[str]:
    people = choices.chosen.get("space", {}).get("", set())
    if people and not choices.data.mesh and len(choices.chosen["space"]) > 1:
        yield (
            f"{_who(people)}: the file's name states no space, where other participants' files do. "
            f"The study's space {choices.data.space} is assumed. Check that it is right."
        )


def voxels_in_words(image: nib.Nifti1Image) -> str:
    """Return the voxel size and the orientation of an image, such as '2 × 2 × 2 mm RAS'."""
    sizes = " × ".join(f"{round(float(size), 2):g}" for size in voxel_sizes(image.affine))
    try:
        axes = "".join(nib.aff2axcodes(image.affine))
    except (TypeError, ValueError):  # an axis without a direction
        axes = "of unknown orientation"
    return f"{sizes} mm {axes}" + ("" if has_orientation(image) else " by a guess")


def _regressors(run: RecordingRun, data: DataSection, volumes: int, timing: Timing | None) -> int:
    """Return the number of trends, cosines and confounds; their rank may be smaller."""
    used = DEGREES[data.detrend] + 1
    if timing is not None and (data.high_pass is not None or data.low_pass is not None):
        ends = data.high_pass, data.low_pass
        used += frequencies_outside(volumes, timing.seconds, *ends).shape[1]
    if data.confounds and run.confounds is not None:
        used += len(_columns(run.confounds, data.confounds))
    return used


def _columns(path: Path, patterns: Sequence[str]) -> set[str]:
    """Return the columns of a confounds table that a study names, from its header."""
    try:
        header = column_names(path)
    except DataError:
        return set()
    begin = tuple(each.removesuffix("*") for each in patterns if each.endswith("*"))
    return {name for name in header if name in patterns or (begin and name.startswith(begin))}


def _many(people: Iterable[str]) -> str:
    return count(len(set(people)), "participant")


def _who(people: set[str]) -> str:
    some = ", ".join(f"sub-{label}" for label in sorted(people)[:_NAMED])
    return f"{_many(people)} ({some}{', …' if len(people) > _NAMED else ''})"
