"""Plans, audits and standings as tables in a terminal."""

from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from consortium.algorithms.base import Expectation
from consortium.algorithms.base import Table as ResultTable
from consortium.base.formatting import count, moment, number
from consortium.coordinator.design import expect, noise_of
from consortium.coordinator.status import RunStatus
from consortium.privacy.audit import Finding
from consortium.privacy.gdp import TWO_READERS
from consortium.privacy.loss import printed_loss
from consortium.report.cells import cell_text
from consortium.study.plan import Plan, with_fewest
from consortium.study.spec import how_checked, open_vectors


def plan_numbers(made: Plan) -> dict[str, object]:
    """A plan for a script."""
    return {
        "features": made.shape.features,
        "rounds": made.rounds,
        "unit": made.shape.unit,
        "coalition": {"mu": made.mu, "epsilon": made.epsilon},
        "outsider": {"mu": made.outsider_mu, "epsilon": made.outsider_epsilon},
        "open_vectors": made.study.verification.open,
        "checked": _checked(made),
        "masks": asdict(made.masking),
        "stages": [
            {
                "stage": stage.name,
                "statistic": stage.release.statistic,
                "rounds": stage.release.rounds,
                "entries": stage.release.entries,
                "bound": stage.release.bound.norm,
                "sigma_aggregate": stage.mechanism.noise.aggregate(),
                "bits": stage.mechanism.lattice.bits,
                "message_bytes": stage.message_bytes,
            }
            for stage in made.stages
        ],
        "expected": _expected(made),
        "fewest": _fewest(made),
        "forecast": _forecast(made),
        "remarks": list(made.analysis.remarks()),
    }


def _checked(made: Plan) -> str:
    each = all(stage.mechanism.each for stage in made.stages)
    privacy, public = made.study.privacy, made.study.verification.open
    return how_checked(privacy.scheme, public=public, each=each)


def _forecast(made: Plan) -> list[dict[str, object]]:
    """What the study will see, where its analysis can tell: one mapping for each row."""
    table = made.analysis.foretell()
    if table is None:
        return []
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def show_plan(made: Plan, out: Console, *, details: bool = False) -> None:
    """Print a plan: what to expect and what it costs; with details, what is released, too."""
    fewest, forecast, withheld = with_fewest(made), made.analysis.expect(), made.analysis.withheld()
    verdict = _verdict(forecast) or withheld or "There is no forecast of what is found."
    out.print(f"{verdict} {_price(made)}", soft_wrap=True)
    if fewest is not None and forecast:
        who, then = ", ".join(fewest.study.sites), _verdict(fewest.analysis.expect())
        out.print(f"If no more than {who} answer: {then}", soft_wrap=True)
    for remark in made.analysis.remarks():
        out.print(remark, soft_wrap=True)
    if withheld and withheld != verdict:
        out.print(withheld, soft_wrap=True)
    expected = forecast or noise_of(made)
    ranged = any(each.bounded for each in expected)
    table = Table("expected", "value", *(("range", "what the range is") if ranged else ()))
    for each in expected:
        between = (_range(each), each.ranged if each.bounded else "") if ranged else ()
        table.add_row(each.name, number(each.value), *between)
    out.print(table)
    _show_forecast(made, out)
    if made.study.verification.open:
        out.print(open_vectors(made.study), soft_wrap=True)
    out.print(_checked(made), soft_wrap=True)
    if not details:
        out.print("What is released, with which noise: --details.")
        return
    _show_releases(made, out)
    masking = made.masking
    if masking.holders:
        out.print(
            f"masks within a graph: {masking.holders} holders a site, {masking.threshold} open a "
            f"seed; fails with probability {masking.failure:.1g}, which is part of δ; noise "
            f"planned for {count(masking.hidden, 'hidden site')}"
        )


def _verdict(forecast: Sequence[Expectation]) -> str:
    """The most important number of a forecast, with its range, in a sentence; empty if none."""
    if not forecast:
        return ""
    first = forecast[0]
    name = f"expected {first.name.removeprefix('expected ')}".capitalize()
    between = f" ({_range(first)})" if first.bounded else ""
    # Fewer that are found may agree better: the one number misleads without the other.
    found = [f"; {e.name}: {number(e.value)}" for e in forecast[1:2] if e.name.endswith(" found")]
    return f"{name}: {number(first.value)}{between}{''.join(found)}."


