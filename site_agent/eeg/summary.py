"""Summary of the EEG recordings that a study would read, for the site's staff to check.

Headers, annotations and tables are read, and no signals, except that EEGLAB files and trigger
channels can only be read as a whole.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from consortium.algorithms.base import Serious
from consortium.base.formatting import count
from consortium.errors import DataError
from consortium.study.data_section import DataSection
from consortium.views.eeg import EegView
from site_agent.data.folders import tree_of
from site_agent.data.survey import SkippedPerson
from site_agent.data.understood import Fact, Understanding
from site_agent.eeg.contradictions import Remark
from site_agent.eeg.damage import only_data_errors
from site_agent.eeg.files import Choice, find_choices
from site_agent.eeg.names import entities_of, recording_ending
from site_agent.eeg.reading import Described, describe_recording
from site_agent.eeg.recording import match_channels, onsets_of
from site_agent.eeg.remarks import REMARKS, remarks_on

Finding = tuple[str, str, int | None]
"""Topic, finding and number, such as of events, or None if it has none."""

_DEFAULT_UNITS = {".fif": "V", ".set": "µV"}
"""Units of formats that have one unit."""
_SHOWN = 5
_LONGEST = 120
"""Characters of a warning of MNE."""


@dataclass
class _Tally:
    """Findings and remarks of all participants."""

    findings: dict[str, dict[str, dict[str, int | None]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )
    """Numbers by topic, finding and participant."""
    remarks: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    """Examples by key and participant."""
    processing: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Participants by the processing of the files that are read."""

    def add(self, label: str, findings: Iterator[Finding], remarks: Iterator[Remark]) -> None:
        """Add one recording's."""
        for topic, finding, many in findings:
            before = self.findings[topic][finding]
            before[label] = None if many is None else (before.get(label) or 0) + many
        for key, example in remarks:
            self.remarks[key].setdefault(label, example)

    def facts(self) -> Iterator[Fact]:
        """Yield one line for every topic; the most frequent findings come first."""
        for topic, found in self.findings.items():
            ranked = sorted(found.items(), key=lambda item: -len(item[1]))
            parts = [_grouped(finding, numbers) for finding, numbers in ranked[:_SHOWN]]
            more = [f"{len(ranked) - _SHOWN} more"] if len(ranked) > _SHOWN else []
            yield Fact(topic, "; ".join([*parts, *more]))

    def notes(self) -> Iterator[str]:
        """Yield the sentences of all remarks."""
        for key, (serious, sentence) in REMARKS.items():
            examples = list(self.remarks.get(key, {}).values())
            if examples:
                text = f"EEG of {count(len(examples), 'participant')}: "
                text += sentence.format(example=examples[0])
                yield Serious(text) if serious else text


def _grouped(finding: str, numbers: Mapping[str, int | None]) -> str:
    """Join a finding, its numbers and the number of participants; those who have 0 are named."""
    without = [label for label, many in numbers.items() if many == 0]
    some = [many for many in numbers.values() if many]
    if not (some or without):
        return f"{finding} ({count(len(numbers), 'participant')})"
    parts = []
    if some:
        least = min(some)
        most = max(some)
        each = f"{least} each" if least == most else f"{least} to {most} each"
        parts = [f"{each} ({count(len(some), 'participant')})"]
    parts += [f"none ({_named(without)})"] if without else []
    return f"{finding}: {', '.join(parts)}"


def _named(labels: Sequence[str]) -> str:
    """Count participants and list the first of their labels."""
    more = [f"{len(labels) - _SHOWN} more"] if len(labels) > _SHOWN else []
    listed = ", ".join([*(f"sub-{label}" for label in labels[:_SHOWN]), *more])
    return f"{count(len(labels), 'participant')}: {listed}"


