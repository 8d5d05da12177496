"""What a page says fits what was done: sums and masks, graphs, shares, units."""

import csv
import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest
import yaml
from rich.console import Console

from consortium.algorithms.findings import Finding
from consortium.coordinator.simulate import simulate_study
from consortium.report.outputs import write_page
from tests.support.cases import SITES
from tests.support.levels import People
from tests.support.report_samples import box_grid, finished_maps, sample_study


def words(html: str) -> str:
    """What a reader sees of a page."""
    plain = re.sub(r"<style.*?</style>|<script.*?</script>", "", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", plain)).split())


def simulated(tmp_path: Path, people: People, algorithm: str, views: list, analysis: dict) -> Path:
    """The output folder of a study with all sites in this process."""
    study = people.study(algorithm, views, analysis)
    people.sites(tmp_path, study)
    content = {
        "study": "levels",
        "sites": list(SITES),
        "participants": dict.fromkeys(SITES, 50),
        "features": views,
        "privacy": {"epsilon": 8, "delta": 1e-5, "colluding_sites": 1},
        "algorithm": algorithm,
        "analysis": analysis,
    }
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    folders = {name: tmp_path / name for name in SITES}
    out = tmp_path / "out"
    simulate_study(tmp_path / "study.yaml", folders, out, 0, Console(quiet=True))
    return out


def test_a_page_of_neighbours_tells_of_no_sums_masks_or_other_graphs(tmp_path: Path) -> None:
    people = People(3, 200, 0)
    people.score = np.sign(people.score)
    edges = [["north", "east"], ["east", "south"], ["south", "west"]]
    analysis = {"target": "score", "bound": 1.5, "rounds": 3, "edges": edges}
    views = [people.views()[each] for each in ("age", "score")]
    out = simulated(tmp_path, people, "admm", views, analysis)
    said = words((out / "report.html").read_text())
    assert "Each site's own answer was released" in said
    assert not re.search(
        r"mask|cancel|σ of the sum|Bonawitz| ring |of the sum", said, re.IGNORECASE
    )


def test_a_page_of_sums_still_tells_of_them(tmp_path: Path) -> None:
    people = People(3, 200, 0)
    views = [people.views()[each] for each in ("age", "score")]
    out = simulated(tmp_path, people, "regression", views, {"target": "score", "bound": 1.0})
    said = words((out / "report.html").read_text())
    assert "secure aggregation" in said
    assert "Cancelling σ" in said


def test_a_summarys_persons_are_in_the_units_of_their_columns(tmp_path: Path) -> None:
    people = People(3, 200, 0)
    views = people.views()
    clinic = {
        "name": "clinic",
        "source": "table",
        "columns": {"level": {"levels": people.levels}, "age": {"low": -3, "high": 5}},
    }
    out = simulated(tmp_path, people, "summarize", [clinic, views["score"]], {"points": 4})
    (path,) = (out / "tables").glob("*clinic_loadings.tsv")
    with path.open() as file:
        rows = {row[0]: row[1:] for row in csv.reader(file, delimiter="\t")}
    assert list(rows) == ["column", "level", "age"]
    assert set(rows["level"]) <= set(people.levels)
    ages = [float(x) for x in rows["age"]]
    assert all(-3 <= each <= 5 for each in ages)
    # The persons lie within -1 and 1, a quarter of the limits' span.
    assert abs(np.mean(ages)) < 1.5
    said = words((out / "report.html").read_text())
    assert all(f"age {x}" in said for x in rows["age"])


SHARED = [Finding(0.3, 0.2, 0.4), Finding()]


@pytest.mark.parametrize(
    ("shares", "sentence"),
    [
        ((), "of all components together, not of all data"),
        (tuple(SHARED), "of the variance of the participants' data"),
        ((Finding(), Finding()), ""),
    ],
)
def test_an_explained_share_is_said_to_be_of_what_it_is(
    shares, sentence: str, tmp_path: Path
) -> None:
    grid = box_grid()
    maps = np.random.default_rng(0).standard_normal((grid.features, 2)) ** 3
    page = write_page(tmp_path, finished_maps(sample_study(), grid, maps, shares=shares))
    said = words(page.read_text())
    for each in ("of all components together", "of the variance of the participants' data"):
        assert (each in said) is (bool(sentence) and each in sentence)
    assert ("Explained share withheld" in said) is (shares == tuple(SHARED))
    assert ("Explained share" in said) is bool(sentence)


def test_an_ica_does_not_repeat_under_every_map_what_it_never_tells() -> None:
    from consortium.algorithms.ica.centre import components_table

    table = components_table((True, False))
    assert table.rows == ((1, "found"), (2, "not found"))
    assert "is not known" in table.caption
