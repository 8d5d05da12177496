"""Scores of a hospital's own participants against a finished study or a published chart.

A score is the distance of a value from its expected one, in standard deviations. The slopes and
the spread come from the study's released coefficients, or from a chart. The level of each outcome
is the hospital's own. Scores have no noise. They stay at the hospital, and no study reads them:
they contain the level of the hospital, so its participants depend on each other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from consortium.algorithms.base import Array
from consortium.algorithms.glm.entries import Columns, resolve
from consortium.algorithms.glm.formula import without_levels
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.base.atomic import DAMAGED, write_json, write_text
from consortium.base.delimited import KEPT_COLUMN, open_table
from consortium.base.formatting import count
from consortium.base.tables import read_rows
from consortium.errors import DataError, OutputError, StudyError
from consortium.kernels.home_scores import HomeScores, home_scores
from consortium.opened_study import open_signed
from consortium.report.coefficients import read_released
from consortium.study.spec import Study
from site_agent.approval.folder import SiteFolder
from site_agent.chart import coded_columns, own_values, read_chart
from site_agent.data.people import left_out_here, site_tables
from site_agent.loading.open import check_anybody, open_dataset
from site_agent.networks import check_target
from site_agent.posterior import study_file

FEWEST = 5
"""Participants from whom a hospital's level is estimated."""
FEWEST_FOR_SPREAD = 30
"""Participants from whom standard deviations are estimated, each with an error of 13 %."""
_FAR = 5.0
_MOST_BYTES = 20_000_000
_MISSING = "n/a"
_OWN_SPREAD = (
    "The study states no standard deviations, so those of the scores are this hospital's own, "
    "around the expected values."
)
_README = """\
# Scores of participants, of study {study}

KEEP THIS FOLDER INSIDE THE HOSPITAL, as the scans are kept. No noise hides a participant in it.

- `zscores.tsv`: each participant's value less the expected one, in standard deviations.
- `harmonized.tsv`: values without this hospital's own level, in the outcomes' own units.

{told}

No study reads these files. A score contains the mean of this hospital's participants, so the
participants depend on each other, and the privacy guarantee does not hold for such values.
"""


@dataclass(frozen=True, eq=False)
class _Expected:
    """Outcomes and their expected values, V x n, in units of the deviations."""

    deviation: Array
    adjusted: Array
    """Expected by the columns that scores are adjusted for."""
    whole: Array
    """Expected by all columns."""
    location: Array | None = None
    between: Array | None = None


def write_zscores(
    folder: Path,
    source: Path,
    roster: Path,
    target: Path,
    *,
    chart: Path | None = None,
    among: str | None = None,
    tell: Callable[[str], None] = lambda _line: None,
) -> tuple[str, ...]:
    """Write scores and harmonized values of a site's participants.

    Raises ConsortiumError if the study, the chart, the data or the folder can't be used.

    Parameters
    ----------
    folder : Path
        The site's.
    source : Path
        Output folder of a finished ``glm`` with ``contrasts: all``; with a chart, also the file of
        a signed study of ``glm``.
    target : Path
        A folder that is empty or new.
    chart : Path, optional
        Table of a published chart, instead of the study's coefficients.
    among : str, optional
        ``column=level`` of the participants from whom the hospital's level is estimated.
    tell : callable
        Is called with a message while data are read.

    Returns
    -------
    tuple of str
        Summary of the result, in sentences.
    """
    site = SiteFolder.open(folder)
    check_target(target, site.config)
    if target.resolve().is_relative_to(source.resolve()):
        raise DataError(f"{target} is in the published folder. Name another folder.")
    file = source if source.is_file() else study_file(source)
    signed = site.papers(file, roster).signed
    study = signed.study
    parameters = _parameters(study, source)
    tell("reading")
    config = site.config
    data = open_dataset(
        source=config.dataset,
        opened=open_signed(signed),
        cache=config.cache,
        without=left_out_here(config.left_out, site_tables(config)),
        tables=site_tables(config),
    )
    check_anybody(data)
    table = data.table()
    shape = data.extent.shape([len(data.people)], [len(data.people)], "subject")
    columns = resolve(parameters, shape)
    values = columns.own(table[columns.outcomes].T).T
    expected = (
        _by_study(source, parameters, columns, table)
        if chart is None
        else _by_chart(chart, columns, table)
    )
    chosen = _chosen(columns, table, among)
    own_spread = chart is None and parameters.norms.deviation is None
    if own_spread:
        expected = _in_own_deviations(expected, values, chosen)
    scored = home_scores(
        values=values / expected.deviation[:, None],
        expected=expected.adjusted,
        whole=expected.whole,
        chosen=chosen,
        location=expected.location,
        between=expected.between,
    )
    told = (
        *_summary(scored, int(chosen.sum()), chart or source),
        *([_OWN_SPREAD] if own_spread else []),
        *_outliers(scored, data.people, [entry for _, entry in columns.labels]),
    )
    _write(
        target=target,
        study=study,
        people=data.people,
        columns=columns,
        expected=expected,
        scored=scored,
        values=values,
        told=told,
    )
    return told