def summarize_recordings(folder: Path, view: EegView, data: DataSection) -> Understanding:
    """Summarize the EEG files of a data set as a study would read them.

    A participant with a damaged file is counted in a note.

    Parameters
    ----------
    folder : Path
        The site's BIDS data set.
    view : EegView
        The study's view of EEG.
    data : DataSection
        The study's; it chooses among a participant's recordings.

    Returns
    -------
    Understanding
        Files, rates, units, breaks, bad channels, events and MNE's warnings, each with the number
        of participants, and notes about doubtful ones.

    Raises
    ------
    ConfigurationError
        If MNE is needed and not installed.
    """
    tally = _Tally()
    for label, found in find_choices(folder, view.task, data).items():
        home = folder / f"sub-{label}"
        unread = tree_of(home, folder).passed_over[:1]
        outside = (("link", f"{each.path} {each.reason}") for each in unread)
        tally.add(label, iter(()), outside)
        if isinstance(found, SkippedPerson):
            remark = [("unreadable", found.detail)] if found.reason == "unusable" else []
            tally.add(label, iter(()), iter(remark))
            continue
        for choice in found:
            try:
                findings, remarks = _examined(choice.chosen, view)
            except DataError as error:
                findings = []
                remarks = [("unreadable", str(error))]
            tally.processing[_processing(choice.chosen)].add(label)
            tally.add(label, _files(choice), _choices(choice))
            tally.add(label, iter(findings), iter(remarks))
    notes = (*_mixture(tally), *tally.notes(), *_not_inherited(folder, view))
    return Understanding(tuple(tally.facts()), notes)


def _examined(path: Path, view: EegView) -> tuple[list[Finding], list[Remark]]:
    """Return the facts of one recording and the doubts about it."""
    with only_data_errors(path):
        described = describe_recording(path, view.channels, listen=True)
        return list(_findings(described, view)), list(remarks_on(described, view))


def _files(choice: Choice) -> Iterator[Finding]:
    yield "EEG files", f"{recording_ending(choice.chosen)} {_processing(choice.chosen)}", 1


def _processing(path: Path) -> str:
    description = entities_of(path).get("desc")
    return f"desc-{description}" if description else "without desc"


def _choices(choice: Choice) -> Iterator[Remark]:
    if choice.others:
        names = ", ".join(path.name for path in choice.others[:3])
        yield "versions", f"{choice.chosen.name} instead of {names}"


def _mixture(tally: _Tally) -> Iterator[str]:
    """Yield a warning if the recordings that are read differ in their processing."""
    versions = tally.processing.items()
    if len(versions) > 1:
        parts = (f"{key} ({count(len(labels), 'participant')})" for key, labels in versions)
        yield Serious(
            f"EEG files of different processing are read: {', '.join(sorted(parts))}. Provide the "
            "same version for every participant."
        )


def _not_inherited(folder: Path, view: EegView) -> Iterator[str]:
    """Yield a warning about tables of the whole data set, which no participant's vector uses."""
    tables = (path for kind in ("events", "channels") for path in folder.glob(f"*_{kind}.tsv"))
    for path in sorted(tables):
        if entities_of(path).get("task", view.task) == view.task:
            yield Serious(
                f"{path} applies to all participants and is not read. Copy it into the folder of "
                "each participant."
            )


def _findings(described: Described, view: EegView) -> Iterator[Finding]:
    """Yield the facts of one recording."""
    opened = described.opened
    ending = str(recording_ending(opened.path))
    yield "EEG sampling rate", f"{opened.rate:g} Hz", None
    found = match_channels(view.channels, opened.names, opened.path).values()
    default = _DEFAULT_UNITS.get(ending, "unknown")
    units = {(opened.units or {}).get(name, default) for name in found}
    if units:
        yield "EEG unit", f"{', '.join(sorted(units))} in {ending} files", None
    markers = tuple(opened.clock.in_file(described.markers()))
    sources = [each.source for each in described.breaks(markers)]
    for source in sorted(set(sources)):
        yield "EEG breaks", f"{source} in {ending} files", sources.count(source)
    for where, bad in (("the file", opened.bad), ("channels.tsv", described.listed_bad)):
        for name in sorted(bad & {*found}):
            yield "bad EEG channels", f"{name} in {where}", None
    source = "the recording" if described.events is None else "events.tsv"
    for event in view.events:
        yield "EEG events", f"{event} in {source}", len(onsets_of(markers, (event,)))
    spans = sum(each.is_bad and not each.is_break for each in markers)
    if spans:
        yield "bad spans of EEG", "spans", spans
    for said in opened.said:
        yield "MNE's warnings", _shortened(said), None


def _shortened(said: str) -> str:
    """Return the first sentence of a warning, without the paths and numbers that differ."""
    text = re.sub(r"\s+", " ", re.sub(r"\d+", "…", re.sub(r"\(?/\S+", "…", said)))
    return text.partition(". ")[0].rstrip(".")[:_LONGEST]
