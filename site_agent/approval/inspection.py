"""Inspection of a study at a site before its approval: its data, requests and privacy loss."""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from consortium.algorithms.base import Serious
from consortium.base.formatting import count, number
from consortium.errors import ConsortiumError, DataError
from consortium.opened_study import OpenedStudy
from consortium.privacy.gdp import ADDS_UP, TWO_READERS, epsilon_of
from consortium.privacy.mechanism import HEADROOM
from consortium.study.outlook import HEADS, Outlook
from consortium.study.plan import Plan, make_plan, nominal_shape
from consortium.study.slots import check_slots
from consortium.study.spec import Study, open_vectors
from site_agent.approval.folder import SiteFolder, StudyCase
from site_agent.approval.understanding import changes, facts_before, show_facts
from site_agent.config import SiteConfig
from site_agent.data.doubts import Misnamed, doubts_about
from site_agent.data.people import everybody_in, read_left_out, site_tables
from site_agent.data.survey import SkippedPerson
from site_agent.data.table_summary import summarize_tables, table_problems, tables_read
from site_agent.data.understood import Understanding
from site_agent.images.recordings import quality_remarks, recording_remarks
from site_agent.images.series import SiteDataset
from site_agent.loading.feature_vectors import FeatureDataset
from site_agent.loading.summaries import scanned, understand
from site_agent.policy.policy import SpentLoss, StudyRequest, refusals

_LEAST = 0.5
"""Fraction of a nominal number below which a warning is given."""
_NAMED = 5
"""Maximum number of participants whose labels one line names."""


