"""Peaks of maps: where they are, and voxels that the page leaves to the files."""

import numpy as np
import pytest

from consortium.algorithms.base import Result, Table
from consortium.algorithms.findings import ImageSet
from consortium.report.outputs import write_page
from consortium.report.sections.tables import MOST, rows, section
from consortium.report.shown_maps import set_maps
from consortium.space.grid import template_grid
from consortium.space.study_space import Space
from tests.support.report_samples import blob, finished, sample_study

PLACES = ((0.0, -52.0, 28.0), (-42.0, 20.0, 18.0))
TABLE = Table(
    "Effects.",
    ("view", "entry", "t"),
    (("faces", "1", 3.0), ("regions", "insula", 2.5)),
    voxels_of=("faces",),
)


def run_with(values, threshold=4.0):
    grid = template_grid(8.0)
    found = np.abs(values(grid)) >= threshold
    images = ImageSet(
        values(grid)[:, None],
        "Effect over its error.",
        ("age",),
        units="t",
        view="faces",
        found=(bool(found.any()),),
        threshold=threshold,
    )
    result = Result({}, tables={"contrast-age": TABLE}, images={"faces": images})
    return finished(sample_study(), Space(grid), result), images


def two_blobs(grid):
    return 9.0 * blob(grid, PLACES[0], 12.0) - 7.0 * blob(grid, PLACES[1], 12.0)


def test_every_cluster_is_listed_with_its_place_and_its_sign():
    run, images = run_with(two_blobs)
    (shown,) = set_maps(run, "faces", images)
    told = rows(run, shown)
    firsts = [row for row in told if row[-1]]
    assert len(firsts) == 2
    for row, place, sign in zip(firsts, PLACES, (1, -1), strict=True):
        where = [float(mm.replace("−", "-")) for mm in row[1].split(", ")]
        assert where == pytest.approx(place, abs=8)
        assert np.sign(float(row[2].replace("−", "-"))) == sign
    sizes = sum(float(row[-1].replace(",", "")) for row in firsts)
    assert sizes == pytest.approx(512 * shown.coloured)


def test_no_peak_lies_where_nothing_passes_the_threshold():
    run, images = run_with(two_blobs, threshold=100.0)
    assert set_maps(run, "faces", images) == [None]
    (table,) = section(run).values["tables"]
    assert table.rows == (("regions", "insula", "2.5"),)


def test_the_page_lists_peaks_in_the_place_of_voxels():
    run, _ = run_with(two_blobs)
    entries, peaks = section(run).values["tables"]
    assert entries.rows == (("regions", "insula", "2.5"),)
    assert peaks.columns == ("cluster", "x, y, z in mm", "peak t", "size in mm³")
    assert all(len(row) == len(peaks.columns) for row in peaks.rows)


def test_the_page_itself_names_peaks_and_no_voxel(tmp_path):
    run, _ = run_with(two_blobs)
    text = write_page(tmp_path, run).read_text(encoding="utf-8")
    assert "clusters that touch" in text
    assert "<td>insula</td>" in text
    assert "<td>faces</td>" not in text


def test_a_map_that_peaks_everywhere_has_no_endless_table():
    run, images = run_with(lambda grid: 50.0 * (np.arange(grid.features) % 7 == 0))
    (shown,) = set_maps(run, "faces", images)
    assert len(rows(run, shown)) == MOST
