"""Study files of analyses that were replaced: read as the analysis that replaced them."""

from pathlib import Path

import pytest

from consortium.algorithms import REGISTRY
from consortium.errors import StudyError
from consortium.study.reader import parse_study
from consortium.study.spec import Study
from tests.support.cases import make_feature_sites, make_study, shape_of
from tests.support.command_line import enter

FILE = """
study: ages
sites: [north, east, south, west]
participants: {north: 250, east: 250, south: 250, west: 250}
features:
  - name: person
    source: table
    columns: {"score[1-2]": {low: 0, high: 9}, age: {low: 18, high: 98}}
privacy: {unit: subject, epsilon: 1, delta: 1.0e-5, colluding_sites: 1}
algorithm: histogram
analysis: {view: person, entry: 3, bins: 16, limits: [18, 98]}
"""


def test_a_histogram_is_read_as_a_description_of_its_column():
    study = parse_study(FILE)
    assert study.algorithm == "describe"
    assert study.analysis.columns == ("age",)
    assert study.analysis.bins == 16
    assert study.analysis.quantiles == (0.05, 0.25, 0.5, 0.75, 0.95)
    assert not study.analysis.means
    plain = parse_study(FILE.replace(", bins: 16", ""))
    assert plain.analysis.bins == 20


def test_a_study_that_was_read_so_is_the_same_when_it_is_written_and_read_again():
    study = parse_study(FILE)
    again = Study.model_validate(study.model_dump(mode="json", exclude_none=True))
    assert again.digest == study.digest


def test_its_plan_names_the_analysis_that_replaces_it(tmp_path: Path):
    path = tmp_path / "ages.yaml"
    path.write_text(FILE, encoding="utf-8")
    said = enter("consortium", "plan", path)
    assert said.code == 0
    assert "names 'histogram', which 'describe' replaces" in " ".join(said.out.split())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("entry: 3", "entry: 4", "person4 is not a column"),
        ("view: person", "view: age", "age3 is not a column"),
        ("bins: 16", "bins: 1", "analysis.bins"),
        ("bins: 16", "bars: 16", "analysis.bars"),
        ("source: table", "source: nowhere", "features"),
        ("analysis: {view", "analysis: [view] #", "analysis"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(old, new, words):
    with pytest.raises(StudyError, match=words):
        parse_study(FILE.replace(old, new))


@pytest.mark.parametrize(("view", "replaced"), [("table", True), ("fmri", False)])
def test_an_average_of_a_table_names_the_analysis_that_replaces_it(view, replaced):
    features = {
        "table": {"name": "x", "source": "table", "columns": {"age": {"low": 18, "high": 90}}},
        "fmri": {"name": "x", "source": "fmri", "measure": "image", "image": "desc-faces_zmap"},
    }
    study = make_study("average", {"bound": 0.5})
    values = study.model_dump(mode="json", exclude_none=True) | {"features": [features[view]]}
    read = Study.model_validate(values)
    shape = shape_of(make_feature_sites((("x", 1),)))
    remarks = REGISTRY["average"](read.analysis, shape).remarks()
    assert any("'describe' replaces 'average'" in each for each in remarks) == replaced
