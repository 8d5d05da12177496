"""A data protection impact assessment, filled in from a study and its plan, as page and as text.

Only consequences of the study file and its plan are stated. Decisions of people are asked for. The
texts for every study are in the report's ``templates/dpia.yaml``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from consortium import __version__
from consortium.base.atomic import write_text
from consortium.base.formatting import count, number, percent, power_of_ten
from consortium.base.strict_yaml import parse_yaml
from consortium.privacy.gdp import (
    ADDS_UP,
    FALSE_ALARMS,
    best_guess,
    detection_power,
    epsilon_of,
    person_loss,
)
from consortium.report.statement import odds_sentence, protected_text
from consortium.report.templating import plain_environment
from consortium.study.outlook import Outlook, StageOutlook
from consortium.study.plan import Plan
from consortium.study.spec import open_vectors

_WORDS = {
    "rounds": "rounds",
    "entries": "numbers",
    "bound": "bound of one participant or volume",
    "sigma_aggregate": "noise σ",
}
STUDY = "study file"
PLAN = "consortium plan --json"
SIZES = "--subjects"
SENT = {
    True: "Each hospital sends its clipped average with noise added, under a mask that is removed "
    "from the sum over hospitals only.",
    False: "Each hospital sends its clipped average with noise added. Further noise hides what one "
    "hospital sends. It is summed under masks and cancels in the sum over hospitals.",
}
"""Message of a hospital, by whether the correlated noise is exact."""
ANSWERED = (
    "Each hospital sends its clipped answer with enough noise for a single answer. That answer "
    "itself is released, and all parties see each of them."
)


Facts = Mapping[str, str | tuple[str, ...]]


@dataclass(frozen=True)
class Figure:
    """A number as the assessment writes it."""

    name: str
    """Its meaning, as text."""
    text: str
    """As it is written."""
    place: str
    """The study file, what ``consortium plan --json`` prints, or an option of the command."""
    path: str
    """Field there, with dots; for a computed number its source."""
    how: str = ""
    """How it is computed from it; empty if it is the number itself."""

    @property
    def source(self) -> str:
        """Where it comes from, in words."""
        where = f"{self.place}: {self.path}" if self.path else self.place
        return f"{self.how} {where}" if self.how else where


def figures(plan: Plan, volumes: int) -> tuple[Figure, ...]:
    """Return every number of an assessment of a plan.

    Parameters
    ----------
    volumes : int
        T, volumes of one participant: factor of a loss for single volumes.
    """
    return (*_promise(plan), *_meaning(plan), *_person(plan, volumes), *_sizes(plan), *_cost(plan))


def _promise(plan: Plan) -> Iterator[Figure]:
    privacy = plan.study.privacy
    yield Figure("largest ε that is allowed", number(privacy.epsilon), STUDY, "privacy.epsilon")
    yield Figure("δ", power_of_ten(privacy.delta), STUDY, "privacy.delta")
    colluding = str(privacy.colluding_sites)
    yield Figure("hospitals that may collude", colluding, STUDY, "privacy.colluding_sites")
    yield Figure("hospitals that may drop out", str(privacy.dropouts), STUDY, "privacy.dropouts")
    yield Figure("ε against the coalition", number(plan.epsilon), PLAN, "coalition.epsilon")
    yield Figure("ε against outsiders", number(plan.outsider_epsilon), PLAN, "outsider.epsilon")


def _meaning(plan: Plan) -> Iterator[Figure]:
    yield Figure("rate of false alarms", percent(FALSE_ALARMS), "chosen for all studies", "")
    yield Figure("bets that a coin wins", percent(best_guess(0.0)), "by definition", "")
    for name, mu in (("coalition", plan.mu), ("outsider", plan.outsider_mu)):
        power = percent(detection_power(mu))
        guess = percent(best_guess(mu))
        yield Figure(f"found by the best test, {name}", power, PLAN, f"{name}.mu", "power at μ of")
        yield Figure(f"bets won, {name}", guess, PLAN, f"{name}.mu", "best guess at μ of")


def _person(plan: Plan, volumes: int) -> Iterator[Figure]:
    if plan.study.privacy.unit == "subject":
        return
    mu = person_loss(plan.mu, volumes)
    how = "volumes of a participant times μ of"
    yield Figure("volumes of a participant", f"{volumes:,}", "--volumes", "")
    epsilon = number(epsilon_of(mu, plan.delta))
    power = percent(detection_power(mu))
    yield Figure("ε of a participant", epsilon, PLAN, "coalition.mu", f"ε at {how}")
    yield Figure(
        "participants found by the best test", power, PLAN, "coalition.mu", f"power at {how}"
    )


def _sizes(plan: Plan) -> Iterator[Figure]:
    shape = plan.shape
    unit = plan.shape.unit
    yield Figure("hospitals", str(len(plan.study.sites)), STUDY, "sites", "length of")
    yield Figure("fewest hospitals of a run", str(plan.study.fewest), STUDY, "quorum")
    for site, persons in zip(plan.study.sites, shape.subjects, strict=True):
        yield Figure(f"participants of {site}", f"{persons:,}", SIZES, site)
    yield Figure("participants in all", f"{sum(shape.subjects):,}", SIZES, "", "sum of")
    if unit == "timepoint":
        yield Figure(
            "volumes in all", f"{sum(shape.units):,}", "--volumes", "", "all participants'"
        )


def _cost(plan: Plan) -> Iterator[Figure]:
    yield Figure("numbers measured of a participant", f"{plan.shape.features:,}", PLAN, "features")
    yield Figure("rounds", f"{plan.rounds:,}", PLAN, "rounds")
    for index, stage in enumerate(Outlook(plan).stages):
        for what, text in assessed_stages(stage).items():
            yield Figure(f"{_WORDS[what]} of {stage.stage}", text, PLAN, f"stages.{index}.{what}")


def assessed_stages(stage: StageOutlook) -> dict[str, str]:
    """Return a stage's numbers in the assessment, by fields of ``consortium plan --json``."""
    return {
        "rounds": f"{stage.rounds:,}",
        "entries": f"{stage.entries:,}",
        "bound": number(stage.bound),
        "sigma_aggregate": number(stage.sigma_aggregate),
    }