def _parameters(study: Study, source: Path) -> GlmParameters:
    """Return the study's parameters.

    Raises StudyError if it is not of `glm`, or if its rows are not single participants.
    """
    if study.algorithm != "glm" or study.analysis.grouped is not None:
        raise StudyError(
            f"{source} must be of a study of glm without units, and is of {study.algorithm}. Name "
            "another study."
        )
    return cast("GlmParameters", study.analysis)


def _by_study(source: Path, parameters: GlmParameters, columns: Columns, table: Array) -> _Expected:
    """Return expected values by the coefficients of a finished study.

    Scores are not adjusted for the first column of the formula, of which the study reports the
    effect. Raises OutputError if the study has no coefficients, or an open cohort.
    """
    if source.is_file():
        raise OutputError(
            f"{source} must be the output folder of a finished study, and is a file. Name the "
            "folder, or a chart by --chart."
        )
    if parameters.open is not None:
        raise OutputError(
            f"{source} must be of a study without an open cohort (analysis.open), whose units are "
            "those of its table. Use a chart by --chart."
        )
    released = read_released(source)
    names = {label: place for place, label in enumerate(columns.labels)}
    deviation = np.full(len(names), np.nan)
    stated = _deviations(source)
    if not set(released.labels) <= names.keys() & stated.keys():
        raise OutputError(f"The tables in {source} are damaged. Ask for the folder again.")
    coefficients = np.full((len(names), released.values.shape[1]), np.nan)
    for label, own in zip(released.labels, released.values, strict=True):
        coefficients[names[label]] = own
        deviation[names[label]] = stated[label]
    coded = coded_columns(columns, table)
    first = without_levels(released.entries[0].name)
    kept = [without_levels(entry.name) != first for entry in released.entries]
    return _Expected(
        deviation=deviation,
        adjusted=coefficients[:, kept] @ coded[kept],
        whole=coefficients @ coded,
    )


def _in_own_deviations(expected: _Expected, values: Array, chosen: Array) -> _Expected:
    """Return expected values in this hospital's own standard deviations around them.

    A study that states no deviations learns one scale for all outcomes, which converts effects to
    the outcomes' units. It is not the spread of each outcome. Raises DataError if the hospital has
    too few participants, or an outcome that does not vary.
    """
    if chosen.sum() < FEWEST_FOR_SPREAD:
        raise DataError(
            f"At least {FEWEST_FOR_SPREAD} participants are needed for standard deviations, which "
            f"the study does not state (analysis.norms.deviation), and there are "
            f"{int(chosen.sum())}. Use a chart by --chart."
        )
    beyond = np.where(chosen, values / expected.deviation[:, None] - expected.whole, np.nan)
    there = np.isfinite(beyond)
    counts = there.sum(axis=1)
    enough = counts >= FEWEST_FOR_SPREAD
    means = np.where(there, beyond, 0.0).sum(axis=1) / np.maximum(counts, 1)
    squares = np.where(there, np.square(beyond - means[:, None]), 0.0).sum(axis=1)
    spread = np.sqrt(squares / np.maximum(counts - 1, 1))
    spread = np.where(enough & (spread > 0), spread, np.nan)
    return _Expected(
        deviation=expected.deviation * spread,
        adjusted=expected.adjusted / spread[:, None],
        whole=expected.whole / spread[:, None],
    )


def _deviations(source: Path) -> dict[tuple[str, str], float]:
    """Return the unit of each outcome's effects, by view and entry."""
    paths = sorted((source / "tables").glob("desc-*glmcontrast*_results.tsv"))
    try:
        (path,) = paths
        return {(row["view"], row["entry"]): float(row["deviation"]) for row in read_rows(path)}
    except DAMAGED as error:
        raise OutputError(
            f"The tables in {source} are damaged. Ask for the folder again."
        ) from error


