"""The whole report in a few sentences, and its figures at a glance."""

from consortium.base.formatting import count, number, power_of_ten
from consortium.report.finished import Finished
from consortium.report.privacy_report import PrivacyReport
from consortium.report.sections.base import Facts, PageSection
from consortium.report.statement import UNITS


def section(run: Finished) -> PageSection:
    """State the verdict, and numbers of components or views, sites, units and losses."""
    return PageSection(
        "verdict", {"verdict": verdict(run), "tiles": (*_found(run), *_figures(run))}
    )


def verdict(run: Finished) -> str:
    """Summarize the report in a few sentences."""
    report = run.report
    headline = run.result.captions.headline
    many = count(sum(site.units for site in report.sites), UNITS[report.unit])
    found = f"{many} at {count(len(report.sites), 'site')}"
    if run.components:
        found = f"{count(len(run.components.components), 'component')} from about {found}"
    else:
        found = f"About {found}"
    if run.space.views:
        found = f"{found}, described by {', '.join(view.name for view in run.space.views)}"
    return f"{headline + ' ' if headline else ''}{found}. {guarantee_text(report)}"


def guarantee_text(report: PrivacyReport) -> str:
    """State the guarantees in one sentence."""
    unit = UNITS[report.unit]
    if report.scheme == "none":
        return f"Nothing protects the {unit}s: this run added no noise."
    guarantees = report.guarantees
    many = report.colluding_sites
    helpers = f" with {count(many, 'colluding site')}" if many else ""
    promised = number(report.promised.epsilon)
    more = f" A ledger may contain up to ε = {promised}, as stated in the study."
    return (
        f"One {unit}'s privacy loss is at most "
        f"ε = {number(guarantees.coalition.epsilon)} against the centre{helpers}, and "
        f"ε = {number(guarantees.outsider.epsilon)} against an outsider "
        f"(δ = {power_of_ten(report.delta)})."
        f"{more if promised != number(guarantees.coalition.epsilon) else ''}"
    )


def _found(run: Finished) -> Facts:
    """State how many results the page shows."""
    facts = []
    if run.components:
        many = len(run.components.components)
        seen = sum(map(run.components.is_found, range(many)))
        many_text = str(many) if seen == many else f"{seen} of {many} found"
        facts.append(("Components", many_text))
    if run.space.views:
        facts.append(("Views", str(len(run.space.views))))
    drawn = [images for images in run.result.images.values() if images.drawn]
    maps = [images.is_found(k) for images in drawn for k in range(len(images.labels))]
    if len(maps) > 1:
        (word, *others) = {images.word for images in drawn}
        facts.append((f"Maps {'found' if others else word}", f"{sum(maps)} of {len(maps)}"))
    return tuple(facts)


def _figures(run: Finished) -> Facts:
    report = run.report
    units = sum(site.units for site in report.sites)
    return (
        ("Sites", str(len(report.sites))),
        (f"{UNITS[report.unit].capitalize()}s", f"{units:,}"),
        ("ε against coalition", number(report.guarantees.coalition.epsilon)),
        ("ε against outsider", number(report.guarantees.outsider.epsilon)),
        ("δ", power_of_ten(report.delta)),
    )