class Rows(NamedTuple):
    """A table of an impact assessment: its heads, and its lines."""

    heads: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


class AssessmentPart(NamedTuple):
    """A part of an impact assessment: heading, facts from the plan, decisions of people."""

    heading: str
    paragraphs: tuple[str, ...] = ()
    table: Rows | None = None
    asked: tuple[str, ...] = ()


def parts(plan: Plan, found: Sequence[Figure]) -> tuple[AssessmentPart, ...]:
    """Return every part of an assessment, in order.

    Parameters
    ----------
    found : sequence of Figure
        Its numbers, from `figures`.
    """
    texts = {each.name: each.text for each in found}
    outlook = Outlook(plan)
    facts = _facts(outlook, texts)
    lines = _lines(outlook, texts, found)
    written = files("consortium.report").joinpath("templates/dpia.yaml").read_text(encoding="utf-8")
    return tuple(_part(each, facts, lines.get(each["heading"], ())) for each in parse_yaml(written))


def _part(
    written: Mapping[str, Any], facts: Facts, first: Iterable[tuple[str, ...]]
) -> AssessmentPart:
    """Fill a part of the file, with lines that the plan gives before its own."""
    lines = *first, *(tuple(_filled(line, facts)) for line in written.get("lines", ()))
    return AssessmentPart(
        written["heading"],
        tuple(_filled(written.get("said", ()), facts)),
        Rows(tuple(written["heads"]), lines) if lines else None,
        tuple(written.get("asked", ())),
    )


def _filled(texts: Iterable[str], facts: Facts) -> Iterator[str]:
    for text in texts:
        several = facts.get(text[1:-1])
        if isinstance(several, tuple):
            yield from several
        else:
            yield text.format_map(facts)


def _facts(outlook: Outlook, texts: Mapping[str, str]) -> Facts:
    """Return the values of the file's placeholders, and the paragraphs that apply."""
    plan = outlook.plan
    study = outlook.plan.study
    views = "; ".join(view.heading for view in study.features)
    rules = ", ".join(study.data.persons)
    summed = () if outlook.alone else (SENT[study.privacy.exact],)
    answered = (ANSWERED,) if any(stage.mechanism.each for stage in plan.stages) else ()
    alone = "each hospital's noisy answer"
    return {
        "title": study.heading,
        "analysis": plan.analysis.title,
        "hospitals": count(len(study.sites), "hospital"),
        "persons": texts["participants in all"],
        "rounds": count(plan.rounds, "round"),
        "released": alone if outlook.alone else "a noisy sum over the hospitals",
        "noisy": "hospital's answer" if outlook.alone else "released sum",
        "remarks": outlook.remarks,
        "taken": views or f"functional images of task {study.data.task}",
        "numbers": count(plan.shape.features, "number"),
        "chosen": f"Participants are chosen by their columns {rules}."
        if rules
        else "The study has no rule that chooses participants.",
        "seen": tuple(filter(None, (*summed, *answered, open_vectors(study)))),
        "risks": tuple(_risks(plan, texts)),
        "checked": outlook.checked,
    }