def _by_chart(chart: Path, columns: Columns, table: Array) -> _Expected:
    with open_table(chart, _MOST_BYTES) as opened:
        found = read_chart(chart, opened.header, [row.cells for row in opened.rows()], columns)
    own = own_values(columns, table)
    expected = sum(
        (term.at(own[term.column]) for term in found.terms),
        start=np.zeros((len(found.deviation), table.shape[1])),
    )
    unit = found.deviation[:, None]
    return _Expected(
        deviation=found.deviation,
        adjusted=expected / unit,
        whole=expected / unit,
        location=None if found.location is None else found.location / found.deviation,
        between=None if found.between is None else found.between / found.deviation,
    )


def _chosen(columns: Columns, table: Array, among: str | None) -> Array:
    """Return the participants from whom the level is estimated.

    Raises DataError if they are too few, or the level is unknown.
    """
    chosen = np.ones(table.shape[1], dtype=bool)
    if among is not None:
        levels = _levels(columns, table)
        if among not in levels:
            raise DataError(
                f"--among: must be a level of the study, {', '.join(levels) or 'which has none'}, "
                f"got '{among}'."
            )
        chosen = levels[among]
    if chosen.sum() < FEWEST:
        raise DataError(
            f"At least {FEWEST} participants are needed for this hospital's level, and there are "
            f"{int(chosen.sum())}. Choose another level by --among, or wait for more participants."
        )
    return chosen


def _levels(columns: Columns, table: Array) -> dict[str, Array]:
    """Return who has each level of each column, by ``column=level``."""
    found = dict[str, Array]()
    others = dict[str, Array]()
    own = own_values(columns, table)
    for entry in (columns.group, *columns.covariates_of):
        if not entry.levels or entry.product or not entry.compared[0]:
            continue
        column = entry.label.partition("=")[0]
        level, reference = entry.compared
        has = own[f"{column}={level}"] == 1
        found[f"{column}={level}"] = has
        first = f"{column}={reference}"
        others[first] = others.get(first, np.ones(len(has), dtype=bool)) & ~has
    return others | found


def _summary(scored: HomeScores, chosen: int, source: Path) -> tuple[str, ...]:
    known = np.isfinite(scored.scores)
    outcomes = int(known.any(axis=1).sum())
    far = float((np.abs(scored.scores[known]) > 1.96).mean()) if known.any() else 0.0
    error = float(np.sqrt(np.mean(np.square(scored.errors[known.any(axis=1)]))))
    level = (
        f"This hospital's level is estimated from {count(chosen, 'participant')}, with a standard "
        f"error of {error:.2f} standard deviations."
    )
    extreme = (
        f"{100 * far:.1f} % of the scores are beyond ±1.96. If hospital and reference are alike, "
        "about 5 % are."
    )
    return f"Scores of {count(outcomes, 'outcome')} against {source.name}.", level, extreme


def _outliers(
    scored: HomeScores, people: Sequence[str], outcomes: Sequence[str]
) -> tuple[str, ...]:
    """Return a warning on values so far off that they move the level of few participants."""
    far = np.argwhere(np.abs(scored.scores) > _FAR)
    if not len(far):
        return ()
    place, person = far[0].tolist()
    warning = (
        f"WARNING: {count(len(far), 'score')} beyond ±{_FAR:g}, such as {outcomes[place]} of "
        f"{people[person]}. Such values also move the level, and with it all scores: check them, "
        "and leave out wrong ones."
    )
    return (warning,)


def _write(
    target: Path,
    study: Study,
    people: Sequence[str],
    columns: Columns,
    expected: _Expected,
    scored: HomeScores,
    values: Array,
    told: Sequence[str],
) -> None:
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.chmod(0o700)  # also of an existing one
    level = np.zeros(len(scored.levels)) if expected.location is None else expected.location
    harmonized = values - expected.deviation[:, None] * (scored.levels - level)[:, None]
    names = [entry for _, entry in columns.labels]
    about = {
        "zscores": "Value less the expected one, in standard deviations.",
        "harmonized": "Value without the hospital's own level, in the outcome's own unit.",
    }
    for name, own in (("zscores", scored.scores), ("harmonized", harmonized)):
        lines = ["\t".join(["participant_id", KEPT_COLUMN, *names])]
        for person, row in zip(people, own.T, strict=True):
            cells = [f"{value:.6g}" if np.isfinite(value) else _MISSING for value in row]
            lines.append("\t".join([f"sub-{person}", "yes", *cells]))
        write_text(target / f"{name}.tsv", "\n".join(lines) + "\n")
        write_json(
            target / f"{name}.json",
            {
                "Description": about[name],
                KEPT_COLUMN: "This file must stay at the hospital. No study reads it.",
            },
        )
    write_text(target / "README.md", _README.format(study=study.study, told="\n".join(told)))
