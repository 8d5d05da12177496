"""Plans, audits and standings as tables in a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from consortium.algorithms.base import Expectation
from consortium.algorithms.base import Table as ResultTable
from consortium.base.formatting import count, moment, number
from consortium.coordinator.approvals import SiteApproval, approved_sentence
from consortium.coordinator.run_folder import RunStatus
from consortium.privacy.audit import AuditRow
from consortium.privacy.loss import boost_text, printed_loss
from consortium.report.tables import cell_text
from consortium.study.outlook import HEADS, Outlook
from consortium.study.plan import Plan
from consortium.study.spec import Study, open_vectors


def show_plan(made: Plan, out: Console, *, details: bool = False) -> None:
    """Print a plan: its forecast and its privacy loss; with details also its releases."""
    outlook = Outlook(made)
    for sentence in outlook.sentences():
        out.print(sentence, soft_wrap=True)
    _show_expected(outlook.expected, out)
    if outlook.nearby is not None:
        _show_forecast(outlook.nearby, out)
    for sentence in filter(None, (open_vectors(made.study), outlook.checked)):
        out.print(sentence, soft_wrap=True)
    if not details:
        out.print("Releases and their noise: --details.")
        return
    _show_releases(outlook, out)
    masking = made.masking
    if masking.holders:
        out.print(
            f"masks within a graph: {masking.holders} holders a site, {masking.threshold} open a "
            f"seed; fails with probability {masking.failure:.1g}, which is part of δ; noise "
            f"planned for {count(masking.hidden, 'hidden site')}"
        )


def _show_expected(expected: Sequence[Expectation], out: Console) -> None:
    ranged = any(each.bounded for each in expected)
    table = Table("expected", "value", *(("range", "meaning of the range") if ranged else ()))
    for each in expected:
        between = (each.range, each.ranged if each.bounded else "") if ranged else ()
        table.add_row(each.name, number(each.value), *between)
    out.print(table)


def _show_releases(outlook: Outlook, out: Console) -> None:
    study = outlook.plan.study
    what = "entries" if study.features else "vertices" if study.data.mesh else "voxels"
    table = Table(*HEADS, "bytes a round")
    table.title = f"Releases, from {outlook.plan.shape.features:,} {what} of each participant"
    for row, stage in zip(outlook.rows(), outlook.stages, strict=True):
        table.add_row(*row, str(stage.message_bytes))
    out.print(table)


def _show_forecast(foretold: ResultTable, out: Console) -> None:
    """Print further forecasts of the analysis: sentences, or similar studies."""
    if len(foretold.columns) > 1:
        show_table(foretold, out)
        return
    for (line,) in foretold.rows:
        out.print(str(line), soft_wrap=True)


def show_table(found: ResultTable, out: Console) -> None:
    """Print a table under its caption on the terminal."""
    table = Table(*found.columns)
    for row in found.rows:
        table.add_row(*map(cell_text, row))
    out.print(found.caption, soft_wrap=True)
    out.print(table)


def show_audit(found: list[AuditRow], out: Console) -> None:
    """Print an audit: the guarantee and the measured loss."""
    heads = ("scheme", "S", "S_C", "κ", "promised μ", "empirical μ", "±", "verdict", "printed μ")
    table = Table(*heads)
    for f in found:
        printed = printed_loss(f.sites, f.colluding) if (f.scheme, f.boost) == ("cape", 1) else None
        refuted = printed is not None and f.empirical > printed + 4 * f.error
        cells = (
            f.scheme,
            str(f.sites),
            str(f.colluding),
            boost_text(f.boost) if f.scheme == "cape" else "",
            f"{f.promised:.4f}",
            f"{f.empirical:.4f}",
            f"{f.error:.4f}",
            "upheld, tight" if f.upheld and f.tight else "upheld" if f.upheld else "REFUTED",
            "" if printed is None else f"{printed:.4f} {'refuted' if refuted else 'upheld'}",
        )
        table.add_row(*cells)
    out.print(table)


def show_approvals(study: Study, approvals: Sequence[SiteApproval], out: Console) -> None:
    """Print which sites' approvals cover the next run, and how long the others are awaited."""
    out.print(approved_sentence(sum(each.approved for each in approvals), study))
    awaited = [each for each in approvals if not each.approved]
    if not awaited:
        return
    table = Table("awaited", "for", "why")
    for each in awaited:
        days = "–" if each.days is None else count(each.days, "day")
        table.add_row(each.site, days, each.reason.removeprefix(f"{each.site} "))
    out.print(table)
    if not all(each.declined for each in awaited):
        out.print("'consortium remind' writes a mail to each site that has not decided.")


def show_status(standing: RunStatus, out: Console) -> None:
    """Print the present wait of a run, site by site."""
    idle = "not running" if standing.ended else "not running. Start it with 'consortium run'"
    centre = "at work" if standing.running else idle
    out.print(f"{standing.run}: {standing.step}; the centre is {centre}.", soft_wrap=True)
    counted = any(site.count for site in standing.sites)
    heads = ("site", "last message", "state", "since", "until")
    table = Table(*heads, *(("estimated number", "nominal") if counted else ()))
    for site in standing.sites:
        since, until = (moment(at) if at else "" for at in (site.since, site.until))
        count = site.count
        sizes = (f"{count.units:,} ± {count.deviation:.2g}", f"{count.nominal:,}") if count else ()
        cells = (site.name, site.heard, site.state, since, until)
        table.add_row(*cells, *sizes)
    out.print(table)
    for site in standing.sites:
        if site.count is not None and site.count.few:
            out.print(
                f"{site.name}: the estimated number is far below the nominal one. Ask its staff "
                "whether its agent reads the right data.",
                soft_wrap=True,
            )
