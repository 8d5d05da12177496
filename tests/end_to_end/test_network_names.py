"""Names of networks in the study after the one that found them: files, page, comparison, Python."""

import re

import numpy as np
import pytest
import yaml
from rich.console import Console

from consortium import open_result
from consortium.coordinator.evidence import keep_papers, named_files
from consortium.coordinator.simulate import simulate_study
from consortium.errors import DataError
from consortium.report.comparison import differences, read_outcome
from consortium.report.outputs import write_outputs
from consortium.simulation.bids import Patients, Recipe, make_consortium
from consortium.simulation.networks import network_maps
from consortium.simulation.signals import SignalLevels
from consortium.space.grid import template_grid
from consortium.space.study_space import study_space
from consortium.study.reader import read_study
from tests.support.command_line import enter
from tests.support.html_page import Page
from tests.support.report_samples import finished_maps, sample_study

SITES, EDGE, NETWORKS = ("north", "east"), 10.0, 3
FIRST = f"""\
study: rest
sites: [{", ".join(SITES)}]
data: {{resolution: {EDGE}, detrend: quadratic}}
privacy: {{epsilon: 8, delta: 1.0e-5, colluding_sites: 1}}
algorithm: group_ica
analysis: {{components: {NETWORKS}}}
"""
NAMES = ("Default mode", "Visual", "Motor")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with hospitals, a run that found their networks, and a study that compares them."""
    root = tmp_path_factory.mktemp("names")
    grid = template_grid(EDGE)
    known, maps = network_maps(grid.affine, grid.shape, grid.mask, count=NETWORKS)
    write_outputs(root / "rest", finished_maps(sample_study(), grid, maps), pages=False)
    (root / "rest" / "evidence" / "study").mkdir(parents=True)
    (root / "rest" / "evidence" / "study" / "study.yaml").write_text(FIRST)
    said = enter(
        *("consortium", "new-study", root / "patients.yaml", "--algorithm", "glm"),
        *("--components", root / "rest", "--column", "diagnosis", "--groups", "10,10"),
    )
    assert (said.code, said.err) == (0, "")
    (root / "said").write_text(said.out)
    weights = {known[1]: 0.4, known[2]: 1.8}
    recipe = Recipe(
        SITES,
        20,
        1,
        30,
        NETWORKS,
        resolution=EDGE,
        levels=SignalLevels(signal=0.04),
        patients=Patients(0.5, weights),
    )
    make_consortium(root / "hospitals", recipe)
    return root


def result_of(place, study="patients.yaml", out="out", **view):
    """Simulate the study without noise, with other settings of its view; return its folder."""
    content = yaml.safe_load((place / "patients.yaml").read_text())
    content["privacy"] |= {"scheme": "none"}
    content["features"][0] |= view
    (place / study).write_text(yaml.safe_dump(content))
    folders = {site: place / "hospitals" / site / "bids" for site in SITES}
    simulate_study(place / study, folders, place / out, 0, Console(quiet=True))
    return place / out


@pytest.fixture(scope="module")
def out(place):
    """The comparison's output folder, after the coordinator named the networks."""
    rows = "".join(f"{k}\t{name}\n" for k, name in enumerate(NAMES, start=1))
    (place / "patients-networks.tsv").write_text(f"index\tname\n{rows}")
    return result_of(place, "named.yaml")


def test_the_table_has_the_names_of_the_first_report_and_the_command_says_so(place):
    about = next((place / "rest").glob("tpl-*/func/*_components.json")).read_text()
    names = yaml.safe_load(about)["Names"]
    said = " ".join((place / "said").read_text().split())
    assert "patients-networks.tsv names the networks for the report: " in said
    assert all(names)
    assert all(name in said for name in names)


def test_tables_report_and_python_use_the_names(out):
    result = open_result(out)
    (effects,) = [table for name, table in result.tables.items() if name.startswith("contrast")]
    assert tuple(effects["entry"]) == NAMES
    page = Page((out / "report.html").read_text(encoding="utf-8")).text
    found = effects[effects["found"] == "yes"]
    assert len(found) > 0
    first = found.iloc[int(np.argmax(np.abs(found["t"].to_numpy(float))))]
    sentence = f"{len(found)} of {NETWORKS} networks differ: {first['entry']} ("
    assert sentence in page.replace("\u00a0", " ")
    assert f"{len(found)} of {NETWORKS} outcomes" not in page  # the count is stated once
    axis = result.plot().axes[0]
    assert {label.get_text() for label in axis.get_yticklabels()} <= {*NAMES}


def test_two_runs_are_compared_by_name_whatever_the_order(place, out):
    order = (2, 0, 1)
    rows = "".join(f"{k}\t{NAMES[n]}\n" for k, n in enumerate(order, start=1))
    table = place / "patients-networks.tsv"
    before = table.read_text()
    table.write_text(f"index\tname\n{rows}")
    other = result_of(place, "turned.yaml", "turned")
    table.write_text(before)
    found = {each.entry: each for each in differences(read_outcome(out), read_outcome(other))}
    assert {*found} == {*NAMES}
    ours = dict(zip(NAMES, (each.first for each in map(found.get, NAMES)), strict=True))
    assert found["Motor"].second == pytest.approx(ours["Default mode"])


def test_pairs_of_networks_have_both_names(place, out):
    made = result_of(
        place, "pairs.yaml", "pairs", measure="connectivity", center=False, normalize=False
    )
    tables = open_result(made).tables
    (effects,) = [table for name, table in tables.items() if name.startswith("contrast")]
    assert list(effects["entry"]) == [
        *("Default mode - Visual", "Default mode - Motor", "Visual - Motor")
    ]
    page = Page((made / "report.html").read_text(encoding="utf-8")).text
    assert re.search(r"\d of 3 pairs of networks differ", page.replace("\u00a0", " "))


def test_names_change_no_number_and_no_digest(place, out):
    study = read_study(place / "named.yaml")
    named = study_space(study, place)
    (place / "patients-networks.tsv").rename(place / "away.tsv")
    bare = study_space(study, place)
    (place / "away.tsv").rename(place / "patients-networks.tsv")
    assert (named.views[0].labels, bare.views[0].labels) == (NAMES, ["1", "2", "3"])
    assert named.digest == bare.digest


def test_the_evidence_contains_the_table(place, out, tmp_path):
    study = read_study(place / "named.yaml")
    assert "patients-networks.tsv" in named_files(study, place)
    assert "patients-networks.tsv" not in named_files(study, tmp_path)
    (place / "named.yaml.sig").write_text("a signature")
    keep_papers(tmp_path, study, place / "named.yaml")
    kept = tmp_path / "evidence" / "study" / "patients-networks.tsv"
    assert kept.read_text() == (place / "patients-networks.tsv").read_text()


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("1\ta\n2\tb\n", "one line for each of the 3 maps"),
        ("1\ta\n2\tb\n3\ta\n", "'a' is the name of two"),
        ("1\ta\n2\t\n3\tb\n", "or is empty"),
    ],
)
def test_a_table_that_does_not_name_each_map_is_refused(place, out, rows, sentence):
    table = place / "patients-networks.tsv"
    before = table.read_text()
    table.write_text(f"index\tname\n{rows}")
    try:
        with pytest.raises(DataError, match=sentence):
            study_space(read_study(place / "named.yaml"), place)
    finally:
        table.write_text(before)