def _range(expected: Expectation) -> str:
    low, high = number(expected.low), number(expected.high)
    return f"{low} to {high}" if expected.bounded else ""


def _expected(made: Plan) -> list[dict[str, object]]:
    return [{"name": each.name, "value": each.value, "range": _ends(each)} for each in expect(made)]


def _fewest(made: Plan) -> dict[str, object] | None:
    """What to expect if no more sites answer than must."""
    found = with_fewest(made)
    if found is None:
        return None
    return {"sites": list(found.study.sites), "expected": _expected(found)}


def _ends(expected: Expectation) -> list[float] | None:
    return [expected.low, expected.high] if expected.bounded else None


def _price(made: Plan) -> str:
    """What a participant's part in one run costs at the most."""
    privacy = made.study.privacy
    seen = made.outsider_epsilon
    unit = "participant" if privacy.unit == "subject" else "volume"
    return (
        f"One {unit}'s privacy loss: ε ≤ {number(made.epsilon)} against the centre and "
        f"{count(privacy.colluding_sites, 'colluding site')}, {number(seen)} against outsiders "
        f"(δ = {privacy.delta:g}). {TWO_READERS}"
    )


def _show_releases(made: Plan, out: Console) -> None:
    what = "entries" if made.study.features else "voxels"
    table = Table("stage", "statistic", "rounds", "numbers", "bound", "noise σ", "bytes a round")
    table.title = f"Releases, from {made.shape.features:,} {what} of each participant"
    for s in made.stages:
        r, sigma = s.release, s.mechanism.noise.aggregate()
        row = (r.stage, r.statistic, r.rounds, r.entries, f"{r.bound.norm:.3g}", f"{sigma:.3g}")
        table.add_row(*map(str, row), str(s.message_bytes))
    out.print(table)


def _show_forecast(made: Plan, out: Console) -> None:
    """Print what else the analysis forecasts: sentences, or studies near this one."""
    foretold = made.analysis.foretell()
    if foretold is None:
        return
    if len(foretold.columns) == 1:
        for (line,) in foretold.rows:
            out.print(str(line), soft_wrap=True)
        return
    table = Table(*foretold.columns, title=foretold.caption, title_justify="left")
    for row in foretold.rows:
        table.add_row(*(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row))
    out.print(table)


def show_audit(found: list[Finding], out: Console) -> None:
    """Print an audit: what was promised and what was found."""
    table = Table(
        "scheme", "S", "S_C", "κ", "promised μ", "empirical μ", "±", "verdict", "printed μ"
    )
    for f in found:
        printed = printed_loss(f.sites, f.colluding) if (f.scheme, f.boost) == ("cape", 1) else None
        refuted = printed is not None and f.empirical > printed + 4 * f.error
        table.add_row(
            f.scheme,
            str(f.sites),
            str(f.colluding),
            f"{f.boost:g}" if f.scheme == "cape" else "",
            f"{f.promised:.4f}",
            f"{f.empirical:.4f}",
            f"{f.error:.4f}",
            "upheld, tight" if f.upheld and f.tight else "upheld" if f.upheld else "REFUTED",
            "" if printed is None else f"{printed:.4f} {'refuted' if refuted else 'stands'}",
        )
    out.print(table)


def show_contrast(found: ResultTable, out: Console) -> None:
    """Print a table of effects."""
    table = Table(*found.columns)
    for row in found.rows:
        table.add_row(*(cell_text(cell) for cell in row))
    out.print(found.caption, soft_wrap=True)
    out.print(table)


def show_status(standing: RunStatus, out: Console) -> None:
    """Print what a run waits for, site by site."""
    centre = "at work" if standing.running else "not running; start it with 'consortium run'"
    out.print(f"{standing.run}: {standing.step}; the centre is {centre}.", soft_wrap=True)
    table = Table("site", "last message", "state", "since", "until")
    for site in standing.sites:
        since, until = (moment(at) if at else "" for at in (site.since, site.until))
        table.add_row(site.name, site.heard, site.state, since, until)
    out.print(table)
