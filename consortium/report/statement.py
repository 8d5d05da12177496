"""The privacy report in plain words, for an ethics board.

Every figure in it is computed from the report's μ. By the definition of Gaussian differential
privacy, distinguishing two neighbouring data sets is at least as hard as distinguishing N(0, 1)
from N(μ, 1) by one draw. The best test's power and the best guess's success rate follow. Source:
Dong, Roth and Su (2022), section 2.
"""

import math
from typing import NamedTuple

from consortium.base.formatting import count, number, percent, power_of_ten
from consortium.engine.unit_counts import is_far_below
from consortium.privacy.gdp import ADDS_UP, FALSE_ALARMS, TWO_READERS, best_guess, detection_power
from consortium.privacy.loss import boost_text
from consortium.report.privacy_report import SEEDED, Guarantee, PrivacyReport
from consortium.study.spec import how_checked

UNITS = {"subject": "participant", "timepoint": "volume"}
LEAST_SHOWN = 1e-20
"""Probabilities below are shown as this one."""
AGREEMENT = 1e-6
"""Relative rounding within which the promised and the spent loss are equal."""


class Clause(NamedTuple):
    """A heading and a paragraph of the report's privacy statement."""

    heading: str
    text: str


def statement(report: PrivacyReport) -> list[str]:
    """Return the report's privacy statement, one paragraph an entry, for page and command line."""
    return [f"{heading}: {text}" for heading, text in clauses(report)]


def summary(report: PrivacyReport) -> str:
    """Return the privacy statement in one line: ε against coalition and outsiders, and the unit."""
    coalition = report.guarantees.coalition
    outsider = report.guarantees.outsider
    colluders = count(report.colluding_sites, "colluding site")
    return (
        f"ε = {number(coalition.epsilon)} against the centre with {colluders}, "
        f"{number(outsider.epsilon)} against outsiders, at δ = {report.delta:g}, unit {report.unit}"
    )


def clauses(report: PrivacyReport) -> list[Clause]:
    """Return the privacy statement as headings and paragraphs."""
    if report.scheme == "none":
        return [
            Clause(
                "No protection",
                "This run added no noise. It is a reference for a simulation; its results must not "
                "be shared as if they were private.",
            )
        ]
    simulated = Clause(
        "A simulation",
        "The noise of this run can be drawn again from a seed. The figures below are the "
        "guarantee of a real run of the same study. This run itself protects no participant.",
    )
    return [
        *([simulated] if report.sampler.startswith(SEEDED) else []),
        Clause("What is protected", protected_text(report.unit)),
        Clause("How many took part", sizes_text(report)),
        _against(report),
        _strength(report),
        _test(report),
        *([_person(report)] if report.unit == "timepoint" else []),
        _second_opinion(report),
        _supposed(report),
        _not_protected(report),
        *([] if report.sampler.startswith(SEEDED) else [_checked(report)]),
    ]


def protected_text(unit: str) -> str:
    """State which participants or volumes a study with this unit of privacy protects."""
    if unit == "subject":
        return (
            "Each participant, with all their scans. The results of the study would have been "
            "almost as likely if any one participant's scans had been any other's, or had been "
            "missing. The number of each site's participants is known with noise only."
        )
    return (
        "Each single volume of a scan, not a participant with all scans. The results of the "
        "study would have been almost as likely if any one volume had been any other, or had "
        "been missing. The number of each site's volumes is known with noise only."
    )


def sizes_text(report: PrivacyReport) -> str:
    """State in the report how many took part, according to counts with noise."""
    whole = sum(site.units for site in report.sites)
    spread = math.sqrt(len(report.sites)) * max(site.units_deviation for site in report.sites)
    unit = UNITS[report.unit]
    text = f"About {whole:,} {unit}s took part (standard deviation {number(spread)})."
    nominal = sum(site.nominal for site in report.sites)
    if nominal:
        text = f"{text} The study states {nominal:,} as the nominal number."
    return " ".join((text, *few_sentences(report)))


def few_sentences(report: PrivacyReport) -> list[str]:
    """Name sites in the report with clearly less than half of their nominal number."""
    return [
        f"{site.name} has an estimated number of {site.units:,} {UNITS[report.unit]}s (standard "
        f"deviation {number(site.units_deviation)}), far below the nominal {site.nominal:,}. Ask "
        "its staff whether its agent reads the right data."
        for site in report.sites
        if site.answered and is_far_below(site.units, site.units_deviation, site.nominal)
    ]


def _against(report: PrivacyReport) -> Clause:
    if report.colluding_sites:
        coalition = (
            f"the coordinating centre together with up to {report.colluding_sites} of the "
            f"{len(report.sites)} sites, which pool all their messages and data"
        )
    else:
        coalition = "the coordinating centre, which sees every message, with no site on its side"
    seen = "sees only the releases: the maps, this report and the transcript."
    if report.open_vectors:
        seen = (
            "sees the releases (the maps, this report and the transcript) and every single "
            "site's vectors, which are public for recomputing the sums. In them noise that "
            f"cancels in the sum hides the participants; it has {boost_text(report.boost)} times "
            "the variance of a site's own noise."
        )
    return Clause(
        "Against whom", f"Against a coalition: {coalition}. And against an outsider, who {seen}"
    )


