"""The comparison of two runs as a page: plans, privacy losses and findings."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from consortium.base.atomic import write_text
from consortium.base.formatting import count, number, percent, power_of_ten
from consortium.privacy.loss import boost_text
from consortium.report.comparison import (
    ComparedRun,
    Difference,
    Matching,
    Pair,
    differences,
    match_components,
    without_effects,
)
from consortium.report.pictures import DOTS, INK, PALETTE, Picture, to_picture
from consortium.report.privacy_report import PrivacyReport
from consortium.report.statement import UNITS
from consortium.report.templating import plain_environment

NAME = "comparison.html"
SHOWN = 200
"""Differences in the table: those that stand out most."""
STANDS_OUT = 1.96
_TICKS = 20
Line = tuple[str, str, str]


def write_comparison(
    folder: Path, first: ComparedRun, second: ComparedRun
) -> tuple[Path, tuple[str, ...]]:
    """Write the page; returns where it is, and the comparison in a few sentences.

    Raises DataError if maps can't be read. Raises OutputError if the folder can't be written.
    """
    matching = match_components(first, second)
    effects = sorted(differences(first, second), key=lambda each: -abs(each.z))
    summary = summarize_comparison(matching, effects, first, second)
    page = (
        plain_environment("consortium.report")
        .get_template("comparison.html.j2")
        .render(
            names=(first.name, second.name),
            lines=_lines(first, second),
            pairs=[_pair(pair, matching, first, second) for pair in matching.pairs],
            picture=_matrix(matching) if matching.correlations.size else None,
            effects=effects[:SHOWN],
            summary=summary,
        )
    )
    return write_text(folder / NAME, page), summary


def summarize_comparison(
    matching: Matching,
    effects: Sequence[Difference],
    first: ComparedRun,
    second: ComparedRun,
) -> tuple[str, ...]:
    """Summarize a comparison of two runs in sentences."""
    pairs = matching.pairs
    without = without_effects(first, second)
    sentences = []
    if pairs:
        sizes = [abs(pair.correlation) for pair in pairs]
        sentences.append(
            f"{count(len(pairs), 'component')} matched, with a correlation of "
            f"{number(float(np.median(sizes)))} in the middle and {number(min(sizes))} at least."
        )
    if effects:
        beyond = sum(abs(each.z) > STANDS_OUT for each in effects)
        sentences.append(
            f"{count(beyond, 'effect')} of {len(effects):,} differ by more than {STANDS_OUT} "
            f"standard errors; by chance {percent(0.05)} would."
        )
    elif without:
        sentences.append(without)
    return tuple(sentences) or ("The two results have no maps and no effects in common.",)


def _lines(first: ComparedRun, second: ComparedRun) -> list[Line]:
    """Return plan and privacy loss of both, line by line."""
    ours = _told(first.report)
    theirs = _told(second.report)
    lines = [(name, ours.get(name, "–"), theirs.get(name, "–")) for name in {**ours, **theirs}]
    kind, other = (str(each.about.get("Analysis", "–")) for each in (first, second))
    lines.insert(0, ("Analysis", kind, other))
    if kind != other:  # their parameters mean different things
        return lines
    sets = (first.about.get("AnalysisParameters", {}), second.about.get("AnalysisParameters", {}))
    for name in dict.fromkeys([*sets[0], *sets[1]]):
        values = tuple("–" if each.get(name) is None else str(each[name]) for each in sets)
        if values[0] != values[1]:
            lines.append((f"Parameter {name.replace('_', ' ')}", values[0], values[1]))
    return lines


def _told(report: PrivacyReport) -> dict[str, str]:
    unit = UNITS[report.unit]
    return {
        "Sites": ", ".join(site.name for site in report.sites),
        f"{unit.capitalize()}s": f"{sum(site.units for site in report.sites):,}",
        "Protected unit": unit,
        "Scheme": report.scheme,
        "Boost": boost_text(report.boost),
        "Colluding sites planned for": str(report.colluding_sites),
        "δ": power_of_ten(report.delta),
        "ε promised against the coalition": number(report.promised.epsilon),
        "ε spent against the coalition": number(report.guarantees.coalition.epsilon),
        "ε spent against an outsider": number(report.guarantees.outsider.epsilon),
        "Rounds": str(len(report.releases)),
        "Software": report.versions.get("cape-consortium", "–"),
    }


def _pair(
    pair: Pair, matching: Matching, first: ComparedRun, second: ComparedRun
) -> tuple[str, str, str, str, str]:
    expected = (_expected(first, pair.first), _expected(second, pair.second))
    names = (
        f"{number} {known.get(number, '')}".rstrip()
        for number, known in zip((pair.first, pair.second), matching.names, strict=True)
    )
    one, other = names
    return (one, other, f"{pair.correlation:.2f}".replace("-", "−"), *expected)


def _expected(outcome: ComparedRun, number: int) -> str:
    """Return the expected correlation of a component with the truth, if reported."""
    accuracy = outcome.about.get("Accuracy")
    if not isinstance(accuracy, list) or len(accuracy) < number:
        return "–"
    each = accuracy[number - 1]
    value = each.get("value") if isinstance(each, dict) else each
    return f"{value:.2f}" if isinstance(value, float) else "–"


def _matrix(matching: Matching) -> Picture:
    """Return all correlations in colour, labelled by the components' own numbers."""
    rows, columns = matching.correlations.shape
    figure = Figure(figsize=(6.6, 4.4), dpi=DOTS, layout="constrained")
    axes = figure.subplots()
    drawn = axes.imshow(matching.correlations, cmap=PALETTE, vmin=-1, vmax=1, aspect="auto")
    axes.set_xlabel("found components of the second run", fontsize=9, color=INK)
    axes.set_ylabel("found components of the first run", fontsize=9, color=INK)
    for place, own in ((axes.xaxis, matching.second), (axes.yaxis, matching.first)):
        some = range(0, len(own), 1 + len(own) // _TICKS)
        place.set_ticks(list(some), [str(own[k]) for k in some])
    axes.tick_params(labelsize=8)
    figure.colorbar(drawn, ax=axes, shrink=0.8, label="correlation")
    return to_picture(
        figure,
        f"Correlations of {rows} components of the first run with {columns} of the second; the "
        "table lists the matched ones",
    )