@dataclass(frozen=True)
class Inspection:
    """Consequences of a study for a site."""

    case: StudyCase
    """The study files, to be approved."""
    lengths: tuple[int, ...]
    """Volumes of every participant who qualifies."""
    skipped: tuple[SkippedPerson, ...]
    """Participants who don't qualify, with the reason."""
    plan: Plan | None
    """The study's plan, or None if there is none."""
    spent: SpentLoss
    """Loss in the ledger, as μ."""
    outsiders: float
    """Loss in the ledger against outsiders, as μ."""
    problems: tuple[str, ...]
    """Reasons for which the site would refuse; none if it would not."""
    understood: Understanding
    """Readers' interpretation of the site's files."""
    notes: tuple[str, ...] = ()
    """Statements of the study about the site that its data contradict, and images that look odd.
    The site answers anyway."""

    @property
    def study(self) -> Study:
        """The study's request."""
        return self.case.study

    @property
    def price(self) -> float:
        """μ of one run."""
        return self.plan.site_loss(self._place) if self.plan else 0.0

    def show(self, out: Console) -> None:
        """Print it for the site's staff."""
        out.print(f"{self.study.study}: {self.study.title}", soft_wrap=True)
        out.print(self.headline, soft_wrap=True)
        for line in self.left_out:
            out.print(line, soft_wrap=True)
        show_facts(self.understood.facts, self._before, out)
        for note in self.warnings:
            out.print(f"WARNING: {note}", soft_wrap=True)
        if self.plan is not None:
            table = Table(*HEADS)
            for row in Outlook(self.plan).rows():
                table.add_row(*row)
            out.print(table)
        for sentence in self.losses:
            out.print(sentence, soft_wrap=True)
        for note in self.remarks:
            out.print(f"NOTE: {note}", soft_wrap=True)
        for problem in self.problems:
            out.print(f"REFUSED: {problem}", soft_wrap=True)

    @property
    def headline(self) -> str:
        """Number of participants who qualify, in a sentence."""
        units = self.study.analysis.grouped
        who = "participants" if units is None else units.named
        return f"{len(self.lengths)} {who} qualify{self._of_them()}."

    @property
    def left_out(self) -> tuple[str, ...]:
        """Numbers of participants who don't qualify, by reason, and then each one's reason."""
        reasons = sorted(Counter(each.reason for each in self.skipped).items())
        counts = [f"{many} left out: {reason}" for reason, many in reasons]
        return (*counts, *(f"  {line}" for line in _who_lacks_what(self.skipped)))

    @property
    def changed(self) -> tuple[str, ...]:
        """Sentences about findings in the site's files that differ from the last approval's."""
        return tuple(changes(self.understood.facts, self._before))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Notes that require an explicit approval."""
        return tuple(note for note in self.notes if isinstance(note, Serious))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes that require nothing."""
        return tuple(note for note in self.notes if not isinstance(note, Serious))

    @property
    def refusal(self) -> str:
        """The first problem to solve: own names before problems of the study."""
        own = [
            f"{note} If this is not the cause: "
            for note in self.notes
            if isinstance(note, Misnamed)
        ]
        return "".join([*own[:1], *self.problems[:1]])

    def as_json(self) -> dict[str, object]:
        """Return what ``check --json`` prints."""
        privacy = self.study.privacy
        plan = self.plan
        return {
            "study": self.study.study,
            "persons": len(self.lengths),
            "skipped": [asdict(each) for each in self.skipped],
            "rounds": plan and plan.rounds,
            "epsilon": plan and plan.epsilon,
            "epsilon_outsiders": plan and plan.outsider_epsilon,
            "open_vectors": self.study.verification.open,
            "delta": privacy.delta,
            "unit": privacy.unit,
            "understood": dict(self.understood.facts),
            "changed": list(self.changed),
            "problems": list(self.problems),
            "warnings": list(self.warnings),
        }

    @property
    def _place(self) -> int:
        """Index of the site in the study."""
        return self.study.sites.index(self.case.site.config.name)

    @property
    def _before(self) -> Mapping[str, str]:
        return facts_before(self.case.site.path, self.study.study)

    def _of_them(self) -> str:
        """Return the views or the number of volumes of the participants who qualify."""
        views = ", ".join(view.name for view in self.study.features)
        return f" with all views ({views})" if views else f", with {sum(self.lengths)} volumes"

    @property
    def losses(self) -> tuple[str, ...]:
        """Sentences about the loss of one run and the ledger's total; none without a plan."""
        plan = self.plan
        if plan is None:
            return ()
        privacy = self.study.privacy
        policy = self.case.site.policy
        total = policy.allowance(privacy.unit).total
        delta = policy.delta
        before, after = _before_after(self.spent.total, self.price, delta)
        outside = _before_after(self.outsiders, plan.site_outsider_loss(self._place), delta)
        colluders = count(privacy.colluding_sites, "colluding site")
        run = (
            f"One run costs ε ≤ {number(plan.epsilon)} against the centre and {colluders}, and "
            f"ε ≤ {number(plan.outsider_epsilon)} against outsiders (δ = {privacy.delta:g}, "
            f"unit {privacy.unit})."
        )
        ledger = (
            f"At δ = {delta:g} the ledger's total against the coalition is ε = {before} before and "
            f"ε = {after} after one run, and {total:g} is allowed. Against outsiders it is ε = "
            f"{outside[0]} before and ε = {outside[1]} after. {ADDS_UP} {TWO_READERS}"
        )
        return tuple(filter(None, (run, open_vectors(self.study), ledger)))


def _who_lacks_what(skipped: Sequence[SkippedPerson]) -> Iterator[str]:
    """Yield a line for each excluded participant, or one for all with the same reason."""
    alike: dict[str, list[SkippedPerson]] = {}
    for each in skipped:
        alike.setdefault(each.detail.replace(f"sub-{each.label}", "sub-*"), []).append(each)
    for detail, group in alike.items():
        first = group[0]
        if len(group) == 1:
            yield f"{first.label}: {first.detail}"
            continue
        some = ", ".join(each.label for each in group[:_NAMED])
        more = ", …" if len(group) > _NAMED else ""
        yield f"{len(group)} participants ({some}{more}): {detail}"


Watch = Callable[[Iterable[object], int], Iterable[object]]
"""Function that passes on the given number of loaded participants, and shows the progress."""