def _strength(report: PrivacyReport) -> Clause:
    coalition = report.guarantees.coalition
    outsider = report.guarantees.outsider
    return Clause(
        "How strong",
        f"Per {report.unit}, at δ = {power_of_ten(report.delta)}: "
        f"ε = {number(coalition.epsilon)} against the coalition and "
        f"ε = {number(outsider.epsilon)} against an outsider (in Gaussian differential privacy, "
        f"μ = {number(coalition.mu)} and μ = {number(outsider.mu)}). The study promised at "
        f"most ε = {number(report.promised.epsilon)} against the coalition. "
        f"{_spent(report.promised, coalition)} {readers_of(report)}",
    )


def readers_of(report: PrivacyReport) -> str:
    """State why an outsider's ε, and that of a ledger, may differ from the coalition's."""
    cost = report.guarantees.coalition.epsilon
    promised = report.promised.epsilon
    if report.scheme == "none" or number(cost) == number(promised):
        return TWO_READERS
    return (
        f"{TWO_READERS} Here a ledger may contain up to ε = {number(promised)}, as stated in the "
        "study: a round is charged before the answering sites are known, as if all sites that "
        "may be missing were."
    )


def _spent(promised: Guarantee, coalition: Guarantee) -> str:
    kept = coalition.mu <= promised.mu * (1 + AGREEMENT)
    return "The promise was kept." if kept else "THE GUARANTEE WAS BROKEN: inform the sites."


def _test(report: PrivacyReport) -> Clause:
    coalition = report.guarantees.coalition.mu
    outsider = report.guarantees.outsider.mu
    return Clause("What that means", odds_sentence(report.unit, coalition, outsider))


def odds_sentence(unit: str, coalition: float, outsider: float) -> str:
    """State what losses μ mean: the success of a test about one participant, or volume."""
    one = "participant" if unit == "subject" else "volume"
    blind = percent(FALSE_ALARMS)
    return (
        f"Suppose that an attacker has all data of the study except one {one}'s, and tests "
        f"whether these are a given {one}'s. With a false-positive rate of {blind}, the test's "
        f"power is at most {percent(detection_power(coalition))} for the coalition and "
        f"{percent(detection_power(outsider))} for an outsider; guessing has {blind}. If two "
        "cases are equally likely, the right one is named in at most "
        f"{percent(best_guess(coalition))} by the coalition and {percent(best_guess(outsider))} "
        "by an outsider; chance is 50 %."
    )


def _person(report: PrivacyReport) -> Clause:
    person = report.person
    return Clause(
        "What that means for a participant",
        f"A participant contributed up to {person.volumes} volumes. For all volumes together the "
        f"coalition's loss is at most μ = {number(person.mu_coalition)}, ε = "
        f"{number(person.epsilon_coalition)}: the test above detects a participant in up to "
        f"{percent(detection_power(person.mu_coalition))} of cases. A study that shall protect "
        "participants uses the unit subject.",
    )


def _second_opinion(report: PrivacyReport) -> Clause:
    check = report.cross_check
    return Clause(
        "Independent check",
        f"{check.library} {check.version}, which is not part of this project, computed "
        f"ε = {number(check.epsilon_coalition)} against the coalition from the same releases.",
    )


def _supposed(report: PrivacyReport) -> Clause:
    many = report.colluding_sites
    who = {0: "No site works", 1: "At most one site works"}.get(many, f"At most {many} sites work")
    return Clause(
        "Assumptions",
        f"{who} with the centre against the others. Every other site runs this software "
        f"unaltered, adds its noise and keeps its keys to itself.{_opening(report)} The network, "
        "and the place where messages are exchanged, need not be trusted.",
    )


def _opening(report: PrivacyReport) -> str:
    if report.scheme == "local" or all(release.each for release in report.releases):
        return ""
    graph = report.graph
    if graph is None:
        return (
            " The sum of the sites' messages opens only with the answers of more than half of the "
            "sites; no single site's message opens."
        )
    return (
        f" Each site drew {graph.holders} others at random, which have shares of the keys to its "
        f"masks; {graph.threshold} of them open one. The colluding sites were fixed before the "
        "draw. No single site's message opens, except with a probability of at most "
        f"{power_of_ten(max(graph.failure, LEAST_SHOWN))}, which is counted in δ."
    )


def _not_protected(report: PrivacyReport) -> Clause:
    known = "".join(f"{each}, " for each in ("the nominal amount of data of each", *report.public))
    return Clause(
        "Not protected",
        f"Which sites took part, {known}and the study's findings about people in general, which "
        "may concern those who were never scanned. A site sees its own data. Other studies of "
        "the same data add to the loss: each site's ledger charges the loss against the "
        f"coalition and refuses to exceed its limit. {ADDS_UP}",
    )


def _checked(report: PrivacyReport) -> Clause:
    each = bool(report.releases) and all(release.each for release in report.releases)
    return Clause(
        "How it can be checked",
        how_checked(shown=report.exact or report.open_vectors or each),
    )
