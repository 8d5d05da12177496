"""What a data protection impact assessment says of a study, part by part.

Only what follows from the study file and its plan is stated; what people decide is asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from consortium.base.formatting import count, number, power_of_ten
from consortium.coordinator.dpia_figures import Figure, stage_texts
from consortium.privacy.gdp import ADDS_UP
from consortium.report.statement import meaning, protected
from consortium.study.plan import Plan
from consortium.study.spec import how_checked, open_vectors

SENT = {
    "cape": "Each hospital sends its clipped average with noise added; further noise, which "
    "cancels in the sum over hospitals and is summed under masks, hides what one hospital sends.",
    "secure-sum": "Each hospital sends its clipped average with noise added, under masks that "
    "only come off the sum over hospitals.",
    "local": "Each hospital sends its clipped average with noise enough to stand alone; the "
    "centre sees each of them.",
}
ANSWERED = (
    "Each hospital sends its clipped answer with noise enough to stand alone; that answer itself "
    "is released, and everybody sees each of them."
)


class Rows(NamedTuple):
    """A table: its heads, and its lines."""

    heads: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


class Part(NamedTuple):
    """A heading, what follows from the plan, and what people have to decide."""

    heading: str
    paragraphs: tuple[str, ...] = ()
    table: Rows | None = None
    asked: tuple[str, ...] = ()


def parts(plan: Plan, found: Sequence[Figure]) -> tuple[Part, ...]:
    """Every part of an assessment, in order.

    Parameters
    ----------
    found : sequence of Figure
        Its numbers, of `figures`.
    """
    texts = {each.name: each.text for each in found}
    return (
        _roles(plan, texts),
        _purpose(plan, texts),
        _data(plan),
        _recipients(plan),
        _retention(),
        _risks(plan, texts),
        _measures(plan),
        _stays(),
        _decided(),
        Part("Where every number comes from", (), _sources(found)),
    )


def _roles(plan: Plan, texts: Mapping[str, str]) -> Part:
    lines = [(site, "a hospital", texts[f"participants of {site}"]) for site in plan.study.sites]
    lines.append(("the coordinator", "plans, signs and runs the study", "none"))
    lines.append(("the exchange's operator", "keeps messages that the parties write", "none"))
    return Part(
        "Roles",
        (
            (
                "Each hospital decides by itself whether it takes part, on its own machine and "
                "with its own limit. Whether hospitals and coordinator are controllers by "
                "themselves or together, and whether the exchange's operator is a processor, "
                "is a legal question."
            ),
        ),
        Rows(("party", "part", "participants whose data it holds"), tuple(lines)),
        (
            "Controller, or joint controllers and their arrangement (Article 26)",
            "Processors and their contracts (Article 28), the exchange's operator among them",
            "Data protection officer of each hospital, and their advice (Article 35(2))",
        ),
    )


def _purpose(plan: Plan, texts: Mapping[str, str]) -> Part:
    lines = []
    for each in plan.stages:
        told = stage_texts(each)
        lines.append((each.name, each.release.statistic, *told.values()))
    title = plan.study.title or plan.study.study
    summed = "a noisy sum over the hospitals" if not _each(plan) else "each hospital's noisy answer"
    return Part(
        "Purpose, and what is computed",
        (
            (
                f"The study “{title}” computes {plan.analysis.title} over "
                f"{count(len(plan.study.sites), 'hospital')} with {texts['participants in all']} "
                f"participants, in at most {count(plan.rounds, 'round')}. What a round releases "
                f"is {summed}."
            ),
            "A question that is not in this table is refused by every hospital's agent.",
            *plan.analysis.remarks(),
        ),
        Rows(("stage", "statistic", "rounds", "numbers", "bound of one", "noise σ"), tuple(lines)),
        (
            "The research question, and why it needs these data",
            (
                "Legal basis (Article 6), condition for health data (Article 9(2)), and any "
                "national law on research"
            ),
        ),
    )


def _data(plan: Plan) -> Part:
    study = plan.study
    views = "; ".join(view.heading for view in study.features)
    taken = views or f"functional images of task {study.data.task}"
    dumped = study.model_dump(mode="json", include={"data", "features"}, exclude_unset=True)
    lines = tuple(_flat(dumped))
    rules = ", ".join(study.data.persons)
    chosen = (
        f"Participants are chosen by their columns {rules}."
        if rules
        else "The study has no rule that chooses participants."
    )
    return Part(
        "Data",
        (
            (
                f"Taken of each participant: {taken}; {count(plan.shape.features, 'number')}, "
                "worked out at the hospital. These are data concerning health."
            ),
            f"{chosen} A hospital can leave out whom it wants, without telling why.",
            "The fields of the study file that decide it; all that is not named has its default.",
        ),
        Rows(("field of the study file", "value"), lines) if lines else None,
        ("Whether fewer data would do (Article 5(1)(c))",),
    )


def _recipients(plan: Plan) -> Part:
    privacy = plan.study.privacy
    summed = () if _each(plan) else (SENT[privacy.scheme],)
    answered = (ANSWERED,) if any(stage.mechanism.each for stage in plan.stages) else ()
    opened = (open_vectors(plan.study),) if plan.study.verification.open else ()
    return Part(
        "Recipients",
        (*summed, *answered, *opened),
        Rows(
            ("who", "sees"),
            (
                ("the coordinator", "every message of the study, and what is released"),
                (
                    "other hospitals",
                    (
                        "what is released, each hospital's number of participants, and, if they "
                        "check sums, vectors under masks"
                    ),
                ),
                (
                    "the exchange's operator",
                    "length, time and sender of messages, and their text only where it is public",
                ),
                (
                    "everybody",
                    (
                        "what is published: the result, and how many participants each hospital "
                        "had, which is exact and without noise"
                    ),
                ),
            ),
        ),
        (
            "Recipients outside the European Economic Area, and the ground for it (Chapter V)",
            "Who may see results before publication",
        ),
    )


def _retention() -> Part:
    return Part(
        "Retention",
        ("The software deletes nothing of these by itself; people set the dates.",),
        Rows(
            ("what", "where", "how long it is needed"),
            (
                ("scans and tables", "the hospital", "not changed by the study"),
                ("prepared images (cache)", "the hospital", "until the run's end; patient data"),
                ("ledger and its key", "the hospital", "as long as the data are used in studies"),
                ("approvals, keys, messages", "the hospital", "while the hospital is a member"),
                (
                    "messages on the exchange",
                    "the exchange",
                    (
                        "until the result was verified; the "
                        "newest signed line of each ledger for longer"
                    ),
                ),
                ("result, transcript, report", "the coordinator", "as published"),
            ),
        ),
        ("The date of deletion of each, and who sees to it",),
    )


def _risks(plan: Plan, texts: Mapping[str, str]) -> Part:
    return Part(
        "Risks for the participants",
        tuple(_risk_sentences(plan, texts)),
        Rows(
            ("risk", "what is done", "what remains"),
            (
                (
                    "somebody learns that a participant was in the data, or what they are like",
                    "clipping, noise, and ε as above",
                    "the chances that are stated above",
                ),
                (
                    "more hospitals side with the coordinator than was reckoned with",
                    "members are compared by fingerprints",
                    "the promise is then void",
                ),
                (
                    "many studies of the same participants",
                    "a ledger by participant refuses beyond the hospital's limit",
                    "a participant under two labels, or at two hospitals, has two accounts",
                ),
                (
                    "a number of participants tells of one participant",
                    "numbers that differ by few are withheld",
                    "a few well-informed people",
                ),
                (
                    "somebody breaks into a hospital's machine",
                    "no open port; keys that one user reads",
                    "as for any machine with patient data",
                ),
                (
                    "a false result",
                    how_checked(
                        plan.study.privacy.scheme,
                        public=plan.study.verification.open,
                        each=_each(plan),
                    ),
                    "a hospital can send invented numbers",
                ),
            ),
        ),
        (
            "Likelihood and severity of each risk, and whether ε and δ are acceptable",
            "Views of the participants or their representatives (Article 35(9))",
        ),
    )


def _risk_sentences(plan: Plan, texts: Mapping[str, str]) -> Iterator[str]:
    privacy, seen = plan.study.privacy, plan.outsider_epsilon
    yield protected(privacy.unit)
    yield (
        f"One run costs at most ε = {number(plan.epsilon)} against the coordinator together with "
        f"{count(privacy.colluding_sites, 'colluding hospital')}, and ε = {number(seen)} against "
        f"outsiders, at δ = {power_of_ten(privacy.delta)}; the study allows "
        f"ε = {number(privacy.epsilon)}."
    )
    yield meaning(privacy.unit, plan.mu, plan.outsider_mu)
    if privacy.unit == "timepoint":
        yield (
            f"For a participant with {texts['volumes of a participant']} volumes this is ε = "
            f"{texts['ε of a participant']}: the test finds "
            f"{texts['participants found by the best test']} of them. Participants are protected "
            "by the unit subject."
        )
    yield f"Further runs and studies of the same participants add to this. {ADDS_UP}"
    yield (
        "What the study finds about people in general may concern those who were never scanned; "
        "no noise protects from that."
    )


def _measures(plan: Plan) -> Part:
    each = "noise on every hospital's answer" if _each(plan) else "noise on every released sum"
    return Part(
        "Measures",
        (),
        Rows(
            ("measure", "who keeps it"),
            (
                (f"clipping of every participant's part, and {each}", "each hospital's agent"),
                ("people approve this very file, mask and members' keys", "each hospital"),
                ("policy.yaml: what no study may ask, with the largest ε", "each hospital"),
                ("the loss is in the ledger before anything is sent", "each hospital's agent"),
                ("messages are signed, those about data are encrypted for one party", "all"),
                ("a run ends without result when more hospitals are missing than allowed", "all"),
            ),
        ),
        ("Further measures of each hospital: access, training, incident reporting",),
    )


def _stays() -> Part:
    kept = (
        "scans, tables, and everything that was measured of one participant",
        "labels of participants and names of files; they stand in the hospital's own log only",
        "who takes part and who is left out, with the reasons",
        "the ledger: each participant's loss so far; others see its newest line's digest",
        "secret keys, and averages before clipping and noise",
    )
    return Part(
        "What stays with the hospital",
        (),
        Rows(("it never leaves",), tuple((each,) for each in kept)),
    )


def _decided() -> Part:
    return Part(
        "To be decided by people",
        (
            (
                "This assessment is filled from the study file; it is no legal advice and decides "
                "nothing. It is whole when every question in it has an answer and a signature."
            ),
        ),
        None,
        (
            "How participants are informed, consent or the ground for none (Articles 13, 14)",
            "How a withdrawal or objection is met: a released sum can't be taken back",
            "Whether the supervisory authority is consulted first (Article 36)",
            "Decision, date of the next review, names and signatures",
        ),
    )


def _sources(found: Sequence[Figure]) -> Rows:
    lines = tuple((each.name, each.text, each.source) for each in found)
    return Rows(("number", "value", "from"), lines)


def _each(plan: Plan) -> bool:
    """Whether every round releases each hospital's own answer."""
    return all(stage.mechanism.each for stage in plan.stages)


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every value of nested mappings and lists, with its path."""
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