def _lines(
    outlook: Outlook, texts: Mapping[str, str], found: Sequence[Figure]
) -> Mapping[str, Iterable[tuple[str, ...]]]:
    """Return rows of tables from the plan, by the part's heading."""
    study = outlook.plan.study
    dumped = study.model_dump(mode="json", include={"data", "features"}, exclude_unset=True)
    return {
        "Roles": [(site, "a hospital", texts[f"participants of {site}"]) for site in study.sites],
        "Purpose and computed statistics": [
            (each.stage, each.statistic, *assessed_stages(each).values()) for each in outlook.stages
        ],
        "Data": _flat(dumped),
        "Where every number comes from": [(each.name, each.text, each.source) for each in found],
    }


def _risks(plan: Plan, texts: Mapping[str, str]) -> Iterator[str]:
    privacy = plan.study.privacy
    seen = plan.outsider_epsilon
    yield protected_text(privacy.unit)
    yield (
        f"One run costs at most ε = {number(plan.epsilon)} against the coordinator together with "
        f"{count(privacy.colluding_sites, 'colluding hospital')}, and ε = {number(seen)} against "
        f"outsiders, at δ = {power_of_ten(privacy.delta)}; the study allows "
        f"ε = {number(privacy.epsilon)}."
    )
    yield odds_sentence(privacy.unit, plan.mu, plan.outsider_mu)
    if privacy.unit == "timepoint":
        yield (
            f"For a participant with {texts['volumes of a participant']} volumes this is ε = "
            f"{texts['ε of a participant']}: the test finds "
            f"{texts['participants found by the best test']} of them. Participants are protected "
            "by the unit subject."
        )
    yield f"Further runs and studies of the same participants add to this. {ADDS_UP}"
    yield (
        "The study's findings about people in general may concern those who were never scanned. "
        "Noise does not protect from that."
    )


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every value of nested mappings and lists, with its path."""
    if isinstance(value, Mapping) or (isinstance(value, list) and any(map(_nested, value))):
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, inner in pairs:
            yield from _flat(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        yield path, ", ".join(map(str, value))
    else:
        yield path, str(value)


def _nested(value: Any) -> bool:
    return isinstance(value, Mapping | list)


_MARKED = re.compile(r"[\\`*_<>\[\]|]")
BLANK = "…"
"""Where people write."""


def write_dpia(folder: Path, plan: Plan, volumes: int) -> tuple[Path, Path]:
    """Write ``dpia.html`` and ``dpia.md``, only from the study file and public sizes.

    Raises StudyError if the study has another scheme than ``cape``. Raises OutputError if the
    folder can't be written.

    Parameters
    ----------
    volumes : int
        T, volumes of one participant.
    """
    study = plan.study
    study.check_scheme(f"'{study.study}'")
    made = parts(plan, figures(plan, volumes))
    page = plain_environment("consortium.report").get_template("dpia.html.j2")
    html = page.render(study=study, parts=made, version=__version__, blank=BLANK)
    return (
        write_text(folder / "dpia.html", html),
        write_text(folder / "dpia.md", _markdown(plan, made)),
    )


def _markdown(plan: Plan, made: tuple[AssessmentPart, ...]) -> str:
    study = plan.study
    lines = [
        f"# Data protection impact assessment: {_plain(study.heading)}\n",
        f"Study {study.study}, digest {study.digest}; cape-consortium {__version__}.\n",
    ]
    for part in made:
        lines.append(f"## {part.heading}\n")
        lines += [f"{_plain(text)}\n" for text in part.paragraphs]
        lines += [_table(part.table)] if part.table else []
        lines += [f"- [ ] {_plain(asked)}: {BLANK}" for asked in part.asked]
        lines += [""] if part.asked else []
    return "\n".join(lines)


def _table(rows: Rows) -> str:
    cells = [rows.heads, ("---",) * len(rows.heads), *(map(_plain, line) for line in rows.lines)]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"


def _plain(text: str) -> str:
    """Escape text for Markdown."""
    return _MARKED.sub(r"\\\g<0>", text)
