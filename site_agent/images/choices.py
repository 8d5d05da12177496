"""Versions of recordings that were chosen by name, links, and warnings on names and folders.

The choice depends on each participant's own files and the study only. The comparison of
participants here is for the site's staff. The site's messages do not depend on it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from consortium.algorithms.base import Serious
from consortium.base.formatting import count
from consortium.study.data_section import DataSection
from site_agent.data.bids import fitting_series, versions_of
from site_agent.data.folders import Tree, near_homes, tree_of
from site_agent.data.names import (
    PARCELLATIONS,
    VERSIONS,
    choosing_line,
    entities,
    stem_of,
    versions_wanted,
)
from site_agent.data.survey import Subject
from site_agent.data.understood import Fact

_SHOWN = ("space", *VERSIONS, "task", "ses", "run")
_NAMED = 3
_DENSITY = "den"
Labels = Mapping[str, set[str]]
"""Participants by label of an entity; '' where it is absent."""


@dataclass
class Choices:
    """Labels of each entity among the chosen files of a data set, and among the others."""

    data: DataSection
    """The study's."""
    chosen: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    """Participants by entity and label."""
    others: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    """The same for files that fit and are not used."""
    twice: set[str] = field(default_factory=set)
    """Participants with one recording as .nii and as .nii.gz."""
    people: set[str] = field(default_factory=set)

    def add(self, label: str, path: Path, versions: Iterable[Path] = ()) -> None:
        """Count a participant's chosen file, and the other versions of its recording."""
        named = entities(path)
        stem = stem_of(path)
        self.people.add(label)
        for key in _SHOWN:
            _count(self.chosen, key, named.get(key, ""), label)
        for other in versions:
            if other != path and stem_of(other) == stem and other.suffix != path.suffix:
                self.twice.add(label)
            theirs = entities(other)
            for key in VERSIONS:
                if theirs.get(key, "") != named.get(key, ""):
                    _count(self.others, key, theirs.get(key, ""), label)

    def facts(self) -> Iterator[Fact]:
        """Yield the labels of each entity with their numbers of participants."""
        for key in _SHOWN:
            labels = self.chosen.get(key, {})
            if set(labels) <= {""}:
                continue
            found = _numbers(key, labels)
            if others := self.others.get(key):
                found += f"; not used: {_numbers(key, others)}"
            yield Fact(f"label {key}-", found)

    def notes(self) -> Iterator[str]:
        """Yield a warning for each entity of which several labels fit the study."""
        for key in VERSIONS:
            labels = self.chosen.get(key, {})
            others = self.others.get(key, {})
            if not self._is_settled(key) and (len(labels) > 1 or others):
                yield Serious(self._warning(key, labels, others))
        if self.twice:
            yield Serious(
                f"{_many(self.twice)} have a recording both as .nii and as .nii.gz, and the .nii "
                "file is used. Remove one of the two."
            )

    def _is_settled(self, key: str) -> bool:
        """Return whether the study states an entity, or its mesh or atlas implies it."""
        cohort = key == "cohort" and self.data.space_cohort[1] is not None
        mesh = bool(self.data.mesh)
        atlas = bool(self.data.atlas)
        implied = (key == _DENSITY and mesh) or (key in PARCELLATIONS and atlas)
        return key in versions_wanted(self.data) or cohort or implied

    def _warning(self, key: str, labels: Labels, others: Labels) -> str:
        also = f" {_numbers(key, others)} also fit and are not used." if others else ""
        why = "Several files fit the study" if others else "The participants' files differ"
        return (
            f"{why}, and the study does not state {key}-. The files used are "
            f"{_numbers(key, labels)}.{also} Have the coordinator write "
            f"'{self._line(key, labels, others)}' in the study, or remove the other files."
        )

    def _line(self, key: str, labels: Labels, others: Labels) -> str:
        """Return the line of a study that chooses the most frequent label."""
        named = [each for each in (*_by_number(labels), *_by_number(others)) if each]
        label = named[0] if named else ""
        if key == "cohort":
            return f"data: {{space: {self.data.space}+{label}}}"
        return choosing_line(key, label)


def _count(table: dict[str, dict[str, set[str]]], key: str, label: str, person: str) -> None:
    table.setdefault(key, {}).setdefault(label, set()).add(person)


def _by_number(labels: Labels) -> list[str]:
    return sorted(labels, key=lambda label: (-len(labels[label]), label))


def _numbers(key: str, labels: Labels) -> str:
    parts = (
        f"{f'{key}-{label}' if label else f'without {key}-'} ({_many(labels[label])})"
        for label in _by_number(labels)
    )
    return ", ".join(parts)


def _many(people: set[str]) -> str:
    return count(len(people), "participant")


def home_of(subject: Subject) -> Path | None:
    """Return a participant's folder in a data set; None if their files were listed."""
    folders = subject.runs[0].bold.parents
    return next((each for each in folders if each.name == f"sub-{subject.label}"), None)


def choices_of(subjects: Iterable[Subject], data: DataSection) -> tuple[Choices, dict[str, Tree]]:
    """Compare the chosen files of participants with all that fit the study.

    Returns
    -------
    choices : Choices
    trees : dict of str to Tree
        Files and linked folders by participant.
    """
    choices = Choices(data)
    trees = dict[str, Tree]()
    for subject in subjects:
        home = home_of(subject)
        versions: dict[Path, list[Path]] = {}
        if home is not None:
            trees[subject.label] = tree_of(home, home.parent)
            fitting = fitting_series(trees[subject.label].files, data)
            versions = {each[0]: each for each in versions_of(fitting)}
        for run in subject.runs:
            choices.add(subject.label, run.bold, versions.get(run.bold, ()))
    return choices, trees


def link_facts(trees: Mapping[str, Tree]) -> Iterator[Fact]:
    """Yield the number of linked folders that are read."""
    followed = {label for label, tree in trees.items() if tree.followed}
    if followed:
        many = sum(len(tree.followed) for tree in trees.values())
        yield Fact("linked folders", f"{count(many, 'folder')} of {_many(followed)} followed")


def name_notes(roots: Iterable[Path]) -> Iterator[str]:
    """Yield a warning of the folders whose names are almost those of participants."""
    for root in sorted(set(roots)):
        near = near_homes(root)
        if near:
            some = ", ".join(path.name for path in near[:_NAMED])
            more = f", and {len(near) - _NAMED} others" if near[_NAMED:] else ""
            yield Serious(
                f"{count(len(near), 'folder')} in {root} {'is' if len(near) == 1 else 'are'} not "
                f"read, since the name must begin with sub-: {some}{more}. Rename the folders if "
                "they are participants'."
            )


def link_notes(trees: Mapping[str, Tree]) -> Iterator[str]:
    """Yield a warning of the folders and linked files that are not read."""
    paths = [each for tree in trees.values() for each in tree.passed_over]
    if paths:
        some = ", ".join(f"{path} {reason}" for path, reason in paths[:_NAMED])
        more = f", and {len(paths) - _NAMED} others" if paths[_NAMED:] else ""
        yield Serious(
            f"{count(len(paths), 'path')} of {count(len(_without(trees)), 'participant')} can't "
            f"be read, so files may be missing: {some}{more}. Copy their content into the data set."
        )


def _without(trees: Mapping[str, Tree]) -> set[str]:
    return {label for label, tree in trees.items() if tree.passed_over}