def _on_terminal(loaded: Iterable[object], many: int) -> Iterable[object]:
    return track(loaded, "Loading", total=many, transient=True)


def inspect(folder: Path, study: Path, roster: Path, watch: Watch = _on_terminal) -> Inspection:
    """Load a study's data, and compare the study with the site's rules and ledger.

    Raises ConsortiumError if the study is not signed, not of this site's consortium, or a file
    can't be used.
    """
    site = SiteFolder.open(folder)
    case = StudyCase(site, site.papers(study, roster))
    data = case.data
    problems = _load(data, watch)
    survey = data.survey
    plan = planned(case.opened, problems)
    people = _people(data)
    spent = case.spent(people)
    problems += _refused(case, plan, spent)
    understood = _understood(case)
    notes = _notes(case, people, None if problems else plan)
    return Inspection(
        case=case,
        lengths=survey.lengths,
        skipped=survey.skipped,
        plan=plan,
        spent=spent,
        outsiders=site.ledger.outsider_total(case.study.privacy.unit, people),
        problems=tuple(problems),
        understood=understood,
        notes=(*understood.notes, *notes),
    )


def _understood(case: StudyCase) -> Understanding:
    """Return the summary of the site's files; only that of tables if no data can be read."""
    try:
        return understand(case.data, case.study)
    except DataError:  # loading reports it
        return summarize_tables(case.site.config.dataset, case.study, site_tables(case.site.config))


def _refused(case: StudyCase, plan: Plan | None, spent: SpentLoss) -> Iterator[str]:
    """Yield reasons for which the site would refuse a study whose data can be loaded."""
    site = case.site
    study = case.study
    tables = site_tables(site.config)
    yield from table_problems(tables_read(site.config.dataset, study, tables, site.config.left_out))
    request = StudyRequest(site.config.name, spent)
    yield from map(str, refusals(site.policy, study, plan, request))
    if not case.data.survey.lengths:
        yield case.data.nobody


def _notes(case: StudyCase, people: Sequence[str], plan: Plan | None) -> Iterator[str]:
    """Yield notes for the site's staff, with those on the plan that follow from the data."""
    site = case.site
    data = case.data
    config = site.config
    yield from _unknown(config, data)
    yield from _unknown_to_ledger(site, people)
    yield from _too_large(config, data)
    yield from _unusable(data.survey.skipped)
    yield from _doubts(config, case.study)
    yield from _beside_nominal(case, data)
    if plan is None:
        return
    yield from data.notes if isinstance(data, FeatureDataset) else ()
    yield from Outlook(plan).remarks
    yield from plan.analysis.compare(plan.study.sites.index(config.name), data)
    subjects = scanned(data)
    yield from quality_remarks(subjects, plan.study.data)
    yield from recording_remarks(subjects)


def planned(opened: OpenedStudy, problems: list[str]) -> Plan | None:
    """Return an inspected study's plan, which uses nominal numbers, or why there is none."""
    try:
        study = opened.study
        plan = make_plan(study, nominal_shape(study, opened.space.extent), agreed=True)
        check_slots(study, plan.shape, [stage.release for stage in plan.stages])
        return plan
    except ConsortiumError as error:
        problems.append(f"{error} Ask the coordinator to correct the study.")
        return None


def _unknown(config: SiteConfig, data: SiteDataset | FeatureDataset) -> Iterator[str]:
    """Yield a warning about rows of the hospital's own table that match no participant."""
    if config.left_out is None:
        return
    tables = site_tables(config)
    known = everybody_in(config.dataset, tables)
    for label in (*_people(data), *(each.label for each in data.survey.skipped)):
        known.spelled(label)
    listed = read_left_out(config.left_out, tables)
    strange = sorted(label for label in listed if not known.knows(label))
    if strange:
        who = ", ".join(map(repr, strange[:_NAMED])) + (", …" if strange[_NAMED:] else "")
        yield Serious(
            f"{config.left_out}: every row must match a participant of the data set, and "
            f"{count(len(strange), 'row')} ({who}) {'matches' if len(strange) == 1 else 'match'} "
            "none. Correct the labels, or delete the rows. Otherwise a participant may take part "
            "who should not."
        )


