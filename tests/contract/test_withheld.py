"""No result publishes a number that it withholds: tables, loadings and Python frames have a gap.

A state says why. Studies of ten participants withhold most of their numbers.
"""

import csv

import numpy as np
import pytest

from consortium.algorithms import REGISTRY
from consortium.algorithms.findings import WITHHELD, Finding
from consortium.python.result import read_result_table
from consortium.report.finished import Finished
from consortium.report.tables import cell_json, write_tables
from consortium.report.views import write_loadings
from consortium.simulation.simulation import Simulation
from consortium.space.study_space import Space, study_space
from tests.support.cases import drive, loud, prepared, sites_for, study_of
from tests.support.report_samples import DAY, box_grid, sample_report, sample_study

NONE_WITHHELD = ("ica",)
"""Analyses that give every number of their tables with its interval, or only states."""
RESULTS = frozenset({"effect", "error", "t", "p", "q", "low", "high"})
"""Columns that hold an estimate, its error or its interval."""
MOST = 3
"""Number of examples of each analysis that are run."""
GLM_EXAMPLES = (7, 13, 15)
"""Examples of `glm` whose numbers are withheld."""


def examples(name):
    cases = REGISTRY[name].cases
    if name == "glm":
        return [cases[k - 1] for k in GLM_EXAMPLES]
    return cases[-MOST:] if name == "average" else cases[:MOST]


def result_of(name, case):
    if name == "average":  # sums of few values are withheld only if their noise is large
        return drive(*prepared(name, case), loud(1))[2]
    return Simulation(study_of(name, case), sites_for(case), 0).run()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Studies with their results, by the name of the analysis."""
    found, report = {}, sample_report(sample_study())
    for name in REGISTRY:
        found[name] = []
        for case in examples(name):
            study = study_of(name, case)
            space = Space(box_grid())
            if study.features and not case.mesh:
                space = study_space(study, tmp_path_factory.mktemp(name))
            found[name].append(Finished(study, space, result_of(name, case), report, DAY))
    return found


def withheld_cells(table):
    """Row and heading of each withheld finding."""
    for number, row in enumerate(table.rows):
        for heading, cell in zip(table.columns, row, strict=True):
            if isinstance(cell, Finding) and not cell.reported:
                yield number, heading


def read_lines(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def check_gap(path, number, headings):
    """Require that a line has no numbers under the headings, in the file and in Python."""
    line, frame = read_lines(path)[number], read_result_table(path)
    for heading in headings:
        assert line[heading] == "n/a"
        assert frame[heading].dtype == float
        assert np.isnan(frame[heading][number])


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_withheld_findings_are_missing_values_with_a_state(finished, name, tmp_path):
    seen = 0
    for run in finished[name]:
        files = write_tables(tmp_path, run)
        for path, table in zip(files, run.result.tables.values(), strict=True):
            for number, heading in withheld_cells(table):
                line = read_lines(path)[number]
                own = {heading, f"{heading} low", f"{heading} high"} & line.keys()
                check_gap(path, number, own)
                assert line[f"{heading} state"] == WITHHELD
                assert read_result_table(path)[f"{heading} state"][number] == WITHHELD
                seen += 1
    assert seen or name in (*NONE_WITHHELD, "admm", "glm")


def withheld_entries(table):
    """Row of each entry that is withheld, its view, and its place within the view, from 0."""
    places = {}
    for number, row in enumerate(table.rows):
        places[row[0]] = places.get(row[0], -1) + 1
        states = [cell.state for cell in row if isinstance(cell, Finding)]
        states += [cell for cell in row if isinstance(cell, str)]
        if any(state.startswith(WITHHELD) for state in states):
            yield number, row[0], places[row[0]]


@pytest.mark.parametrize("name", ["admm", "average", "coordinate", "glm", "regression"])
def test_entries_that_are_withheld_have_no_number_in_any_file(finished, name, tmp_path):
    seen = 0
    for run in finished[name]:
        written = {path.stem: path for path in write_loadings(tmp_path, run)}
        files = write_tables(tmp_path, run)
        for path, table in zip(files, run.result.tables.values(), strict=True):
            if table.columns[:2] != ("view", "entry"):
                continue
            for number, view, place in withheld_entries(table):
                check_gap(path, number, RESULTS.intersection(table.columns))
                stem = f"desc-small{name}{view}_loadings"
                if stem in written:
                    check_gap(written[stem], place, [read_result_table(written[stem]).columns[1]])
                seen += 1
    assert seen


def test_json_of_what_is_withheld_has_no_number(finished):
    for run in (each for runs in finished.values() for each in runs):
        result = run.result
        findings = [
            *result.shares,
            *(a for image in result.images.values() for a in image.accuracy),
        ]
        for table in result.tables.values():
            findings += [cell for row in table.rows for cell in row if isinstance(cell, Finding)]
        told = [cell_json(each) for each in findings if not each.reported]
        assert told == [WITHHELD] * len(told)