def _unknown_to_ledger(site: SiteFolder, people: Sequence[str]) -> Iterator[str]:
    """Yield a warning if the ledger has charges, and none of a study's participants has any."""
    if people and not site.ledger.knows_any(people):
        yield Serious(
            f"{site.config.ledger} has charges, and none of this study's "
            f"{count(len(people), 'participant')} has any. If they took part in an earlier study "
            "under other labels, give them these labels again. Otherwise their earlier privacy "
            "losses do not count."
        )


def _unusable(skipped: Sequence[SkippedPerson]) -> Iterator[str]:
    """Yield participants whom the site's staff can include by fixing their files."""
    many = sum(each.reason == "unusable" for each in skipped)
    if many:
        who = f"{count(many, 'participant')} {'is' if many == 1 else 'are'} left out as unusable"
        yield f"{who}. Fix the files named above, or continue without them."


def _doubts(config: SiteConfig, study: Study) -> Iterator[str]:
    """Yield cells that the study probably misreads; none if a table can't be read."""
    try:
        yield from doubts_about(config.dataset, study, site_tables(config))
    except DataError:  # which is reported with the data
        return


def _beside_nominal(case: StudyCase, data: SiteDataset | FeatureDataset) -> Iterator[str]:
    """Compare the site's own numbers with the nominal ones, only for the site's own staff."""
    study = case.study
    survey = data.survey
    name = case.site.config.name
    if study.participants is None or not survey.lengths:
        return
    units = study.analysis.grouped
    who = "participants" if units is None else units.named
    found = [(who, len(survey.lengths), study.participants[name])]
    if study.volumes is not None:
        found.append(("volumes", round(statistics.median(survey.lengths)), study.volumes))
    for what, here, nominal in found:
        if not _LEAST * nominal <= here <= HEADROOM * nominal:
            yield Serious(_far_from_nominal(what, here, nominal))


def _far_from_nominal(what: str, here: int, nominal: int) -> str:
    consequence = "The noise is planned for the nominal number, so the results are less accurate."
    if here > HEADROOM * nominal and what != "volumes":
        consequence = (
            f"{HEADROOM * nominal} of them take part, chosen at random, and all are charged."
        )
    per = " per participant" if what == "volumes" else ""
    return (
        f"{here} {what}{per} here, and the study states a nominal number of {nominal}. "
        f"{consequence} Look whether the data set is the right one. If it is, ask the coordinator "
        "to correct the study. This number stays here."
    )


def _too_large(config: SiteConfig, data: SiteDataset | FeatureDataset) -> Iterator[str]:
    """Yield the participants who don't fit into the site's memory limit, only for its staff."""
    memory = config.most_memory
    if memory is not None and isinstance(data, SiteDataset) and data.largest > memory:
        limit = f"memory {config.memory} in site.yaml"
        if config.memory is None:
            limit = f"half of this machine's memory, {memory / 1e6:.0f} MB"
        yield (
            f"One participant's scan needs up to {data.largest / 1e6:.0f} MB, more than {limit}; "
            "one is prepared at a time."
        )


def _before_after(spent: float, price: float, delta: float) -> tuple[str, str]:
    """Return ε of the spent loss, without and with another loss; all losses are given as μ."""
    return number(epsilon_of(spent, delta)), number(epsilon_of(math.hypot(spent, price), delta))


def _people(data: SiteDataset | FeatureDataset) -> tuple[str, ...]:
    """Return the participants who qualify; none if the data can't be used (reported elsewhere)."""
    try:
        return data.people
    except DataError:
        return ()


def _load(data: SiteDataset | FeatureDataset, watch: Watch) -> list[str]:
    """Load every participant's series, as in the first round, and return the errors."""
    try:
        for _ in watch(data.load(), len(data.survey.lengths)):
            pass
    except DataError as error:
        return [str(error)]
    return []
